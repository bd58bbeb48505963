"""Take choices away from a graph: for kernels that are not known to survive them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regal.graph.types import Graph


def restricted(graph: Graph, *, in_place: bool, sub_buffers: bool) -> Graph:
    """Return `graph`, its bodies included, without the choices that are off.

    A plan of the result is a plan of `graph`, too. Where the runtime itself writes in place,
    as ONNX Runtime does, that is no choice and stays.
    """
    if in_place and sub_buffers:
        return graph
    keeps_pairs = in_place or graph.in_place_by_runtime
    ops = tuple(
        replace(
            op,
            in_place=op.in_place if keeps_pairs else (),
            sub_buffers=op.sub_buffers if sub_buffers else (),
            subgraphs=tuple(
                restricted(body, in_place=in_place, sub_buffers=sub_buffers)
                for body in op.subgraphs
            ),
        )
        for op in graph.ops
    )
    return replace(graph, ops=ops)
