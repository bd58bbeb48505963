"""Still pictures of memory, for readers without JavaScript."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.report.format import short_bytes
from regal.report.html import Html, element

if TYPE_CHECKING:
    from regal.report.story import Curve, Story

WIDTH = 1000
HEIGHT = 160
MOST_COLUMNS = 500  # points of a curve that a picture of this width can tell apart


def memory_picture(story: Story, device: int) -> Html:
    """Return the live memory of a device over time, before and after, as an SVG element."""
    top = max(1, *(side.curves[device].peak for _, side in story.sides))
    shapes = []
    for label, side in story.sides:
        points = _corners(side.curves[device], max(1, story.end), top)
        shapes.append(element("polyline", {"class": f"curve {label}", "points": points}))
    peaks = [short_bytes(side.curves[device].peak) for _, side in story.sides]
    name = story.places[device].name
    title = f"Live memory of {name}: the peak is {peaks[0]} before and {peaks[1]} after"
    return element(
        "svg",
        {
            "class": "still",
            "viewBox": f"0 0 {WIDTH} {HEIGHT}",
            "preserveAspectRatio": "none",
            "role": "img",
            "aria-label": title,
        },
        *shapes,
    )


def _corners(curve: Curve, end: int, top: int) -> str:
    """Return the points of a step curve, from each column its highest level."""
    columns: dict[int, int] = {}
    for i, (time, level) in enumerate(zip(curve.times, curve.levels, strict=True)):
        until = curve.times[i + 1] if i + 1 < len(curve.times) else end
        first = time * MOST_COLUMNS // end
        last = max(first, (until * MOST_COLUMNS - 1) // end)
        for column in range(first, min(last, MOST_COLUMNS - 1) + 1):
            columns[column] = max(columns.get(column, 0), level)
    points = []
    step = WIDTH / MOST_COLUMNS
    previous = -1
    for column in range(MOST_COLUMNS):
        level = columns.get(column, 0)
        if level != previous:
            if previous >= 0:
                points.append(f"{column * step:g},{_height(previous, top):.1f}")
            points.append(f"{column * step:g},{_height(level, top):.1f}")
            previous = level
    points.append(f"{WIDTH},{_height(previous, top):.1f}")
    return " ".join(points)


def _height(level: int, top: int) -> float:
    return HEIGHT - 1 - level / top * (HEIGHT - 2)
