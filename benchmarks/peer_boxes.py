"""Offset problems for the peer benchmark: from models in a fixed order, and from CSV files."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from regal.frontends import load
from regal.graph.memory import counted_storages, steps_of
from regal.units import round_up

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from regal.graph.types import Graph

    Ints = NDArray[np.int64]

ALIGNMENT = 16  # of TFLM; every peer gets the same sizes, already rounded up to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Boxes:
    """N buffers: bytes, and the first and last step of each, both inclusive.

    Steps are ranks: only their order matters, so gaps between them are closed.
    """

    name: str
    first: Ints
    last: Ints
    size: Ints
    alignment: int

    @property
    def max_live(self) -> int:
        """Return the most bytes alive at one step: no offsets end lower."""
        changes = np.zeros(int(self.last.max(initial=0)) + 2, dtype=np.int64)
        np.add.at(changes, self.first, self.size)
        np.add.at(changes, self.last + 1, -self.size)
        return int(np.cumsum(changes).max(initial=0))


def boxes_of_file(path: Path) -> Boxes:
    """Return the boxes of a model in file order, or of a CSV `id,lower,upper,size`."""
    if path.suffix == ".csv":
        return _boxes_of_csv(path)
    return boxes_of_graph(path.name, load(path).graph)


def boxes_of_graph(name: str, graph: Graph) -> Boxes:
    """Return the boxes of a graph in file order, nothing in place, without workspaces."""
    sizes = counted_storages(graph)
    steps = steps_of(graph, range(len(graph.ops)))
    rows = [(*steps[storage], size) for storage, size in sizes.items() if storage in steps]
    table = np.array([row for row in rows if row[2] > 0], dtype=np.int64).reshape(-1, 3)
    rounded = round_up(table[:, 2], ALIGNMENT)
    return Boxes(name=name, first=table[:, 0], last=table[:, 1], size=rounded, alignment=ALIGNMENT)


def _boxes_of_csv(path: Path) -> Boxes:
    with path.open(newline="") as file:
        rows = [
            (int(row["lower"]), int(row["upper"]), int(row["size"])) for row in csv.DictReader(file)
        ]
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    # Half-open in the file; the last step of a box is the last start before its end.
    starts = np.unique(table[:, 0])
    first = np.searchsorted(starts, table[:, 0])
    last = np.maximum(np.searchsorted(starts, table[:, 1]) - 1, first)
    return Boxes(name=path.name, first=first, last=last, size=table[:, 2], alignment=1)


def overlap(boxes: Boxes, offsets: Ints) -> tuple[int, int] | None:
    """Return two boxes that share a byte at one step; None if the offsets are legal.

    Deliberately plain: every pair is looked at. Cost: O(N^2), in rows.
    """
    ends = offsets + boxes.size
    for i in range(len(offsets)):
        rest = slice(i + 1, None)
        clash = (
            (boxes.first[rest] <= boxes.last[i])
            & (boxes.first[i] <= boxes.last[rest])
            & (offsets[rest] < ends[i])
            & (offsets[i] < ends[rest])
        )
        if clash.any():
            return i, i + 1 + int(clash.argmax())
    return None
