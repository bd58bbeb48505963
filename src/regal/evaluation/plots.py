"""Pictures of a comparison as SVG, without any library: anytime curves, gains with intervals."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Final

from regal.data.plots import picture
from regal.evaluation.compare import comparisons
from regal.evaluation.curves import curves_of
from regal.evaluation.pareto import fronts, is_sweep
from regal.evaluation.suite import ALL_SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.evaluation.compare import Comparison
    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Suite

WIDTH, HEIGHT = 640, 360  # pixels of a chart
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 34, 44
ROW, LABEL, BAR = 22, 250, 320
MARGIN = 12
COLORS: Final = (
    "#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b",
)  # fmt: skip
GRAY = "#999"
LEAST_PERCENT = 0.01  # what is below lies on the axis: it is logarithmic


def plots_of(suite: Suite, rows: Sequence[Row]) -> dict[str, str]:
    """Return file name -> SVG: per objective the anytime curves and gains; or the front of all."""
    found = {}
    if is_sweep(suite):
        offers = fronts(suite, rows, suite.references[0].method)
        is_one = len({one.budget for one in offers}) == 1
        offered = {
            one.method if is_one else f"{one.method}, {one.budget}": list(one.points.values())
            for one in offers
        }
        if offered:
            title = f'{suite.name}: time and peak memory, percent of the "before"'
            found[f"{suite.name}_front.svg"] = front_chart(title, offered)
        return found
    main = comparisons(suite, rows, suite.references[0])
    for objective in suite.objectives:
        curves = curves_of(suite, rows, objective)
        lines = {name: curve.points for name, curve in curves.items()}
        if any(len(points) > 1 for points in lines.values()):
            title = f"{suite.name}: {objective}, percent above the best known"
            found[f"{suite.name}_anytime_{objective}.svg"] = line_chart(title, lines)
        gains = [one for one in main if one.objective == objective and one.cases]
        whole = [one for one in gains if one.system == ALL_SYSTEMS] or gains
        if whole:
            title = f"{suite.name}: {objective}, gain in percent over {whole[0].against}"
            found[f"{suite.name}_gain_{objective}.svg"] = gain_chart(title, whole)
    return found


def line_chart(title: str, lines: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """Return a picture of percent over evaluations, both axes logarithmic."""
    points = [point for line in lines.values() for point in line]
    low_x, high_x = _decades([n for n, _ in points])
    low_y, high_y = _decades([max(percent, LEAST_PERCENT) for _, percent in points])

    def x_of(n: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(n) - low_x) / (high_x - low_x), 1)

    def y_of(percent: float) -> float:
        share = (math.log10(max(percent, LEAST_PERCENT)) - low_y) / (high_y - low_y)
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)

    rows = [_text(MARGIN, 20, title, weight="bold")]
    for power in range(low_x, high_x + 1):
        x = x_of(10**power)
        rows += [
            _line(x, TOP, x, HEIGHT - BOTTOM),
            _text(x, HEIGHT - BOTTOM + 16, f"{10**power:,}", anchor="middle"),
        ]
    for power in range(low_y, high_y + 1):
        y = y_of(10**power)
        rows += [
            _line(LEFT, y, WIDTH - RIGHT, y),
            _text(LEFT - 6, y + 4, f"{10.0**power:g} %", anchor="end"),
        ]
    middle = (LEFT + WIDTH - RIGHT) / 2
    rows.append(_text(middle, HEIGHT - 8, "evaluations", anchor="middle"))
    placed = {
        name: [(x_of(n), y_of(percent)) for n, percent in line] for name, line in lines.items()
    }
    return picture(title, WIDTH, HEIGHT, rows + _lines_with_dots(placed, radius=2.5))


def front_chart(title: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Return a picture of time and peak, one line per method through its points.

    Args:
        title: of the picture.
        lines: name -> (time, peak), as shares of the "before".
    """
    points = [point for line in lines.values() for point in line]
    (low_x, step_x, high_x), (low_y, step_y, high_y) = (
        _tenths([point[axis] for point in points]) for axis in (0, 1)
    )

    def x_of(share: float) -> float:
        width = WIDTH - LEFT - RIGHT
        return round(LEFT + width * (share - low_x) / (high_x - low_x), 1)

    def y_of(share: float) -> float:
        height = HEIGHT - TOP - BOTTOM
        return round(HEIGHT - BOTTOM - height * (share - low_y) / (high_y - low_y), 1)

    rows = [_text(MARGIN, 20, title, weight="bold")]
    for i in range(round((high_x - low_x) / step_x) + 1):
        share = low_x + i * step_x
        rows += [
            _line(x_of(share), TOP, x_of(share), HEIGHT - BOTTOM),
            _text(x_of(share), HEIGHT - BOTTOM + 16, f"{100 * share:.0f} %", anchor="middle"),
        ]
    for i in range(round((high_y - low_y) / step_y) + 1):
        share = low_y + i * step_y
        rows += [
            _line(LEFT, y_of(share), WIDTH - RIGHT, y_of(share)),
            _text(LEFT - 6, y_of(share) + 4, f"{100 * share:.0f} %", anchor="end"),
        ]
    rows.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "running time", anchor="middle"))
    rows.append(_text(LEFT + 6, TOP + 14, "peak memory"))
    placed = {
        name: [(x_of(time), y_of(peak)) for time, peak in line] for name, line in lines.items()
    }
    return picture(title, WIDTH, HEIGHT, rows + _lines_with_dots(placed, radius=3))


