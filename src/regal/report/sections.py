"""The parts of a page that tell one story: memory, devices, tensors at the peak, layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.report import format as fmt
from regal.report.data import storage_facts
from regal.report.html import Html, element, escaped, number, table
from regal.report.story import NO_STORAGE, Clock
from regal.report.summary import datum
from regal.report.svg import memory_picture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.report.story import Held, Side, Story

MOST_ROWS = 12  # of tensors at the peak; the page lists all of any moment on request
NEEDS_SCRIPT = "This chart is drawn by JavaScript, which is off."


def story_sections(root: Mapping[str, Any], story: Story, index: int) -> Html:
    """Return the sections of story number `index`."""
    attributes = {"class": "story", "data-story": str(index)}
    heading = element("h2", {"class": "entry"}, f"Entry “{fmt.clipped(story.graph.name)}”")
    return element(
        "div",
        attributes,
        heading if len(root["stories"]) > 1 else Html(""),
        Html('<div class="toolbar" hidden></div>'),
        _memory(root, story, index),
        _timeline(story),
        _peaks(root, story, index),
        _devices(root, story, index),
        _layout(story),
    )


def _section(title: str, hint: str, *parts: str) -> Html:
    return element(
        "section",
        None,
        element("h2", None, title),
        element("p", {"class": "hint"}, hint),
        *parts,
    )


def _memory(root: Mapping[str, Any], story: Story, index: int) -> Html:
    axis = "time" if story.clock is Clock.NS else "the steps of the plan"
    used = [
        any(side.peak_bytes[device] for _, side in story.sides)
        for device in range(len(story.places))
    ]
    figures = [_memory_figure(root, story, index, d) for d, is_used in enumerate(used) if is_used]
    idle = [place.name for place, is_used in zip(story.places, used, strict=True) if not is_used]
    return _section(
        "Memory",
        f"Bytes that are live on each device over {axis}. Parameters and state are not part of it.",
        Html('<ul class="legend memory-legend"></ul>'),
        *figures,
        element("p", {"class": "hint"}, f"Never hold anything: {', '.join(idle)}." if idle else ""),
        Html('<div class="moment" hidden></div>'),
    )


def _memory_figure(root: Mapping[str, Any], story: Story, index: int, device: int) -> Html:
    peaks = [
        datum(root, f"stories.{index}.sides.{label}.peak_bytes.{device}", "bytes")
        for label, _ in story.sides
    ]
    caption = element(
        "figcaption",
        None,
        element("b", None, story.places[device].name),
        " peak ",
        element("span", {"class": "key before"}, peaks[0]),
        " → ",
        element("span", {"class": "key after"}, peaks[1]),
    )
    chart = element(
        "div",
        {"class": "chart", "data-chart": "memory", "data-device": str(device)},
        memory_picture(story, device),
    )
    return element("figure", None, caption, chart)


def _timeline(story: Story) -> Html:
    if story.clock is Clock.NS:
        title = "Devices and links" if len(story.places) > 1 else "Timeline"
        hint = "What each device runs and each link carries, before and after, on one scale of time"
        sources = sorted(set(story.sources))
        hint += f". Op times come from: {', '.join(sources)}." if sources else "."
    else:
        title = "Order"
        hint = "The ops in the order in which they run; how long each takes is not known."
    chart = element("div", {"class": "chart", "data-chart": "timeline"}, _script_needed())
    return _section(title, hint, Html('<ul class="legend kind-legend"></ul>'), chart)


def _peaks(root: Mapping[str, Any], story: Story, index: int) -> Html:
    parts = []
    for device, place in enumerate(story.places):
        if not any(side.peak_bytes[device] for _, side in story.sides):
            continue
        tables = [
            _peak_table(root, story, f"stories.{index}.sides.{label}", device, label, side)
            for label, side in story.sides
        ]
        name = element("h3", None, place.name) if len(story.places) > 1 else Html("")
        parts += [name, element("div", {"class": "pair"}, *tables)]
    return _section(
        "Tensors at the peak", "What is live when each device needs most, largest first.", *parts
    )


def _peak_table(
    root: Mapping[str, Any], story: Story, path: str, device: int, label: str, side: Side
) -> Html:
    live = side.held_at(device, side.curves[device].peak_time)
    facts = storage_facts(story.graph)
    rows: list[list[str]] = []
    for held in live[:MOST_ROWS]:
        maker = story.graph.ops[held.op].name if held.op >= 0 else "graph input"
        name = "workspace" if held.storage == NO_STORAGE else facts[held.storage][0]
        kind = "" if held.storage == NO_STORAGE else facts[held.storage][1]
        first = element(
            "td",
            None,
            element("span", {"class": "name"}, fmt.clipped(name)),
            element("span", {"class": "type"}, kind),
        )
        rows.append([first, number(f"{held.bytes:,}"), _name_cell(maker), _lifetime(story, held)])
    rest = live[MOST_ROWS:]
    if rest:
        total = sum(held.bytes for held in rest)
        rows.append([f"{len(rest)} more", number(f"{total:,}"), "", ""])
    head = ["tensor", "bytes", "made by", "lives"]
    when = _moment(story, side.curves[device].peak_time) if rows else "never holds anything"
    caption = element(
        "p",
        {"class": f"side {label}"},
        element("b", None, label),
        f": {when}, ",
        datum(root, f"{path}.peak_bytes.{device}", "bytes"),
    )
    return element("div", None, caption, table(head, rows) if rows else Html(""))


def _devices(root: Mapping[str, Any], story: Story, index: int) -> Html:
    timed = ["busy", "of the time"] if story.clock is Clock.NS else []
    head = ["device", "plan", "ops", *timed, "parameters and state", "peak", "arena"]
    head += ["capacity", "left"]
    rows: list[list[str]] = []
    for device, place in enumerate(story.places):
        for label, side in story.sides:
            path = f"stories.{index}.sides.{label}"
            runs = [run for run in side.runs if run.device == device]
            busy = sum(run.end - run.start for run in runs)
            share = f"{100 * busy / side.end:.1f} %" if side.end else fmt.NOTHING
            first = place.name if label == "before" else ""
            row: list[str] = [element("th", {"scope": "row"}, first)]
            row.append(element("td", {"class": f"side {label}"}, label))
            row.append(number(f"{len(runs):,}"))
            row += [number(text) for text in (fmt.duration(busy), share)[: len(timed)]]
            for key in ("resident_bytes", "peak_bytes", "arena_bytes"):
                row.append(number(datum(root, f"{path}.{key}.{device}", "short")))
            row += _room(story, side, device)
            rows.append(row)
    return _section(
        "Devices",
        "What the plan puts on each device. Left: capacity without peak, parameters, and state.",
        table(head, rows),
    )


def _room(story: Story, side: Side, device: int) -> list[str]:
    limit = story.places[device].memory_bytes
    if limit is None:
        return [number("no limit"), number(fmt.NOTHING)]
    live = side.peak_bytes[device] if story.capacity_counts_live else 0
    left = limit - live - side.resident_bytes[device]
    text = fmt.short_bytes(left) if left >= 0 else f"{fmt.short_bytes(-left)} too much"
    attributes = {"class": "number" if left >= 0 else "number failure"}
    return [number(fmt.short_bytes(limit)), element("td", attributes, text)]


def _layout(story: Story) -> Html:
    parts = []
    for device, place in enumerate(story.places):
        if not any(side.arena_bytes[device] for _, side in story.sides):
            continue
        charts = [
            element(
                "figure",
                None,
                element("figcaption", {"class": f"side {label}"}, element("b", None, label)),
                element(
                    "div",
                    {
                        "class": "chart",
                        "data-chart": "layout",
                        "data-device": str(device),
                        "data-side": label,
                    },
                    _script_needed(),
                ),
            )
            for label, _ in story.sides
        ]
        name = element("h3", None, place.name) if len(story.places) > 1 else Html("")
        parts += [name, element("div", {"class": "pair"}, *charts)]
    return _section(
        "Memory layout",
        "Where each buffer lies in the arena (up) and when (to the right), in the color of the op"
        " that makes it; graph inputs and workspaces are gray.",
        *parts,
    )


def _lifetime(story: Story, held: Held) -> Html:
    if story.clock is Clock.STEP:
        return number(fmt.steps(held.start, held.end - 1))
    return number(fmt.lifetime(held.start, held.end))


def _moment(story: Story, time: int) -> str:
    return f"step {time:,}" if story.clock is Clock.STEP else f"at {fmt.duration(time)}"


def _name_cell(name: str) -> Html:
    return element("td", None, element("span", {"class": "name"}, fmt.clipped(name)))


def _script_needed() -> Html:
    return element("p", {"class": "hint"}, escaped(NEEDS_SCRIPT))
