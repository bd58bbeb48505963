"""What makes two ops take equal time: kind, dtypes, shapes, attributes, and the same of bodies."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from regal.cost.operands import WEIGHTS
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.graph.types import Graph, Op, Tensor

# Attributes that name things or repeat the dtypes; those that begin with "_" are annotations.
NAMING = frozenset(
    {"T", "container", "device", "dtype", "nodes", "shape", "shared_name", "trip_count"}
)
MOST_CHARACTERS = 400


def op_key(op: Op, graph: Graph) -> str:
    """Return the text that equal ops of any model of this framework share.

    "onnx:Conv(float32[1,3,8,8], float32[4,3,3,3]*) -> (float32[1,4,8,8]) group=1": a star marks
    weights, which runtimes prepare ahead; bodies count by a digest of their ops.

    Cost: O(operands + attributes), and once per call O(ops of the bodies).
    """
    own = op.inputs[: len(op.inputs) - op.captures] if op.captures else op.inputs
    sides = [_list_of(own, graph.tensors), _list_of(op.outputs, graph.tensors)]
    attributes = [
        f" {name}={_value(op.attributes[name])}"
        for name in sorted(op.attributes)
        if name not in NAMING and not name.startswith("_")
    ]
    bodies = f" bodies={_digest(op.subgraphs)}" if op.subgraphs else ""
    key = f"{graph.framework}:{op.kind}({sides[0]}) -> ({sides[1]}){''.join(attributes)}{bodies}"
    if not key.isprintable():  # names of custom ops may hold anything
        key = "".join(c if c.isprintable() else "?" for c in key)
    if len(key) <= MOST_CHARACTERS:
        return key
    return f"{key[: MOST_CHARACTERS - 20]}...#{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def _list_of(tensors: Sequence[int], of: Sequence[Tensor]) -> str:
    return ", ".join("-" if t == ABSENT else _tensor(of[t]) for t in tensors)


def _tensor(tensor: Tensor) -> str:
    star = "*" if tensor.role in WEIGHTS else ""
    return f"{tensor.dtype}[{','.join(map(str, tensor.shape))}]{star}"


def _value(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _digest(bodies: Sequence[Graph]) -> str:
    keys = [op_key(op, body) for body in bodies for op in body.ops]
    return hashlib.sha256("\n".join(keys).encode()).hexdigest()[:16]
