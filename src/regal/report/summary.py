"""The top of the page: what was planned, what was gained, and who says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regal.report import format as fmt
from regal.report.html import Html, element, escaped, joined, number, table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FORMS: Mapping[str, Callable[[Any], str]] = {
    "bytes": fmt.exact_bytes,
    "short": fmt.short_bytes,
    "duration": fmt.duration,
    "seconds": fmt.seconds,
    "count": lambda value: f"{value:,}",
    "text": str,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A figure of a plan, as the result document names it."""

    key: str
    title: str
    meaning: str
    proof: str  # its key in `optimal`
    proven: str  # what is proven then
    short: str  # forms
    exact: str


MEASURES = (
    Measure(
        key="peak_bytes",
        title="Peak memory",
        meaning="live bytes on the fullest device",
        proof="order",
        proven="peak memory",
        short="short",
        exact="bytes",
    ),
    Measure(
        key="arena_bytes",
        title="Arena",
        meaning="extent of the buffers once they are placed",
        proof="arena",
        proven="packing",
        short="short",
        exact="bytes",
    ),
    Measure(
        key="time_s",
        title="Running time",
        meaning="by the performance model",
        proof="time",
        proven="running time",
        short="seconds",
        exact="seconds",
    ),
)


def datum(root: Mapping[str, Any], path: str, form: str) -> Html:
    """Return the value at a path of what the page embeds; the page fills in the same again."""
    value = lookup(root, path)
    if value is None:
        return escaped(fmt.NOTHING)
    attributes = {"value": str(value), "data-from": path, "data-form": form}
    return element("data", attributes, FORMS[form](value))


def lookup(root: Mapping[str, Any], path: str) -> Any:
    """Return what lies at a path such as "result.after.peak_bytes"; None where nothing does."""
    value: Any = root
    for key in path.split("."):
        if isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            return None
    return value


def badges(document: Mapping[str, Any]) -> Html:
    """Return what a reader wants to know first, one badge each."""
    found = [
        (f"{measure.proven} proven optimal", "good")
        for measure in MEASURES
        if _is_optimal(document, measure)
    ]
    verified = document.get("verified")
    if verified:
        names = ", ".join(run["runtime"] for run in verified.get("runtimes", [verified]))
        if verified["outputs_equal"]:
            found.append((f"outputs equal in {names}", "good"))
        else:
            found.append((f"outputs differ in {names}", "bad"))
    else:
        found.append(("not run in a real runtime", "plain"))
    if "fits" in document:
        over = max(
            document.get(part, {}).get("overflow_bytes", 0) for part in ("capacity", "after")
        )
        text = "fits" if document["fits"] else f"{fmt.short_bytes(over)} too much"
        found.append((text, "good" if document["fits"] else "bad"))
    over = document.get("before", {}).get("overflow_bytes", 0)
    if over:
        found.append((f"without a plan {fmt.short_bytes(over)} too much", "plain"))
    return joined(element("li", {"class": f"badge {kind}"}, text) for text, kind in found)


def cards(root: Mapping[str, Any]) -> Html:
    """Return a card per figure that the result has."""
    return joined(
        _card(root, measure)
        for measure in MEASURES
        if lookup(root, f"result.after.{measure.key}") is not None
        and _is_decided(root["result"], measure)
    )


def _card(root: Mapping[str, Any], measure: Measure) -> Html:
    before, after, bound = (
        lookup(root, f"result.{part}.{measure.key}") for part in ("before", "after", "lower_bound")
    )
    pill = ""
    if before:
        kind = "good" if after < before else "bad" if after > before else "plain"
        pill = element("span", {"class": f"pill {kind}"}, fmt.change(before, after))
    rows = [
        _term("before", datum(root, f"result.before.{measure.key}", measure.exact)),
        _term("after", datum(root, f"result.after.{measure.key}", measure.exact)),
    ]
    if bound:
        shown = datum(root, f"result.lower_bound.{measure.key}", measure.exact)
        rows.append(_term("lower bound", shown))
        proven = "none: proven optimal" if after == bound else fmt.change(bound, after)
        rows.append(_term("above the bound", escaped(proven)))
    return element(
        "article",
        {"class": "card"},
        element("h2", None, measure.title),
        element("p", {"class": "meaning"}, measure.meaning),
        element(
            "p",
            {"class": "big"},
            datum(root, f"result.after.{measure.key}", measure.short),
            pill,
        ),
        _bars({"before": before or 0, "after": after}, bound or 0),
        element("dl", None, *rows),
    )


def _bars(values: Mapping[str, float], bound: float) -> Html:
    top = max(*values.values(), bound) or 1
    shapes = []
    for i, (label, value) in enumerate(values.items()):
        place = {"x": "0", "y": str(11 * i), "height": "8", "rx": "1"}
        width = f"{100 * value / top:.2f}"
        shapes.append(element("rect", {**place, "width": width, "class": label}))
    if bound:
        x = f"{100 * bound / top:.2f}"
        line = {"x1": x, "x2": x, "y1": "-1", "y2": "20", "class": "bound"}
        shapes.append(element("line", line))
    attributes = {"class": "bars", "viewBox": "0 -1 100 21", "preserveAspectRatio": "none"}
    return element("svg", {**attributes, "aria-hidden": "true"}, *shapes)


