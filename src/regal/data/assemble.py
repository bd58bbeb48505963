"""Make the set of what was traced: no structure twice, sides of the split, one archive."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from regal.data.build import file_of, read_log
from regal.data.entries import ABOUT, ARCHIVE, INDEX, LEFT_OUT, Entry, index_text
from regal.data.items import MODES
from regal.data.pack import unpacked
from regal.data.similarity import Surroundings, near_copies, surroundings_of
from regal.data.split import STRICTEST_FIRST, TRAIN, VERSION, leaks, side_of
from regal.errors import ModelError
from regal.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SET_VERSION = 1
MOST_SIMILAR = 0.5  # of a held-out graph to any of training, see `regal.data.similarity`


def assemble(traced: Path, folder: Path) -> tuple[Entry, ...]:
    """Write the data set of a build folder and return its entries.

    Of graphs with one structure, one stays: on the side that training sees least, then the
    simplest mode, then the first key. Held-out graphs that are nearly one of training are left
    out, whatever their family is called. What is left out is a row of `left_out.jsonl`, as are
    failures.

    Args:
        traced: where `build` left its graphs and its log.
        folder: where the set is written.

    Raises:
        ModelError: a graph is not what the log says, or the split leaks.

    Cost: 20 s per million ops.
    """
    rows = read_log(traced)
    kept, left_out = _chosen(rows)
    packed = {row["key"]: _data_of(row, traced) for row in kept}
    near = _near_copies(kept, packed)
    for row in kept:
        if row["key"] in near:
            other, share = near[row["key"]]
            left_out.append(_why(row, "near copy", f"{share:.2f} of {other}"))
    kept = [row for row in kept if row["key"] not in near]
    archive = bytearray()
    entries = []
    for row in kept:
        data = packed[row["key"]]
        entries.append(_entry(row, len(archive), len(data)))
        archive += data
    found = leaks([_as_texts(entry) for entry in entries])
    if found:
        raise ModelError(f"the split leaks in {len(found)} places; the first: {found[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "version": SET_VERSION,
        "split_version": VERSION,
        "sources": _versions(kept),
        "traced": len(rows),
        "graphs": len(entries),
        "bytes": len(archive),
    }
    write_atomically(folder / ARCHIVE, bytes(archive))
    write_atomically(folder / INDEX, index_text(entries).encode())
    left_out.sort(key=lambda row: str(row["key"]))
    lines = [json.dumps(row, separators=(",", ":")) for row in left_out]
    write_atomically(folder / LEFT_OUT, "".join(f"{line}\n" for line in lines).encode())
    write_atomically(folder / ABOUT, (json.dumps(about, indent=1) + "\n").encode())
    return tuple(entries)


def _chosen(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the rows that stay, by key, and what else there is with its reason."""
    left_out = []
    by_structure: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if "failure" in row:
            left_out.append(_why(row, "failure", row["failure"]))
        elif "left_out" in row:
            left_out.append(_why(row, row["why"], row["left_out"]))
        else:
            by_structure.setdefault(row["structure"], []).append(row)
    kept = []
    for same in by_structure.values():
        first, *others = sorted(same, key=_preference)
        kept.append(first)
        left_out += [_why(row, "duplicate", first["key"]) for row in others]
    return sorted(kept, key=lambda row: str(row["key"])), left_out


def _data_of(row: Mapping[str, Any], traced: Path) -> bytes:
    data = (traced / file_of(row["key"])).read_bytes()
    if hashlib.sha256(data).hexdigest() != row["sha256"]:
        raise ModelError(f"graph '{row['key']}' in '{traced}' is not what the log says")
    return data


def _near_copies(
    rows: Sequence[Mapping[str, Any]], packed: Mapping[str, bytes]
) -> dict[str, tuple[str, float]]:
    """Return the held-out graphs that are nearly graphs of training, whatever their family."""
    sides: dict[bool, list[Surroundings]] = {True: [], False: []}
    for row in rows:
        is_training = side_of(row["family"], row["framework"]) == TRAIN
        kind = (row["framework"], row["mode"])
        graph = unpacked(packed[row["key"]])
        sides[is_training].append(surroundings_of(graph, row["key"], kind))
    return near_copies(sides[False], sides[True], MOST_SIMILAR)


def _preference(row: Mapping[str, Any]) -> tuple[int, int, str]:
    side = side_of(row["family"], row["framework"])
    return STRICTEST_FIRST.index(side), MODES.index(row["mode"]), row["key"]


def _why(row: Mapping[str, Any], why: str, reason: str) -> dict[str, Any]:
    return {"key": row["key"], "family": row["family"], "why": why, "reason": reason}


def _entry(row: Mapping[str, Any], offset: int, size: int) -> Entry:
    return Entry(
        key=row["key"],
        family=row["family"],
        framework=row["framework"],
        source=row["source"],
        architecture=row["architecture"],
        mode=row["mode"],
        batch=row["batch"],
        split=side_of(row["family"], row["framework"]),
        ops=row["ops"],
        tensors=row["tensors"],
        structure=row["structure"],
        sha256=row["sha256"],
        offset=offset,
        bytes=size,
    )


def _as_texts(entry: Entry) -> dict[str, str]:
    names = ("split", "structure", "family", "framework", "source", "architecture")
    return {name: getattr(entry, name) for name in names}


def _versions(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return, per source, the versions that most of its graphs were traced with."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        source = f"{row['framework']}/{row['source']}"
        found.setdefault(source, Counter())[row["version"]] += 1
    return {source: counts.most_common(1)[0][0] for source, counts in sorted(found.items())}
