"""Build markup in which every name from a model file is text, whatever it holds."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

NUMBER = {"class": "number"}  # digits stand below those of the other rows
_NUMBER = '<td class="number'


class Html(str):
    """Markup. A plain `str` is text and gets escaped."""

    __slots__ = ()


def element(name: str, attributes: Mapping[str, str] | None = None, *children: str) -> Html:
    """Return an element; attribute values and children that are no `Html` are escaped."""
    pairs = "".join(f' {key}="{escaped(value)}"' for key, value in (attributes or {}).items())
    return Html(f"<{name}{pairs}>{joined(children)}</{name}>")


def joined(parts: Iterable[str]) -> Html:
    """Return the parts one after the other."""
    return Html("".join(part if isinstance(part, Html) else escaped(part) for part in parts))


def escaped(text: str) -> Html:
    """Return text as markup that shows it; what cannot be printed is shown as U+FFFD."""
    shown = "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text)
    return Html(html.escape(shown))


def table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> Html:
    """Return a table in a box that scrolls; a cell that is no `td` or `th` becomes a `td`.

    A title stands where the digits of the first row do.
    """
    lines = [[_cell(cell) for cell in row] for row in rows]
    digits = {i for i, cell in enumerate(lines[0] if lines else ()) if cell.startswith(_NUMBER)}
    titles = (
        element("th", {"scope": "col", **(NUMBER if i in digits else {})}, title)
        for i, title in enumerate(head)
    )
    body = joined(element("tr", None, *line) for line in lines)
    parts = [element("thead", None, element("tr", None, *titles)), element("tbody", None, body)]
    return element("div", {"class": "scroll"}, element("table", None, *parts))


def number(text: str) -> Html:
    """Return a table cell for a number."""
    return element("td", NUMBER, text)


def data_block(name: str, value: object) -> Html:
    """Return a block of JSON that the page reads; no string in it can end the block.

    Raises:
        ValueError: a number is not finite, which JSON cannot say.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(f'<script type="application/json" id="{escaped(name)}">{text}</script>')


def _cell(cell: str) -> Html:
    if isinstance(cell, Html) and cell.startswith(("<td", "<th")):
        return cell
    return element("td", None, cell)
