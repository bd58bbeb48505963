"""Pictures of a data set: bar charts as SVG, without any library."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROW, BAR, LABEL, MARGIN = 20, 420, 190, 12  # pixels
COLORS: Final = {"train": "#4c78a8", "valid": "#f58518", "test": "#54a24b", "transfer": "#b279a2"}
PLAIN: Final = "#4c78a8"
TITLES: Final = {
    "by_split": "Graphs by side of the split",
    "by_framework": "Graphs by framework",
    "by_source": "Graphs by source",
    "by_mode": "Graphs by mode",
    "by_size": "Graphs by number of ops",
    "by_family": "Graphs by family",
}


def plots_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return file name -> SVG for every histogram of a summary."""
    return {f"{key}.svg": bar_chart(title, document[key]) for key, title in TITLES.items()}


def bar_chart(title: str, counts: Mapping[str, int]) -> str:
    """Return a picture of horizontal bars, one per name, with its number beside it."""
    top = max(counts.values(), default=1) or 1
    height = 2 * MARGIN + ROW * (len(counts) + 1)
    width = 2 * MARGIN + LABEL + BAR + 60
    rows = [
        f'<text x="{MARGIN}" y="{MARGIN + 12}" font-weight="bold">{escape(title)}</text>',
    ]
    for i, (name, n) in enumerate(counts.items(), start=1):
        y = MARGIN + i * ROW
        length = round(BAR * n / top, 1)
        color = COLORS.get(name, PLAIN)
        rows += [
            f'<text x="{MARGIN + LABEL - 6}" y="{y + 14}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{MARGIN + LABEL}" y="{y + 3}" width="{length}" height="{ROW - 6}"'
            f' fill="{color}"/>',
            f'<text x="{MARGIN + LABEL + length + 6}" y="{y + 14}">{n:,}</text>',
        ]
    return picture(title, width, height, rows)


def picture(title: str, width: int, height: int, rows: Iterable[str]) -> str:
    """Return an SVG file of so many pixels with these elements; readers hear the title."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" font-family="sans-serif" font-size="12" role="img"'
        f' aria-label="{escape(title)}">\n' + "\n".join(rows) + "\n</svg>\n"
    )
