"""The parts of a page that are made from rows: between two markers, the rest stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.errors import UsageError
from regal.evaluation.graphs import PLANTED_SPLIT
from regal.evaluation.rows import all_rows, has_rows
from regal.evaluation.suite import BALANCED, budgets_of, weights_of
from regal.evaluation.suite_file import suite_named
from regal.evaluation.tables import report
from regal.files import read_text, write_atomically

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Suite

END = "<!-- end of regal evaluate -->"
ROWS_SUFFIX = ".jsonl"


def marker_of(name: str) -> str:
    """Return the line after which the tables of a suite stand in a page."""
    return f"<!-- regal evaluate {name} -->"


def regenerate(page: Path, results: Path, names: Sequence[str]) -> list[str]:
    """Write the tables of suites into a page, each between its markers; return their names.

    Args:
        page: a Markdown file with a pair of markers for each suite.
        results: folder of row files, one per suite.
        names: of suites; (): all whose markers are in the page, also those that have no rows.

    Raises:
        UsageError: a marker, its end, a suite or its row file is missing, or the page is no text.
    """
    text = read_text(page, "page")
    done = []
    for name in names or _marked(text):
        suite = suite_named(name)
        if names or has_rows(rows_path(results, suite)):
            part = report(*suite_and_rows(name, results))
        else:
            part = f"Not run yet: `regal evaluate {name}`."
        text = with_part(text, suite.name, part, str(page))
        done.append(suite.name)
    if not done:
        raise UsageError(f"page '{page}' has no '{marker_of('SUITE')}'; add it, and '{END}'")
    write_atomically(page, text.encode())
    return done


def suite_and_rows(name: str, results: Path) -> tuple[Suite, list[Row]]:
    """Return a suite and its rows, without those that it has no more use for.

    Those are rows that a later one replaced, and runs that the suite asked for before its methods,
    budgets, objectives, seeds or systems changed. Graphs are not looked up: they may be elsewhere.

    Raises:
        UsageError: there is no such suite, or no row file of it.
    """
    suite = suite_named(name)
    rows = all_rows(rows_path(results, suite))
    return suite, [row for row in rows if _is_asked(row, suite)]


def rows_path(results: Path, suite: Suite) -> Path:
    """Return the row file of a suite."""
    return results / f"{suite.name}{ROWS_SUFFIX}"


def with_part(text: str, name: str, part: str, page: str) -> str:
    """Return a page with new tables of one suite.

    Raises:
        UsageError: its marker or the end behind it is missing.
    """
    marker = marker_of(name)
    before, found, rest = text.partition(marker)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        missing = marker if not found else END
        raise UsageError(f"page '{page}': '{missing}' is missing; add it where the tables belong")
    return f"{before}{marker}\n\n{part.strip()}\n\n{END}{after}"


def _is_asked(row: Row, suite: Suite) -> bool:
    """Return whether a suite still asks for a run, but for its graph."""
    if row.objective not in suite.objectives:
        return False
    name, own = weights_of(row.objective, suite.weights)
    weights = {"time": own.time, "memory": own.memory}
    rules = budgets_of(suite, row.method)
    seeds = {rule.text: suite.seeds[: rule.seeds] for rule in rules}
    methods = {method.label: (method.name, method.policy) for method in suite.methods}
    return (
        (row.suite, row.threads) == (suite.name, suite.threads)
        and (name != BALANCED or row.weights == weights)
        and (row.system in suite.systems or row.split == PLANTED_SPLIT)
        and methods.get(row.method) == (row.name, row.options.get("policy"))
        and row.seed in seeds.get(row.budget, ())
    )


def _marked(text: str) -> list[str]:
    begin, _, end = marker_of("|").partition("|")
    lines = [line.strip() for line in text.splitlines()]
    return [
        line.removeprefix(begin).removesuffix(end)
        for line in lines
        if line.startswith(begin) and line.endswith(end)
    ]
