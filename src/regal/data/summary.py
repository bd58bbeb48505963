"""What a data set holds, in numbers: by side, framework, family, mode and size."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from regal.data.items import SYNTHETIC
from regal.data.split import SIDES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from regal.data.entries import Entry

SIZES = (30, 100, 300, 1_000, 3_000, 10_000)  # where the bins of numbers of ops begin
LAST_SIZE = 20_000
BAR = 40  # characters of the longest bar
MOST_FAMILIES = 20  # rows of a histogram in text


def summary_of(
    entries: Sequence[Entry], left_out: Sequence[Mapping[str, Any]], about: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what `regal dataset info --json` prints.

    Args:
        entries: the index.
        left_out: rows of what is not in the set, with "why".
        about: version and sources.
    """
    ops = sorted(entry.ops for entry in entries)
    real = [entry for entry in entries if entry.source != SYNTHETIC]
    return {
        "version": about["version"],
        "split_version": about["split_version"],
        "sources": dict(about["sources"]),
        "graphs": len(entries),
        "real_graphs": len(real),
        "architectures": len({architecture_of(entry) for entry in real}),
        "families": len({entry.family for entry in real}),
        "frameworks": len({entry.framework for entry in real}),
        "bytes": sum(entry.bytes for entry in entries),
        "ops": {
            "least": ops[0] if ops else 0,
            "median": ops[len(ops) // 2] if ops else 0,
            "most": ops[-1] if ops else 0,
            "total": sum(ops),
        },
        "by_split": _counted(entries, lambda entry: entry.split),
        "by_framework": _counted(entries, lambda entry: entry.framework),
        "by_source": _counted(entries, lambda entry: f"{entry.framework}/{entry.source}"),
        "by_mode": _counted(entries, lambda entry: entry.mode),
        "by_size": _by_size(entries),
        "by_family": _counted(entries, lambda entry: entry.family),
        "families_by_split": {
            side: len({e.family for e in entries if e.split == side}) for side in SIDES
        },
        "architectures_by_split": {
            side: len({architecture_of(e) for e in entries if e.split == side}) for side in SIDES
        },
        "left_out": dict(Counter(str(row["why"]) for row in left_out)),
    }


def architecture_of(entry: Entry) -> tuple[str, str]:
    """Return what makes an architecture one: its source and its name there."""
    return entry.source, entry.architecture


def summary_text(document: Mapping[str, Any]) -> str:
    """Return the lines of `regal dataset info`: counts, and histograms made of characters."""
    ops = document["ops"]
    left_out = ", ".join(f"{why} {n}" for why, n in sorted(document["left_out"].items()))
    synthetic = document["graphs"] - document["real_graphs"]
    lines = [
        f"data set      version {document['version']}, split {document['split_version']}",
        f"graphs        {document['graphs']:,} ({document['real_graphs']:,} real, {synthetic:,}"
        f" synthetic), {document['bytes'] / 1e6:.1f} MB",
        f"architectures {document['architectures']:,} in {document['families']} families from"
        f" {document['frameworks']} frameworks (real ones)",
        f"ops           {ops['least']:,} to {ops['most']:,}, median {ops['median']:,},"
        f" {ops['total']:,} in all",
        f"left out      {left_out or 'nothing'}",
    ]
    for title, key in (
        ("split", "by_split"),
        ("framework", "by_framework"),
        ("source", "by_source"),
        ("mode", "by_mode"),
        ("ops", "by_size"),
        ("family", "by_family"),
    ):
        lines += ["", title, *_bars(document[key])]
    return "\n".join(lines)


def _counted(entries: Iterable[Entry], key: Callable[[Entry], str]) -> dict[str, int]:
    """Return value -> entries, the most frequent first, equals by name."""
    counts = Counter(key(entry) for entry in entries)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _by_size(entries: Iterable[Entry]) -> dict[str, int]:
    ends = (*SIZES[1:], LAST_SIZE + 1)
    found = dict.fromkeys((_bin_name(a, b) for a, b in zip(SIZES, ends, strict=True)), 0)
    for entry in entries:
        for begin, end in zip(SIZES, ends, strict=True):
            if begin <= entry.ops < end:
                found[_bin_name(begin, end)] += 1
    return found


def _bin_name(begin: int, end: int) -> str:
    return f"{begin:,}-{end - 1:,}"


def _bars(counts: Mapping[str, int]) -> list[str]:
    shown = dict(list(counts.items())[:MOST_FAMILIES])
    width = max((len(name) for name in shown), default=0)
    top = max(shown.values(), default=1) or 1
    lines = [
        f"  {name:<{width}} {n:>6,} {'#' * max(round(BAR * n / top), n > 0)}"
        for name, n in shown.items()
    ]
    rest = len(counts) - len(shown)
    if rest:
        total = sum(counts.values()) - sum(shown.values())
        lines.append(f"  {f'{rest} more':<{width}} {total:>6,}")
    return lines
