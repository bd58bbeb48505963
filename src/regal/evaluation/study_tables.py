"""Tables of a study: tested comparisons, time to quality, and time against memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from regal.evaluation.endpoints import primary_of, secondary_of
from regal.evaluation.pareto import fronts
from regal.evaluation.quality import reached

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from regal.evaluation.endpoints import Tested
    from regal.evaluation.pareto import Front
    from regal.evaluation.quality import Reached
    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Suite

TESTS_HEAD = (
    "| comparison | objective | devices | budget | gain [95 %] | median | better/equal/worse | p |"
    " corrected | significant |"
)
TESTS_RULE = "|---|---|---|---|--:|--:|--:|--:|--:|---|"
QUALITY_HEAD = (
    "| objective | within | method | reached [95 %] | evaluations | CPU s | times as long | runs |"
)
QUALITY_RULE = "|---|---|---|--:|--:|--:|--:|--:|"
FRONTS_HEAD = (
    "| budget | method | over | hypervolume | gain [95 %] | better/equal/worse |"
    " of all together | runs | families |"
)
FRONTS_RULE = "|---|---|---|--:|--:|--:|--:|--:|--:|"
LEVEL = 0.05  # of significance


def endpoints_table(suite: Suite, rows: Sequence[Row]) -> str:
    """Return the primary comparison and the others with corrected p-values; "": none is tested."""
    first, others = primary_of(suite, rows), secondary_of(suite, rows)
    if suite.primary is None and not others:
        return ""
    lines = [
        "Tested comparisons. The primary one was named before the run; p-values of the others are"
        f" corrected for their number, {len(others)}, by Holm's method. Intervals are not"
        " corrected.",
        "",
        TESTS_HEAD,
        TESTS_RULE,
    ]
    if first is not None:
        lines.append(_test_line(first, "primary: "))
    elif suite.primary is not None:
        lines.append(line_of(["primary: too few families", *"---------"]))
    lines += [_test_line(one, "") for one in others]
    return "\n".join(lines)


def quality_table(suite: Suite, rows: Sequence[Row]) -> str:
    """Return when methods come close to the best values; "": the suite does not ask."""
    if not suite.within:
        return ""
    found = reached(suite, rows)
    main = suite.references[0].method
    times = {(one.objective, one.percent): one.seconds for one in found if one.method == main}
    lines = [
        "How soon a method comes so close to the best value that any run of the problem found:"
        " share of the runs that do, median evaluations and CPU seconds (`>`: at most half do"
        f" within their longest run), and the ratio of the seconds to those of {main}. All methods"
        " are looked at when their budgets end.",
        "",
        QUALITY_HEAD,
        QUALITY_RULE,
        *(_quality_line(one, times.get((one.objective, one.percent))) for one in found),
    ]
    return "\n".join(lines)


def fronts_table(suite: Suite, rows: Sequence[Row]) -> str:
    """Return what methods offer between time and memory."""
    found = {one.method: fronts(suite, rows, one.method) for one in suite.references}
    heads = [f"{objective}: time, peak" for objective in suite.objectives]
    lines = [
        "Time against memory, one point per objective. The hypervolume is the area between the"
        ' points and 110 % of the "before" in both, in percent of what proven bounds leave;'
        " gains are percentage points.",
        "",
        FRONTS_HEAD,
        FRONTS_RULE,
    ]
    for reference in suite.references:
        against = reference.method
        for one in found[against]:
            is_meant = not reference.methods or one.method in reference.methods
            if one.method != against and is_meant:
                lines.append(_front_line(one, against))
    lines += [
        "",
        'The points themselves: geometric means in percent of the "before".',
        "",
        line_of(["budget", "method", "hypervolume", *heads]),
        "|---|---|--:|" + "--:|" * len(heads),
        *(_point_line(one, suite.objectives) for one in found[suite.references[0].method]),
    ]
    return "\n".join(lines)


def line_of(cells: Iterable[str]) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def percent_of(share: float | None) -> str:
    """Return a share in percent, "-" where there is none."""
    return "-" if share is None else f"{100 * share:.0f} %"


def _test_line(one: Tested, kind: str) -> str:
    found = one.comparison
    against = found.against.removesuffix(" at the same budget")
    interval = found.interval or (math.nan, math.nan)
    return line_of(
        [
            f"{kind}{found.method} over {against}",
            found.objective,
            found.system,
            found.budget,
            f"{found.mean:+.2f} [{interval[0]:+.2f}, {interval[1]:+.2f}]",
            f"{found.median:+.2f}",
            "/".join(map(str, found.outcomes)),
            _chance(one.p),
            _chance(one.corrected),
            _verdict(one),
        ]
    )


def _verdict(one: Tested) -> str:
    if one.corrected >= LEVEL:
        return "no"
    return "better" if one.comparison.mean > 0 else "worse"


def _chance(p: float) -> str:
    return f"{p:.3f}" if p >= 0.01 else f"{p:.4f}"


def _quality_line(one: Reached, main: float | None) -> str:
    span = "" if one.interval is None else f" [{max(one.interval[0], 0):.0f}, "
    span += "" if one.interval is None else f"{min(one.interval[1], 100):.0f}]"
    is_known = math.isfinite(one.seconds)
    seconds = one.seconds if is_known else one.longest
    sign = "" if is_known else "> "
    ratio = "-"
    if main is not None and math.isfinite(main) and main > 0:
        ratio = f"{sign}{seconds / main:.1f}"
    return line_of(
        [
            one.objective,
            f"{one.percent:g} %",
            one.method,
            f"{one.share:.0f} %{span}",
            f"{one.evaluations:,.0f}" if is_known else "-",
            f"{sign}{seconds:.2f}",
            ratio,
            str(one.runs),
        ]
    )


def _front_line(one: Front, against: str) -> str:
    span = "" if one.interval is None else f" [{one.interval[0]:+.2f}, {one.interval[1]:+.2f}]"
    return line_of(
        [
            one.budget,
            one.method,
            against,
            f"{one.volume:.1f} %",
            f"{one.gain:+.2f}{span}",
            "/".join(map(str, one.outcomes)),
            f"{one.of_best:.0f} %",
            f"{one.runs} of {one.asked}",
            str(one.families),
        ]
    )


def _point_line(one: Front, objectives: Sequence[str]) -> str:
    points = [one.points[objective] for objective in objectives]
    cells = [f"{100 * time:.1f}, {100 * peak:.1f}" for time, peak in points]
    return line_of([one.budget, one.method, f"{one.volume:.1f} %", *cells])
