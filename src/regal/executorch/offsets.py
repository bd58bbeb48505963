"""Offsets of the tensors of an ExecuTorch program, in each of its memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult

from regal._native import OffsetFault, check_offsets
from regal.errors import PlanError
from regal.search.offsets import allocate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DEFAULT_MEMORY = 1  # of a tensor for which no pass chose one; 0 holds constants


def regal_offsets(
    alignment: int,
    specs: Iterable[Any],
    graph_module: Any,
    graph_signature: Any,
    extra_padding: int = 0,
    *,
    max_nodes: int | None = None,
    seed: int = 0,
) -> MemoryAlgoResult:
    """Return where each tensor of a program lies: an algorithm of ExecuTorch's suite.

    Tensors keep the memory (`mem_id`) that an earlier pass chose. What is backed by another
    tensor lies inside it. Bodies of control flow have the beginning of each memory for
    themselves, as ExecuTorch's own algorithms have it.

    Args:
        alignment: bytes; offsets and sizes are multiples.
        specs: `TensorSpec`s with their lifetimes in nodes, both ends included.
        graph_module: the program; its `input_mem_buffer_sizes` are what its bodies take.
        graph_signature: not needed.
        extra_padding: bytes to add behind each memory.
        max_nodes: of the search in each memory; None: enough for about 50 ms.
        seed: of the search.

    Raises:
        PlanError: a tensor does not fit into the one that backs it, or offsets are wrong (a
            defect).

    Cost: O(n^2) per memory, then what `max_nodes` allows.
    """
    memories: dict[int, list[Any]] = {}
    backed: list[Any] = []
    for spec in specs:
        spec.realign(alignment)
        if spec.storage_base is not None:
            backed.append(spec)
        else:
            memory = DEFAULT_MEMORY if spec.mem_id is None else int(spec.mem_id)
            memories.setdefault(memory, []).append(spec)
    taken = list(getattr(graph_module, "input_mem_buffer_sizes", None) or ())
    sizes = [0] * (max([*memories, DEFAULT_MEMORY]) + 1)
    places: dict[Any, SpecAllocResult] = {}
    for memory, members in memories.items():
        start = taken[memory] if memory < len(taken) else 0
        offsets, used = _placed(members, alignment, max_nodes, seed)
        start += -start % alignment
        for spec, offset in zip(members, offsets, strict=True):
            places[spec] = SpecAllocResult(memory, 0, start + offset)
        sizes[memory] = start + used + extra_padding
    for spec in backed:
        _place_inside(spec, places)
    return MemoryAlgoResult(places, sizes)


def _placed(
    specs: Sequence[Any], alignment: int, max_nodes: int | None, seed: int
) -> tuple[list[int], int]:
    """Return the offsets of tensors that share one memory, and the bytes that they take."""
    rows = np.array(
        [(*spec.lifetime, spec.allocated_memory, 0) for spec in specs], dtype=np.int64
    ).reshape(-1, 4)
    first, last, size, _ = (np.ascontiguousarray(column) for column in rows.T)
    found = allocate(first, last, size, alignment=alignment, max_nodes=max_nodes, seed=seed)
    rows[:, 3] = found.offsets
    verdict = check_offsets(rows[rows[:, 2] > 0], found.arena_bytes, alignment)
    if verdict.fault is not OffsetFault.NONE:
        raise PlanError(
            f"offsets of {len(specs)} tensors are wrong: {verdict.fault.name.lower()} at"
            f" {verdict.first} and {verdict.second}"
        )
    return [int(offset) for offset in found.offsets], found.arena_bytes


def _place_inside(spec: Any, places: dict[Any, SpecAllocResult]) -> None:
    """Place a tensor where the one that backs it lies; that one may be backed itself.

    Raises:
        PlanError: it passes the end of that one, or begins at no multiple of the alignment.
    """
    base, inner = spec.storage_base, spec.storage_base_offset
    chain = [spec]
    while base.storage_base is not None and base not in chain:
        chain.append(base)
        inner += base.storage_base_offset
        base = base.storage_base
    if base not in places:
        raise PlanError(f"a tensor of {spec.nbytes()} bytes is backed by one that has no place")
    at, size = places[base], spec.allocated_memory
    if inner < 0 or inner + size > base.allocated_memory or inner % spec.alignment:
        raise PlanError(
            f"a tensor of {size} bytes does not fit at byte {inner} of the one of"
            f" {base.allocated_memory} bytes that backs it"
        )
    places[spec] = SpecAllocResult(at.mem_id, at.mem_obj_id, at.mem_offset + inner)
