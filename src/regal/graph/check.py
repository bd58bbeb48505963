"""Reject graphs that break a rule of the representation, before anything plans them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.graph.types import ABSENT, Graph, LoadedModel, Role

if TYPE_CHECKING:
    from regal.graph.types import Op

# Sums of sizes must fit in int64 with room to spare; no real model comes near.
MOST_BYTES = 1 << 60
MOST_BODY_LEVELS = 64


def require_valid_model(model: LoadedModel) -> LoadedModel:
    """Return `model` if all its entries are valid graphs.

    Raises:
        ModelError: names the first guilty op or tensor.
    """
    if not model.entries:
        raise ModelError("model has no graph")
    for graph in model.entries:
        require_valid_graph(graph)
    return model


def require_valid_graph(graph: Graph, level: int = 0) -> Graph:
    """Return `graph` if indices, roles, sizes and the order of its ops are consistent.

    Ops must be listed with writers before readers: that order is the "before".

    Raises:
        ModelError: names the first guilty op or tensor.
    """
    if level > MOST_BODY_LEVELS:
        raise ModelError(f"graph '{graph.name}': bodies nested deeper than {MOST_BODY_LEVELS}")
    _require_sizes(graph)
    _require_unique_names(graph)
    written_by = _writers(graph)
    seen: set[int] = set()
    for position, op in enumerate(graph.ops):
        for tensor in op.inputs:
            writer = written_by.get(tensor)
            if writer is not None and writer not in seen:
                raise ModelError(
                    f"op '{op.name}' reads '{graph.tensors[tensor].name}' before op"
                    f" '{graph.ops[writer].name}' writes it: a cycle, or ops out of order"
                )
        for earlier in op.control_inputs:
            if earlier not in seen:
                raise ModelError(
                    f"op '{op.name}' must run after op {earlier}, which is not listed earlier"
                )
        for body in op.subgraphs:
            require_valid_graph(body, level + 1)
        seen.add(position)
    return graph


def _writers(graph: Graph) -> dict[int, int]:
    """Return tensor -> op that writes it, after checking every index of every op."""
    n = len(graph.tensors)
    for what, tensors in (("input", graph.inputs), ("output", graph.outputs)):
        for tensor in tensors:
            if not 0 <= tensor < n:
                raise ModelError(f"graph {what} {tensor} is not one of {n} tensors")
    writers: dict[int, int] = {}
    for position, op in enumerate(graph.ops):
        _require_indices(graph, op)
        for tensor in op.outputs:
            if tensor == ABSENT:
                continue
            name = graph.tensors[tensor].name
            if graph.tensors[tensor].role in (Role.INPUT, Role.PARAMETER, Role.CAPTURED):
                raise ModelError(
                    f"op '{op.name}' writes '{name}', whose role is {graph.tensors[tensor].role}"
                )
            if tensor in writers:
                raise ModelError(
                    f"tensor '{name}' is written twice, by op"
                    f" '{graph.ops[writers[tensor]].name}' and op '{op.name}'"
                )
            writers[tensor] = position
    return writers


def _require_indices(graph: Graph, op: Op) -> None:
    n = len(graph.tensors)
    for tensor in (*op.inputs, *op.outputs):
        if not (0 <= tensor < n or tensor == ABSENT):
            raise ModelError(f"op '{op.name}' uses tensor {tensor}; there are {n} tensors")
    for earlier in op.control_inputs:
        if not 0 <= earlier < len(graph.ops):
            raise ModelError(
                f"op '{op.name}' waits for op {earlier}; there are {len(graph.ops)} ops"
            )
    if not 0 <= op.captures <= len(op.inputs):
        raise ModelError(
            f"op '{op.name}' captures {op.captures} values but has {len(op.inputs)} inputs"
        )
    for source, target in op.in_place:
        if not (0 <= source < len(op.inputs) and 0 <= target < len(op.outputs)):
            raise ModelError(
                f"op '{op.name}' may write output {target} over input {source};"
                f" it has {len(op.inputs)} inputs and {len(op.outputs)} outputs"
            )
    _require_sub_buffers(graph, op)


def _require_sub_buffers(graph: Graph, op: Op) -> None:
    own = {t for t in (*op.inputs, *op.outputs) if t != ABSENT}
    for inner, outer, offset in op.sub_buffers:
        if inner not in own or outer not in own or inner == outer:
            raise ModelError(
                f"op '{op.name}' may place tensor {inner} inside tensor {outer};"
                " both must be its own, and different"
            )
        end, size = offset + graph.tensors[inner].bytes, graph.tensors[outer].bytes
        if offset < 0 or end > size:
            raise ModelError(
                f"op '{op.name}' may place '{graph.tensors[inner].name}' at bytes"
                f" [{offset}, {end}) of '{graph.tensors[outer].name}', which has {size} bytes"
            )


def _require_sizes(graph: Graph) -> None:
    if graph.alignment < 1:
        raise ModelError(f"graph '{graph.name}': alignment {graph.alignment} is below 1 byte")
    total = 0
    for tensor in graph.tensors:
        if tensor.bytes < 0 or tensor.storage_offset < 0:
            raise ModelError(
                f"tensor '{tensor.name}' has {tensor.bytes} bytes at offset"
                f" {tensor.storage_offset} of its storage; neither may be negative"
            )
        if tensor.storage < 0:
            raise ModelError(f"tensor '{tensor.name}' has storage {tensor.storage}")
        total += tensor.bytes + tensor.storage_offset
        if total > MOST_BYTES:
            raise ModelError(f"tensor '{tensor.name}': all tensors together exceed 2^60 bytes")
    for op in graph.ops:
        if op.workspace_bytes < 0 or op.flops < 0:
            raise ModelError(
                f"op '{op.name}' has {op.workspace_bytes} bytes of workspace and"
                f" {op.flops} flops; neither may be negative"
            )
        total += op.workspace_bytes
        if total > MOST_BYTES:
            raise ModelError(f"op '{op.name}': all sizes together exceed 2^60 bytes")


def _require_unique_names(graph: Graph) -> None:
    seen: dict[str, int] = {}
    for position, op in enumerate(graph.ops):
        if op.name in seen:
            raise ModelError(
                f"ops {seen[op.name]} and {position} are both named '{op.name}'; names identify ops"
            )
        seen[op.name] = position
