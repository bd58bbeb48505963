"""Reports: one HTML file that shows a result, complete and readable offline."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from regal.errors import PlanError
from regal.report import summary
from regal.report.data import story_to_dict
from regal.report.html import Html, data_block, element, escaped, joined
from regal.report.sections import story_sections

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.report.story import Story

# In the order in which they build on each other.
SCRIPTS = (
    "format.js",
    "data.js",
    "view.js",
    "input.js",
    "chart.js",
    "memory.js",
    "timeline.js",
    "layout.js",
    "moment.js",
    "toolbar.js",
    "main.js",
)


def report_html(
    document: Mapping[str, Any],
    stories: Sequence[Story],
    comparison: Mapping[str, Any] | None = None,
) -> str:
    """Return a page that shows a result; it asks no server for anything.

    The three arguments are embedded as JSON and the page draws from them, so that its numbers
    are those of the JSON. Tables and still pictures need no JavaScript.

    Args:
        document: the result (`regal.result/1`).
        stories: one per entry of the model.
        comparison: all methods side by side (`regal.comparison/1`).

    Raises:
        PlanError: document and stories do not speak of the same plans.

    Cost: O((N + buffers) log); about 200 bytes per op and the names.
    """
    require_same_peaks(document, stories)
    root = {
        "result": dict(document),
        "stories": [story_to_dict(story) for story in stories],
        "comparison": dict(comparison) if comparison is not None else None,
    }
    style = _asset("style.css")
    script = "(() => {\n'use strict';\n" + "\n".join(map(_asset, SCRIPTS)) + "\n})();"
    name = str(document.get("model", "model")).replace("\\", "/").rsplit("/", 1)[-1]
    return Template(_asset("page.html")).substitute(
        policy=_policy(style, script),
        title=escaped(f"{name}: REGAL report"),
        style=style,
        name=escaped(name),
        badges=summary.badges(document),
        cards=summary.cards(root),
        facts=summary.facts(root),
        stories=joined(story_sections(root, story, i) for i, story in enumerate(stories)),
        methods=_methods(root),
        verification=summary.verification(document),
        notes=_notes(document),
        data=joined(data_block(key, value) for key, value in root.items()),
        script=script,
    )


def require_same_peaks(document: Mapping[str, Any], stories: Sequence[Story]) -> None:
    """Return if the peaks of a result are those of its stories: a page has one truth.

    Raises:
        PlanError: they are not.
    """
    for label in ("before", "after"):
        told = max((max(dict(story.sides)[label].peak_bytes) for story in stories), default=None)
        claimed = document.get(label, {}).get("peak_bytes")
        if told is not None and claimed is not None and told != claimed:
            raise PlanError(
                f"result says that the peak {label} is {claimed} bytes; its plans reach {told}"
            )


def _methods(root: Mapping[str, Any]) -> Html:
    if root["comparison"] is None:
        return Html("")
    hint = "The same problem for each; the checker has judged every plan."
    return element(
        "section",
        None,
        element("h2", None, "Methods"),
        element("p", {"class": "hint"}, hint),
        summary.methods(root),
    )


def _notes(document: Mapping[str, Any]) -> Html:
    notes = document.get("notes", [])
    if not notes:
        return Html("")
    items = (element("li", None, str(note)) for note in notes)
    return element("section", None, element("h2", None, "Notes"), element("ul", None, *items))


def _policy(style: str, script: str) -> str:
    """Return a content security policy: our own style and script, by their hashes, no more."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _asset(name: str) -> str:
    return files("regal.report").joinpath("assets", name).read_text(encoding="utf-8")
