"""Two graphs as one: side by side, or the second after the first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from regal.graph.types import ABSENT, Op, Role

if TYPE_CHECKING:
    from regal.graph.types import Graph, Tensor

# How each framework calls an op that copies: it stands between two composed graphs.
COPIES = {
    "torch": "aten.clone.default",
    "jax": "copy",
    "onnx": "Pad",
    "tensorflow": "DeepCopy",
    "tflite": "PAD",
}


def composed(first: Graph, second: Graph, *, in_series: bool) -> Graph:
    """Return one graph that holds both.

    Args:
        first: of the same framework as the second.
        second: its ops come later in the file.
        in_series: the inputs of the second are copied from the outputs of the first, in turn;
            else the two have nothing to do with each other.
    """
    base, before = len(first.tensors), len(first.ops)
    joints = second.inputs if in_series and first.outputs else ()
    made = {base + t for t in joints}
    tensors = [*first.tensors]
    for i, tensor in enumerate(second.tensors):
        role = Role.ACTIVATION if base + i in made else tensor.role
        tensors.append(
            replace(tensor, name=f"second/{tensor.name}", storage=base + tensor.storage, role=role)
        )
    ops = [*first.ops]
    kind = COPIES.get(first.framework, "copy")
    for n, joint in enumerate(joints):
        source = first.outputs[n % len(first.outputs)]
        name = f"joint/{n}"
        ops.append(Op(name=name, kind=kind, inputs=(source,), outputs=(base + joint,)))
    shift = before + len(joints)
    ops += [_moved(op, base, shift) for op in second.ops]
    kept = (*(() if joints else first.outputs), *(base + t for t in second.outputs))
    outputs = tuple(t for t in kept if t not in made)
    return replace(
        first,
        name=f"{first.name} + {second.name}",
        ops=tuple(ops),
        tensors=tuple(_without_lost_outputs(tensors, outputs)),
        inputs=(*first.inputs, *(base + t for t in second.inputs if base + t not in made)),
        outputs=outputs,
    )


def _moved(op: Op, base: int, shift: int) -> Op:
    return replace(
        op,
        name=f"second/{op.name}",
        inputs=tuple(ABSENT if t == ABSENT else base + t for t in op.inputs),
        outputs=tuple(ABSENT if t == ABSENT else base + t for t in op.outputs),
        control_inputs=tuple(shift + i for i in op.control_inputs),
        sub_buffers=tuple((base + a, base + b, offset) for a, b, offset in op.sub_buffers),
        colocation=f"second/{op.colocation}" if op.colocation else "",
    )


def _without_lost_outputs(tensors: list[Tensor], outputs: tuple[int, ...]) -> list[Tensor]:
    """Return the tensors, those that are no outputs any more as activations."""
    return [
        replace(tensor, role=Role.ACTIVATION)
        if tensor.role is Role.OUTPUT and i not in outputs
        else tensor
        for i, tensor in enumerate(tensors)
    ]
