"""The data set as it ships: an index of entries, and one file that holds their graphs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regal.data.pack import unpacked
from regal.errors import ModelError, UsageError
from regal.records import json_of, kinds_of, misfit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from regal.graph.types import Graph

SHIPPED = Path(__file__).parent / "graphs"
INDEX, ARCHIVE, LEFT_OUT, ABOUT = "index.jsonl", "graphs.bin", "left_out.jsonl", "about.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One graph of the data set; `offset` and `bytes` say where it lies in the archive."""

    key: str  # "torch/timm/resnet50/training-b8"; its first part is the framework
    family: str  # kin architectures have one, whatever the framework
    framework: str
    source: str  # the package that defines the architecture, or "synthetic"
    architecture: str
    mode: str  # "inference", "training" or "joint"
    batch: int
    split: str  # "train", "valid", "test" or "transfer"
    ops: int
    tensors: int
    structure: str  # hash of kinds and edges: no two entries share it
    sha256: str  # of the packed graph
    offset: int
    bytes: int


def load_index(folder: Path = SHIPPED) -> tuple[Entry, ...]:
    """Return all entries of a data set, in the order of its archive.

    Args:
        folder: of the set; the one that ships with the package by default.

    Raises:
        ModelError: the index is missing or broken.

    Cost: 15 ms per 1,000 entries.
    """
    return _index_in(folder)


def entry_named(key: str, folder: Path = SHIPPED) -> Entry:
    """Return the entry with a key.

    Raises:
        UsageError: there is none; it names the keys that are nearest.
        ModelError: the index is missing or broken.
    """
    by_key = {entry.key: entry for entry in load_index(folder)}
    if key not in by_key:
        near = get_close_matches(key, by_key, n=3, cutoff=0.4)
        hint = f"; did you mean {', '.join(near)}" if near else ""
        raise UsageError(
            f"the data set has no graph '{key}'{hint}; regal dataset list prints all keys"
        )
    return by_key[key]


def load_graph(entry: Entry, folder: Path = SHIPPED) -> Graph:
    """Return the graph of an entry; its name is the entry's key.

    Raises:
        ModelError: the archive is missing, or does not hold what the index says.

    Cost: 5 ms per 1,000 ops.
    """
    path = folder / ARCHIVE
    try:
        with path.open("rb") as archive:
            archive.seek(entry.offset)
            size = max(0, min(entry.bytes, path.stat().st_size))
            data = archive.read(size)
    except OSError as error:
        raise ModelError(f"data set '{path}' cannot be read: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise ModelError(
            f"data set '{path}': the {entry.bytes} bytes of '{entry.key}' at {entry.offset} are"
            " not what the index says - restore both files"
        )
    return unpacked(data)


def load_left_out(folder: Path = SHIPPED) -> tuple[dict[str, Any], ...]:
    """Return the rows of items that are not in the set, each with its reason."""
    kinds = dict.fromkeys(("key", "family", "why", "reason"), (str,))
    return tuple(_rows_in(folder / LEFT_OUT, kinds))


def load_about(folder: Path = SHIPPED) -> dict[str, Any]:
    """Return what is known of the set as a whole: its version, the packages it was traced with."""
    path = folder / ABOUT
    try:
        found = json_of(_text_in(path))
    except ValueError as error:
        raise ModelError(f"data set '{path}' is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ModelError(f"data set '{path}' is not a JSON object")
    counts = dict.fromkeys(("version", "split_version", "traced", "graphs", "bytes"), (int,))
    wrong = misfit(found, counts | {"sources": (dict,)})
    if wrong:
        raise ModelError(f"data set '{path}': {wrong}")
    return found


def index_text(entries: Iterable[Entry]) -> str:
    """Return the lines of an index file."""
    return "".join(json.dumps(asdict(entry), separators=(",", ":")) + "\n" for entry in entries)


@lru_cache(maxsize=4)
def _index_in(folder: Path) -> tuple[Entry, ...]:
    return tuple(Entry(**row) for row in _rows_in(folder / INDEX, kinds_of(Entry)))


def _rows_in(path: Path, kinds: Mapping[str, tuple[type, ...]]) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(_text_in(path).splitlines(), start=1):
        try:
            row = json_of(line)
        except ValueError:
            raise ModelError(f"data set '{path}', line {number}: not JSON") from None
        if not isinstance(row, dict):
            raise ModelError(f"data set '{path}', line {number}: not an object")
        wrong = misfit(row, kinds)
        if wrong:
            raise ModelError(f"data set '{path}', line {number}: {wrong}")
        rows.append(row)
    return rows


def _text_in(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise ModelError(f"data set '{path}' cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ModelError(f"data set '{path}' is not UTF-8 text") from None