def gain_chart(title: str, found: Sequence[Comparison]) -> str:
    """Return a picture of mean gains with their intervals, one row each."""
    ends = [0.0]
    for one in found:
        ends += [one.mean, *(one.interval or ())]
    low, high = min(ends), max(ends)
    span = (high - low) or 1.0

    def x_of(gain: float) -> float:
        return round(MARGIN + LABEL + BAR * (gain - low) / span, 1)

    height = 2 * MARGIN + ROW * (len(found) + 1)
    rows = [_text(MARGIN, MARGIN + 12, title, weight="bold")]
    rows.append(_line(x_of(0), MARGIN + ROW, x_of(0), height - MARGIN))
    for i, one in enumerate(found, start=1):
        y = MARGIN + i * ROW + ROW / 2
        color = COLORS[0] if one.mean >= 0 else COLORS[4]
        name = f"{one.method}, {one.budget}"
        rows.append(_text(MARGIN + LABEL - 8, y + 4, name, anchor="end"))
        if one.interval is not None:
            rows.append(_line(x_of(one.interval[0]), y, x_of(one.interval[1]), y, color, 3))
        rows += [
            f'<circle cx="{x_of(one.mean)}" cy="{y}" r="4.5" fill="{color}"/>',
            _text(MARGIN + LABEL + BAR + 12, y + 4, f"{one.mean:+.2f}"),
        ]
    return picture(title, 2 * MARGIN + LABEL + BAR + 80, height, rows)


def _lines_with_dots(
    lines: Mapping[str, Sequence[tuple[float, float]]], *, radius: float
) -> list[str]:
    """Return a line of its own color per name through its points (pixels), and the names."""
    rows = []
    for i, (name, line) in enumerate(lines.items()):
        color = COLORS[i % len(COLORS)]
        path = " ".join(f"{x},{y}" for x, y in line)
        rows += [
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>',
            *(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{color}"/>' for x, y in line),
            _text(WIDTH - RIGHT + 10, TOP + 12 + 16 * i, name, color=color),
        ]
    return rows


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """Return the powers of ten around some values, two different ones."""
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _tenths(shares: Sequence[float]) -> tuple[float, float, float]:
    """Return where an axis begins, its step, and where it ends: multiples of a tenth or more."""
    low, high = math.floor(10 * min(shares)), math.ceil(10 * max(shares))
    high = max(high, low + 1)
    step = math.ceil((high - low) / 10)
    high = low + step * math.ceil((high - low) / step)
    return low / 10, step / 10, high / 10


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", weight: str = "", color: str = ""
) -> str:
    extra = f' font-weight="{weight}"' if weight else ""
    extra += f' fill="{color}"' if color else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{extra}>{escape(text)}</text>'


def _line(x: float, y: float, x2: float, y2: float, color: str = GRAY, width: float = 0.5) -> str:
    return f'<line x1="{x}" y1="{y}" x2="{x2}" y2="{y2}" stroke="{color}" stroke-width="{width}"/>'
