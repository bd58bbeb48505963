"""Rows as Markdown: gains, gaps to known optima, families, failures."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from regal.evaluation.compare import (
    by_family,
    comparisons,
    contradictions,
)
from regal.evaluation.curves import curves_of, grid_of
from regal.evaluation.graphs import PLANTED_SPLIT
from regal.evaluation.groups import grouped
from regal.evaluation.judge import is_tie
from regal.evaluation.pareto import is_sweep
from regal.evaluation.study_tables import (
    endpoints_table,
    fronts_table,
    line_of,
    percent_of,
    quality_table,
)
from regal.evaluation.suite import ALL_SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from regal.evaluation.compare import Comparison
    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Suite

GAINS_HEAD = (
    "| objective | devices | budget | method | gain [95 %] | median | better/equal/worse |"
    " of best | of bound | CPU s | runs | families |"
)
GAINS_RULE = "|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
GAPS_HEAD = "| objective | budget | method | mean gap | largest gap | optimal | runs | CPU s |"
GAPS_RULE = "|---|---|---|--:|--:|--:|--:|--:|"
FAILURES_HEAD = "| method | budget | runs | reason | for example |"
FAILURES_RULE = "|---|---|--:|---|---|"
MOST_FAILURES = 20  # kinds of them
MOST_REASON = 120  # characters


def report(suite: Suite, rows: Sequence[Row]) -> str:
    """Return all tables of a suite as Markdown; the same rows make the same text."""
    parts = [_head(suite, rows)]
    if any(row.optimum is not None for row in rows):
        parts.append(_gaps(suite, rows))
    if is_sweep(suite):
        parts.append(fronts_table(suite, rows))
    else:
        parts += [
            text for text in (endpoints_table(suite, rows), *_gain_tables(suite, rows)) if text
        ]
        parts += [text for text in (_anytime(suite, rows), quality_table(suite, rows)) if text]
    parts += [text for text in (_failures(rows), _contradictions(rows)) if text]
    return "\n\n".join(parts) + "\n"


def _head(suite: Suite, rows: Sequence[Row]) -> str:
    """Return what was run, where and with what."""
    failed = sum(bool(row.failure) for row in rows)
    commits = _listed({row.commit[:10] + ("+" if row.commit.endswith("+") else "") for row in rows})
    machines = [row.machine for row in rows]
    processors = {f"{one.get('processor')}, {one.get('cores')} cores" for one in machines}
    loads = [load for one in machines if isinstance(load := one.get("load"), float)]
    splits = _listed({row.split for row in rows})
    return (
        f"{suite.about}\n\n"
        f"{len(rows):,} runs, {failed:,} of them failed; {len({r.graph for r in rows}):,} graphs of"
        f" {len({r.family for r in rows}):,} families ({splits}), seeds"
        f" {min(suite.seeds)} to {max(suite.seeds)}. regal {_listed({r.version for r in rows})},"
        f" commit {commits or 'unknown'}, {_listed(processors)}, load {_range(loads)}."
    )


def _range(numbers: Sequence[float]) -> str:
    """Return the least and the largest of some numbers, -1 standing for unknown."""
    known = [number for number in numbers if number >= 0]
    return f"{min(known):.0f} to {max(known):.0f}" if known else "unknown"


def _gain_tables(suite: Suite, rows: Sequence[Row]) -> list[str]:
    """Return the gains over each reference, then those of groups of graphs, then of families."""
    tables = []
    for reference in suite.references:
        found = comparisons(suite, rows, reference)
        if found:
            tables.append(_gains(found))
    for grouping in suite.groups:
        for reference in suite.references:
            named = grouped(suite, rows, reference, grouping)
            if named:
                tables.append(_group_gains(grouping, named))
    if suite.per_family:
        tables.append(_families(suite, comparisons(suite, rows, suite.references[0])))
    return tables


def _gains(found: Sequence[Comparison]) -> str:
    lines = [
        f'Gain in percent over {found[0].against}. "Of best" is the share of what the best run of'
        ' any method gains, "of bound" of what proven bounds leave. Intervals draw families.',
        "",
        GAINS_HEAD,
        GAINS_RULE,
        *(_gain_line(one, one.system) for one in found),
    ]
    return "\n".join(lines)


def _group_gains(grouping: str, found: Sequence[tuple[str, Comparison]]) -> str:
    lines = [
        f"The same over {found[0][1].against}, over all devices, told apart by {grouping}.",
        "",
        GAINS_HEAD.replace("devices", grouping, 1),
        GAINS_RULE,
        *(_gain_line(one, name) for name, one in found),
    ]
    return "\n".join(lines)


def _gain_line(one: Comparison, place: str) -> str:
    cells = [one.objective, place, one.budget, one.method]
    runs = f"{one.pairs} of {one.asked}"
    if one.alone or one.reference_alone:
        runs += f" (+{one.alone}/-{one.reference_alone})"
    if not one.cases:
        return line_of([*cells, *["-"] * 6, runs, "0"])
    interval = one.interval
    span = "" if interval is None else f" [{interval[0]:+.2f}, {interval[1]:+.2f}]"
    return line_of(
        [
            *cells,
            f"{one.mean:+.2f}{span}",
            f"{one.median:+.2f}",
            "/".join(map(str, one.outcomes)),
            percent_of(one.share_of_best),
            percent_of(one.share_of_bound),
            f"{one.cpu_seconds:.2f} ({one.reference_cpu_seconds:.2f})",
            runs,
            str(one.families),
        ]
    )


def _gaps(suite: Suite, rows: Sequence[Row]) -> str:
    """Return how far above known optima the methods end."""
    groups: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.optimum is not None or (row.failure and row.split == PLANTED_SPLIT):
            groups[row.objective, row.budget, row.method].append(row)
    lines = ["Gap to the known optimum, in percent of it.", "", GAPS_HEAD, GAPS_RULE]
    for objective in suite.objectives:
        for rule in suite.budgets:
            for method in suite.methods:
                group = groups.get((objective, rule.text, method.label), [])
                if group:
                    lines.append(line_of([objective, rule.text, method.label, *_gap_cells(group)]))
    return "\n".join(lines)


def _gap_cells(group: Sequence[Row]) -> list[str]:
    done = [row for row in group if not row.failure]
    gaps = [gap_of(row) for row in done]
    runs = f"{len(done)} of {len(group)}"
    if not done:
        return ["-", "-", "-", runs, "-"]
    return [
        f"{statistics.fmean(gaps):.3f}",
        f"{max(gaps):.3f}",
        f"{sum(gap == 0 for gap in gaps)}",
        runs,
        f"{statistics.fmean(row.cpu_seconds for row in done):.3f}",
    ]


def gap_of(row: Row) -> float:
    """Return by how many percent a row is above the known optimum; 0 where it reaches it."""
    if not row.optimum or is_tie(row.value, row.optimum):
        return 0.0
    return 100 * (row.value / row.optimum - 1)


def _families(suite: Suite, found: Sequence[Comparison]) -> str:
    """Return the mean gains per family of each method, over all systems.

    Each at its last budget of evaluations, or at its last one if it has none of evaluations.
    """
    if not found:
        return ""
    whole = [one for one in found if one.system == ALL_SYSTEMS] or list(found)
    counted = {rule.text for rule in suite.budgets if rule.evaluations and not rule.seconds_of}
    whole.sort(key=lambda one: one.budget in counted)  # stable: the last one is taken
    last = {(one.objective, one.method): one for one in whole if one.cases}
    last = {key: last[key] for key in sorted(last, key=lambda key: _rank(suite, *key))}
    names = sorted({case.family for one in last.values() for case in one.cases})
    if len(names) < 2:
        return ""
    heads = [f"{method}, {objective}" for objective, method in last]
    lines = [
        f"Mean gain per family over {found[0].against}, at the last budget of evaluations; in"
        " brackets: graphs and systems.",
        "",
        line_of(["family", *heads]),
        "|---|" + "--:|" * len(heads),
    ]
    tables = [by_family(one) for one in last.values()]
    for name in names:
        cells = [
            f"{table[name][0]:+.2f} ({table[name][1]})" if name in table else "-"
            for table in tables
        ]
        lines.append(line_of([name, *cells]))
    return "\n".join(lines)


def _rank(suite: Suite, objective: str, method: str) -> tuple[int, int]:
    labels = [entry.label for entry in suite.methods]
    return suite.objectives.index(objective), labels.index(method)


def _anytime(suite: Suite, rows: Sequence[Row]) -> str:
    """Return how far above the best known value each method is after so many evaluations."""
    grid = grid_of(rows)
    if len(grid) < 2:
        return ""
    lines = [
        "Mean percent above the best value that any run found, after so many evaluations"
        " (geometric). Points are there where all runs have a value by then.",
        "",
        line_of(["objective", "method", "runs", *(f"{n:,}" for n in grid)]),
        "|---|---|" + "--:|" * (1 + len(grid)),
    ]
    for objective in suite.objectives:
        for method, curve in curves_of(suite, rows, objective).items():
            at = dict(curve.points)
            cells = [f"{at[n]:.2f}" if n in at else "-" for n in grid]
            lines.append(line_of([objective, method, f"{curve.runs} of {curve.asked}", *cells]))
    return "\n".join(lines)


def _failures(rows: Iterable[Row]) -> str:
    """Return which runs failed and why, the most frequent first."""
    kinds: Counter[tuple[str, str, str]] = Counter()
    example: dict[tuple[str, str, str], str] = {}
    for row in rows:
        if row.failure:
            key = (row.method, row.budget, _kind(row.failure))
            kinds[key] += 1
            example.setdefault(key, f"{row.graph}: {row.failure}")
    if not kinds:
        return ""
    ranked = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    lines = ["Failures:", "", FAILURES_HEAD, FAILURES_RULE]
    for key, count in ranked[:MOST_FAILURES]:
        method, budget, kind = key
        lines.append(line_of([method, budget, str(count), kind, _cell(example[key])]))
    rest = sum(count for _, count in ranked[MOST_FAILURES:])
    if rest:
        lines += ["", f"{rest:,} further failures of {len(ranked) - MOST_FAILURES} kinds."]
    return "\n".join(lines)


def _contradictions(rows: Sequence[Row]) -> str:
    found = contradictions(rows)
    if not found:
        return ""
    return "\n".join(["Bounds that a run contradicts:", "", *(f"- {line}" for line in found)])


def _kind(failure: str) -> str:
    """Return a reason without its numbers."""
    text = "".join("N" if c.isdigit() else c for c in failure)
    while "NN" in text or "N,N" in text or "N.N" in text:
        text = text.replace("NN", "N").replace("N,N", "N").replace("N.N", "N")
    return _cell(text)


def _cell(text: str) -> str:
    return text[:MOST_REASON].replace("|", "/")


def _listed(texts: set[str]) -> str:
    return ", ".join(sorted(text for text in texts if text))
