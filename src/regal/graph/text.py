"""The text form of a graph: one line per tensor and op, for golden files and for reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from regal.graph.types import Graph, Op, Tensor


def graph_text(graph: Graph, indent: str = "") -> str:
    """Return the text form, bodies indented below their op, ending with a newline.

    ```text
    graph "diamond" graph, align 1, in 0, out 3
      t0 "x" input uint8[8] 8 B, storage 0
      op0 "0:A" A (t0) -> t1
    ```
    """
    head = (
        f'{indent}graph "{graph.name}" {graph.framework}, align {graph.alignment},'
        f" in {_numbers(graph.inputs)}, out {_numbers(graph.outputs)}\n"
    )
    tensors = [f"{indent}  {_tensor_line(i, tensor)}\n" for i, tensor in enumerate(graph.tensors)]
    ops = []
    for i, op in enumerate(graph.ops):
        ops.append(f"{indent}  {_op_line(i, op)}\n")
        ops += [graph_text(body, indent + "    ") for body in op.subgraphs]
    return head + "".join(tensors + ops)


def _tensor_line(index: int, tensor: Tensor) -> str:
    shape = ",".join(map(str, tensor.shape))
    offset = f"+{tensor.storage_offset}" if tensor.storage_offset else ""
    return (
        f't{index} "{tensor.name}" {tensor.role} {tensor.dtype}[{shape}]'
        f" {tensor.bytes} B, storage {tensor.storage}{offset}"
    )


def _op_line(index: int, op: Op) -> str:
    line = f'op{index} "{op.name}" {op.kind} ({_tensors(op.inputs)}) -> {_tensors(op.outputs)}'
    if op.control_inputs:
        line += f", after {_numbers(op.control_inputs)}"
    if op.captures:
        line += f", captures {op.captures}"
    if op.workspace_bytes:
        line += f", workspace {op.workspace_bytes} B"
    if op.in_place:
        line += ", in place " + " ".join(f"{b}<-{a}" for a, b in op.in_place)
    if op.sub_buffers:
        line += ", inside " + " ".join(f"t{a}:t{b}+{at}" for a, b, at in op.sub_buffers)
    if op.flops:
        line += f", {op.flops} flops"
    return line


def _tensors(indices: tuple[int, ...]) -> str:
    return " ".join("-" if i == ABSENT else f"t{i}" for i in indices)


def _numbers(indices: tuple[int, ...]) -> str:
    return " ".join(map(str, indices)) or "-"
