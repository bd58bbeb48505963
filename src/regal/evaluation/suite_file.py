"""Suites from TOML: those that ship by name, others by their file; docs/evaluate.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from regal.data.split import SIDES
from regal.data.synthetic import FAMILIES
from regal.devices.fields import fields_of_toml
from regal.errors import UsageError
from regal.evaluation.methods import MethodEntry, require_known
from regal.evaluation.planted import PLANTED
from regal.evaluation.suite import (
    ALL_SYSTEMS,
    GROUPINGS,
    LIMIT_SECONDS,
    MOST,
    PURPOSES,
    REPORT,
    BudgetRule,
    Endpoint,
    GraphsRule,
    Pair,
    Reference,
    Suite,
    budgets_of,
    weights_of,
)
from regal.files import read_text
from regal.search.devices.objectives import Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from regal.devices.fields import Fields

SHIPPED: Final = Path(__file__).parent / "suites"
SUFFIX = ".toml"
NAME: Final = re.compile(r"[A-Za-z0-9_-]+")


def suite_names() -> tuple[str, ...]:
    """Return the names of the suites that ship, sorted."""
    return tuple(sorted(path.stem for path in SHIPPED.glob(f"*{SUFFIX}")))


def suite_named(text: str) -> Suite:
    """Return the suite of this name, or in the TOML file at this path.

    Raises:
        UsageError: there is none (the message lists those that ship), or it says something wrong.
    """
    path = Path(text)
    if path.suffix.lower() != SUFFIX:
        if text not in suite_names():
            known = ", ".join(suite_names())
            raise UsageError(f"unknown suite '{text}'; give a {SUFFIX} file, or one of {known}")
        path = SHIPPED / f"{text}{SUFFIX}"
    return suite_from_toml(read_text(path, "suite"), str(path))


def suite_from_toml(text: str, name: str) -> Suite:
    """Return the suite in a TOML text; `name` is that of the file, for messages.

    Raises:
        UsageError: says what is wrong in one line.
    """
    fields = fields_of_toml(text, f"suite '{name}'")
    suite = Suite(
        name=fields.text("name"),
        about=fields.text("about"),
        purpose=_one_of(fields, "purpose", PURPOSES) if "purpose" in fields else REPORT,
        objectives=_each(fields, "objectives", _objective),
        systems=fields.texts("systems") if "systems" in fields else (),
        seeds=tuple(range(fields.whole("seeds", 1, 1_000))) if "seeds" in fields else (0,),
        methods=tuple(_method(table) for table in fields.tables("methods")),
        budgets=tuple(_budget(table) for table in fields.tables("budgets")),
        graphs=tuple(_graphs(table) for table in fields.tables("graphs")),
        references=_references(fields) if "references" in fields else (Reference(),),
        weights=_weights(fields.table("weights")) if "weights" in fields else Weights(),
        threads=_whole(fields, "threads", 1, low=1),
        limit_seconds=_seconds(fields, "limit_seconds", LIMIT_SECONDS),
        primary=_endpoint(fields.table("primary")) if "primary" in fields else None,
        secondary=_pairs(fields) if "secondary" in fields else (),
        groups=_groups(fields) if "groups" in fields else (),
        per_family=fields.flag("per_family") if "per_family" in fields else True,
        within=_within(fields) if "within" in fields else (),
    )
    fields.require_no_more()
    _require_consistent(suite, fields.where)
    return suite


def _require_consistent(suite: Suite, where: str) -> None:
    for name, values in (
        ("objectives", suite.objectives), ("methods", suite.methods),
        ("budgets", suite.budgets), ("graphs", suite.graphs),
        ("references", suite.references),
    ):  # fmt: skip
        if not values:
            raise UsageError(f"{where}: '{name}' is empty; give at least one")
    if not NAME.fullmatch(suite.name):
        raise UsageError(f"{where}: 'name' is '{suite.name}'; it names files: a-z, 0-9, - and _")
    if not suite.systems and not all(rule.planted for rule in suite.graphs):
        raise UsageError(f"{where}: 'systems' is missing; only planted graphs bring their own")
    for name, texts in (("objective", suite.objectives), ("system", suite.systems)):
        again = next((text for text in texts if texts.count(text) > 1), None)
        if again is not None:
            raise UsageError(f"{where}: the {name} '{again}' is there twice")
    labels = [method.label for method in suite.methods]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise UsageError(f"{where}: two methods are called '{twice}'; give one another 'label'")
    for rule in suite.budgets:
        named = (*rule.methods, *([rule.seconds_of] if rule.seconds_of else []))
        _require_labels(named, labels, f"{where}: a budget")
        if [one.text for one in suite.budgets].count(rule.text) > 1:
            raise UsageError(f"{where}: two budgets are '{rule.text}'; join their methods")
        if rule.seconds_of:
            least = min(rule.seeds, len(suite.seeds))
            _require_run(suite, rule.seconds_of, rule.evaluations, f"{where}: 'seconds_of'", least)
    for reference in suite.references:
        if reference.method not in labels:
            raise UsageError(
                f"{where}: the reference '{reference.method}' is not run; add it to the methods,"
                " or name another one in [[references]]"
            )
        if reference.evaluations is not None:
            _require_run(suite, reference.method, reference.evaluations, f"{where}: the reference")
        _require_labels(reference.methods, labels, f"{where}: a reference")
    _require_tests(suite, labels, where)


def _require_tests(suite: Suite, labels: Sequence[str], where: str) -> None:
    for pair in suite.secondary:
        _require_labels((pair.method, pair.against), labels, f"{where}: a secondary comparison")
    first = suite.primary
    if first is None:
        return
    _require_labels((first.method, first.against), labels, f"{where}: the primary comparison")
    budgets = [rule.text for rule in budgets_of(suite, first.method)]
    for what, name, known in (
        ("objective", first.objective, suite.objectives),
        ("budget", first.budget, budgets),
        ("devices", first.system, (*suite.systems, ALL_SYSTEMS)),
    ):
        if name not in known:
            raise UsageError(
                f"{where}: the {what} '{name}' of the primary comparison is not run; there are:"
                f" {'; '.join(known)}"
            )


def _require_labels(named: Sequence[str], labels: Sequence[str], where: str) -> None:
    odd = next((label for label in named if label not in labels), None)
    if odd is not None:
        raise UsageError(f"{where} names the method '{odd}', which is not run")


def _require_run(
    suite: Suite, label: str, evaluations: int | None, where: str, seeds: int = 1
) -> None:
    if not any(
        not rule.seconds_of and rule.evaluations == evaluations and rule.seeds >= seeds
        for rule in budgets_of(suite, label)
    ):
        raise UsageError(
            f"{where} needs '{label}' with {evaluations} evaluations, which is not run"
            f"{f' for {seeds} seeds' if seeds > 1 else ''}; add the budget"
        )


def _method(fields: Fields) -> MethodEntry:
    name = fields.text("name")
    entry = MethodEntry(
        name=name,
        label=fields.text("label") if "label" in fields else name,
        policy=fields.text("policy") if "policy" in fields else "none",
    )
    fields.require_no_more()
    require_known(entry)
    return entry


def _budget(fields: Fields) -> BudgetRule:
    rule = BudgetRule(
        evaluations=fields.whole("evaluations", 1, 2**31) if "evaluations" in fields else None,
        seconds=_seconds(fields, "seconds", 0.0) or None,
        seconds_of=fields.text("seconds_of") if "seconds_of" in fields else "",
        methods=fields.texts("methods") if "methods" in fields else (),
        seeds=_whole(fields, "seeds", MOST, low=1),
    )
    fields.require_no_more()
    is_one = (rule.evaluations is None) != (rule.seconds is None)
    if not is_one or (rule.seconds_of and rule.evaluations is None):
        raise UsageError(
            f"{fields.where}: give 'evaluations', or 'seconds', or 'seconds_of' with the"
            " 'evaluations' of that method's run"
        )
    return rule


def _graphs(fields: Fields) -> GraphsRule:
    lists = {
        name: fields.texts(name) if name in fields else ()
        for name in ("splits", "families", "frameworks", "modes", "keys", "files")
    }
    rule = GraphsRule(
        splits=lists["splits"],
        families=lists["families"],
        frameworks=lists["frameworks"],
        modes=lists["modes"],
        keys=lists["keys"],
        files=lists["files"],
        fewest_ops=_whole(fields, "fewest_ops", 0),
        most_ops=_whole(fields, "most_ops", MOST),
        most_per_family=_whole(fields, "most_per_family", MOST, low=1),
        family=fields.text("family") if "family" in fields else "",
        planted=_one_of(fields, "planted", PLANTED) if "planted" in fields else "",
        synthetic=_one_of(fields, "synthetic", tuple(FAMILIES)) if "synthetic" in fields else "",
        ops=_wholes(fields, "ops", 1, MOST),
        devices=_wholes(fields, "devices", 2, 64),
        count=_whole(fields, "count", 1, low=1),
    )
    fields.require_no_more()
    wrong = next((split for split in rule.splits if split not in SIDES), None)
    if wrong is not None:
        raise UsageError(f"{fields.where}: unknown split '{wrong}'; known: {', '.join(SIDES)}")
    kinds = (rule.files, rule.planted, rule.synthetic, rule.splits or rule.keys)
    if sum(map(bool, kinds)) != 1:
        raise UsageError(
            f"{fields.where}: give one of 'splits' (or 'keys'), 'files', 'planted', 'synthetic'"
        )
    if rule.synthetic and not rule.ops:
        raise UsageError(f"{fields.where}: synthetic graphs need a list of 'ops'")
    if rule.planted and not (rule.ops and rule.devices):
        raise UsageError(f"{fields.where}: planted graphs need lists of 'ops' and of 'devices'")
    return rule


def _references(fields: Fields) -> tuple[Reference, ...]:
    return tuple(_reference(table) for table in fields.tables("references"))


def _reference(fields: Fields) -> Reference:
    found = Reference(
        method=fields.text("method"),
        evaluations=fields.whole("evaluations", 1, 2**31) if "evaluations" in fields else None,
        methods=fields.texts("methods") if "methods" in fields else (),
    )
    fields.require_no_more()
    return found


def _endpoint(fields: Fields) -> Endpoint:
    found = Endpoint(
        method=fields.text("method"),
        against=fields.text("against"),
        objective=_objective(fields.text("objective")),
        budget=fields.text("budget"),
        system=fields.text("devices") if "devices" in fields else ALL_SYSTEMS,
    )
    fields.require_no_more()
    return found


def _pairs(fields: Fields) -> tuple[Pair, ...]:
    found = []
    for table in fields.tables("secondary"):
        found.append(Pair(method=table.text("method"), against=table.text("against")))
        table.require_no_more()
    return tuple(found)


def _groups(fields: Fields) -> tuple[str, ...]:
    names = fields.texts("groups")
    odd = next((name for name in names if name not in GROUPINGS), None)
    if odd is not None:
        raise UsageError(f"{fields.where}: unknown group '{odd}'; known: {', '.join(GROUPINGS)}")
    return names


def _within(fields: Fields) -> tuple[float, ...]:
    return tuple(map(float, fields.wholes("within", 1, 1_000)))


def _objective(text: str) -> str:
    weights_of(text, Weights())
    return text


def _weights(fields: Fields) -> Weights:
    found = Weights(
        time=fields.rate("time", lambda number, _: number),
        memory=fields.rate("memory", lambda number, _: number),
    )
    fields.require_no_more()
    return found


def _seconds(fields: Fields, key: str, default: float) -> float:
    return fields.rate(key, _require_seconds) if key in fields else default


def _require_seconds(number: float, value: object) -> float:
    if not 0 < number < 1e6:
        raise UsageError(f"{value} is not a number of seconds above 0")
    return number


def _whole(fields: Fields, key: str, default: int, *, low: int = 0) -> int:
    return fields.whole(key, low, MOST) if key in fields else default


def _wholes(fields: Fields, key: str, low: int, high: int) -> tuple[int, ...]:
    """Return a list of whole numbers; none where the key is absent."""
    if key not in fields:
        return ()
    return fields.wholes(key, low, high)


def _one_of(fields: Fields, key: str, known: Sequence[str]) -> str:
    value = fields.text(key)
    if value not in known:
        raise UsageError(f"{fields.where}: unknown {key} '{value}'; known: {', '.join(known)}")
    return value


def _each(fields: Fields, key: str, require: Callable[[str], str]) -> tuple[str, ...]:
    return tuple(require(text) for text in fields.texts(key))