def facts(root: Mapping[str, Any]) -> Html:
    """Return what was planned and how, as a list of terms."""
    document = root["result"]
    places = root["stories"][0]["places"] if root["stories"] else []
    rows = [
        _term("model", escaped(str(document.get("model", "")))),
        _term("framework", escaped(str(document.get("framework", "")))),
        _term("ops", datum(root, "result.ops", "count")),
        _term("devices", escaped(_devices(places))),
        _term("objective", escaped(str(document.get("objective", "")))),
        _term("method", escaped(str(document.get("method", "")))),
        _term("seed", datum(root, "result.seed", "text")),
        _term("evaluations", datum(root, "result.evaluations", "count")),
        _term("search took", datum(root, "result.seconds", "seconds")),
        _term("op times from", escaped(_sources(document.get("cost_sources", {})))),
        _term("parameters", datum(root, "result.parameter_bytes", "bytes")),
        _term("state", datum(root, "result.state_bytes", "bytes")),
    ]
    capacity = document.get("capacity")
    if capacity:
        rows.append(_term("capacity", datum(root, "result.capacity.bytes", "bytes")))
    return element("dl", {"class": "facts"}, *rows)


def _devices(places: Sequence[Mapping[str, Any]]) -> str:
    """Return the names of the devices, those of one size together."""
    by_size: dict[int | None, list[str]] = {}
    for place in places:
        by_size.setdefault(place["memory_bytes"], []).append(place["name"])
    parts = []
    for size, names in by_size.items():
        each = " each" if len(names) > 1 else ""
        limit = "" if size is None else f" ({fmt.short_bytes(size)}{each})"
        parts.append(", ".join(names) + limit)
    return ", ".join(parts)


def _sources(counts: Mapping[str, int]) -> str:
    """Return where the times of how many ops come from."""
    return ", ".join(f"{name} ({count:,})" for name, count in counts.items()) or fmt.NOTHING


def verification(document: Mapping[str, Any]) -> Html:
    """Return what the real runtimes measured, or why none did."""
    verified = document.get("verified")
    if not verified:
        reason = document.get("verify_skipped") or "nobody asked"
        return element("p", None, f"No runtime has run this plan: {reason}.")
    rows: list[list[str]] = []
    for run in verified.get("runtimes", [verified]):
        verdict = "equal" if run["outputs_equal"] else "DIFFERENT"
        first = [str(run["runtime"]), f"outputs {verdict} in {run['invocations']:,} runs"]
        measured: list[tuple[str, float | None, float | None]] = [
            (key, run["before"].get(key), value)
            for key, value in run["after"].items()
            if isinstance(value, int | float)
        ]
        for key, before, after in measured or [("", None, None)]:
            rows.append([*first, *_measured(key, before, after)])
            first = ["", ""]
        if run.get("detail"):
            rows.append(["", str(run["detail"]), "", number(""), number(""), number("")])
    head = ["runtime", "verdict", "measured", "before", "after", "change"]
    parts = [table(head, rows)]
    if verified.get("skipped"):
        parts.append(element("p", None, f"Skipped: {verified['skipped']}."))
    return joined(parts)


def methods(root: Mapping[str, Any]) -> Html:
    """Return the table of `regal compare`; columns that no method fills are left out."""
    rows: Sequence[Mapping[str, Any]] = root["comparison"]["methods"]
    columns = [
        ("time_s", "running time", "seconds"),
        ("peak_bytes", "peak memory", "bytes"),
        ("arena_bytes", "arena", "bytes"),
        ("overflow_bytes", "overflow", "bytes"),
        ("gap", "above bound", "gap"),
        ("relative", "above the best", "relative"),
        ("evaluations", "evaluations", "count"),
        ("seconds", "search took", "seconds"),
    ]
    used = [c for c in columns if any(row.get(c[0]) is not None for row in rows)]
    lines = []
    for i, row in enumerate(rows):
        mark = " ★" if row.get("optimal") is True else ""
        line: list[str] = [element("th", {"scope": "row"}, f"{row['method']}{mark}")]
        if row.get("failure"):
            attributes = {"colspan": str(len(used)), "class": "failure"}
            line.append(element("td", attributes, str(row["failure"])))
        else:
            line += [_method_cell(root, i, key, form) for key, _, form in used]
        lines.append(line)
    head = ["method", *(title for _, title, _ in used)]
    stars = any(row.get("optimal") is True for row in rows)
    legend = element("p", {"class": "hint"}, "★ proven optimal") if stars else Html("")
    return joined([table(head, lines), legend])


def _method_cell(root: Mapping[str, Any], row: int, key: str, form: str) -> Html:
    path = f"comparison.methods.{row}.{key}"
    if form not in ("gap", "relative"):
        return number(datum(root, path, form))
    share = lookup(root, path)
    if share is None:
        return number(fmt.NOTHING)
    return number(fmt.change(1, share + 1 if form == "gap" else share))


def _measured(key: str, before: float | None, after: float | None) -> list[str]:
    if after is None:
        return ["", number(""), number(""), number("")]
    is_size = key.endswith("bytes")
    shown = [
        fmt.NOTHING if value is None else fmt.exact_bytes(int(value)) if is_size else f"{value:,}"
        for value in (before, after)
    ]
    name = key.removesuffix("_bytes").replace("_", " ")
    return [name, *(number(text) for text in shown), number(fmt.change(before or 0, after))]


def _is_optimal(document: Mapping[str, Any], measure: Measure) -> bool:
    optimal = document.get("optimal")
    proof = isinstance(optimal, dict) and optimal.get(measure.proof) is True
    return proof and _is_decided(document, measure)


def _is_decided(document: Mapping[str, Any], measure: Measure) -> bool:
    """Return whether plans differ in a figure: on one device, no decision changes the time."""
    return measure.proof != "time" or len(document.get("devices", ())) > 1


def _term(name: str, value: Html) -> Html:
    return element("div", None, element("dt", None, name), element("dd", None, value))
