"""Which Cast nodes ONNX Runtime removes when it loads a model, at any optimization level.

Source: microsoft/onnxruntime, core/optimizer/insert_cast_transformer.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from regal.graph.types import Graph

# Going from a higher group to a lower one and back loses something.
GROUP = {"bool": 0} | {f"{sign}int{bits}": 1 for sign in ("", "u") for bits in (8, 16, 32, 64)}
GROUP |= dict.fromkeys(("bfloat16", "float64", "float32", "float16"), 2)


@dataclass(frozen=True, slots=True)
class RemovedCasts:
    """`ops` are gone; whoever reads a tensor of `source` reads what that maps to instead."""

    ops: frozenset[int]
    source: dict[int, int]


def removed_casts(graph: Graph) -> RemovedCasts:
    """Return the casts that vanish because another cast follows them, or precedes them.

    Of two casts in a row the first goes; both go if the second restores the first type.
    Nothing happens where a precise type would be lost on the way.
    """
    casts = _Casts(graph)
    for op in range(len(graph.ops)):
        if casts.is_cast(op) and op not in casts.removed:
            casts.visit(op)
    return RemovedCasts(frozenset(casts.removed), casts.source)


class _Casts:
    """The graph's casts while some of them go."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._returned = set(graph.outputs)
        self._readers: dict[int, list[int]] = {}
        self._read = {i: op.inputs[0] for i, op in enumerate(graph.ops) if self.is_cast(i)}
        for i, op in enumerate(graph.ops):
            for tensor in op.inputs:
                self._readers.setdefault(tensor, []).append(i)
        self.removed: set[int] = set()
        self.source: dict[int, int] = {}

    def is_cast(self, op: int) -> bool:
        node = self._graph.ops[op]
        return node.kind == "Cast" and ABSENT not in (*node.inputs[:1], *node.outputs[:1])

    def visit(self, op: int) -> None:
        read, written = self._read[op], self._graph.ops[op].outputs[0]
        before, after = self._dtype(read), self._dtype(written)
        if before not in GROUP or after not in GROUP:
            return
        readers = self._readers.get(written, [])
        followers = [reader for reader in readers if self.is_cast(reader)]
        loses = GROUP[before] > GROUP[after]
        for follower in followers:
            last = self._dtype(self._graph.ops[follower].outputs[0])
            if last not in GROUP or (loses and GROUP[last] > GROUP[after]):
                return
        undone = [follower for follower in followers if self._restores(follower, before)]
        for follower in undone:
            self._replace(self._graph.ops[follower].outputs[0], read)
            self.removed.add(follower)
        if readers and len(followers) == len(readers) and written not in self._returned:
            for follower in followers:
                self._read[follower] = read
            self._replace(written, read)
            self.removed.add(op)

    def _restores(self, follower: int, dtype: str) -> bool:
        written = self._graph.ops[follower].outputs[0]
        return written not in self._returned and self._dtype(written) == dtype

    def _replace(self, tensor: int, by: int) -> None:
        """Let all readers of `tensor` read `by`."""
        self.source[tensor] = by
        moved = [op for op in self._readers.pop(tensor, []) if op not in self.removed]
        for reader in moved:
            if self._read.get(reader) == tensor:
                self._read[reader] = by
        self._readers.setdefault(by, []).extend(moved)

    def _dtype(self, tensor: int) -> str:
        return self._graph.tensors[tensor].dtype
