"""What one op does: its normalized kind, arithmetic operations, bytes moved, dtype."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from regal.cost import formulas, jax, onnx, tensorflow, tflite, torch
from regal.cost.operands import dtype_of, operands_of, size_of
from regal.devices.kinds import OP_KINDS
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.cost.formulas import Rule
    from regal.cost.operands import Operands
    from regal.graph.types import Graph, Op, Tensor

MOST_FLOPS = (1 << 62) - 1  # graph files hold numbers below 2^62
OTHER = "other"
CONTROL = "control"
# Kinds whose ops move bytes as they name them, but compute nothing.
STILL = frozenset({"copy", "gather", "view", "io", "none"})
# Kinds whose ops touch no tensor's bytes.
WEIGHTLESS = frozenset({"view", "none", CONTROL})
CHOICES = frozenset({"If", "IF", "StatelessIf", "_If", "Case", "StatelessCase",
                     "STABLEHLO_CASE"})  # fmt: skip
# Domains whose operators are in ONNX's table; ONNX Runtime's own share its names.
DOMAINS = ("ai.onnx.ml::", "com.microsoft::", "com.microsoft.nchwc::", "com.ms.internal.nhwc::")
FLEX = "CUSTOM:Flex"  # a TensorFlow operator in a TFLite file


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one op on any device, without its bodies.

    `is_known` false: no rule counts the operations of this op; `flops` is 0 then.
    """

    kind: str  # normalized, one of OP_KINDS
    flops: int  # a multiply-add counts as two
    bytes: int  # read and written
    dtype: str
    is_known: bool


def work_of(op: Op, tensors: Sequence[Tensor], framework: str) -> Work:
    """Return the work of an op; a count that its file gives (`Op.flops`) comes first.

    Bytes: all operands once, each tensor once; copies read no more than they write; look-ups
    read the rows that they return; views, constants and bodies cost nothing here.

    Cost: O(operands).
    """
    kind = kind_of(framework, op)
    operands = operands_of(op, tensors)
    rule = _rule_of(framework, op, kind)
    flops = op.flops
    if not flops and rule is not None and kind not in STILL:
        flops = rule(operands)
    return Work(
        kind=kind,
        flops=min(flops, MOST_FLOPS),
        bytes=_bytes_of(framework, kind, operands),
        dtype=dtype_of(operands),
        is_known=flops > 0 or kind in STILL or kind == CONTROL or rule is not None,
    )


def kind_of(framework: str, op: Op) -> str:
    """Return the normalized kind of an op; "control" when it has bodies, "other" if unknown.

    In a graph that no framework wrote, kinds are free: those of OP_KINDS mean themselves.
    """
    if op.subgraphs:
        return CONTROL
    if framework not in _KINDS:
        return op.kind if op.kind in OP_KINDS else OTHER
    table, name = _entry(framework, op.kind)
    return _KINDS[table].get(name, OTHER)


def op_flops(op: Op, tensors: Sequence[Tensor], framework: str) -> int:
    """Return the arithmetic operations of one run of an op: what frontends set `Op.flops` to.

    An op with bodies gets the sum of its body's ops, of the dearer branch where only one runs,
    times the trips of a loop; unknown trip counts are 1.
    """
    if op.flops or not op.subgraphs:
        return op.flops or work_of(op, tensors, framework).flops
    return _of_bodies(op, tensors, [graph_flops(body) for body in op.subgraphs])


def graph_flops(graph: Graph) -> int:
    """Return the arithmetic operations of one run of a graph."""
    return sum(op_flops(op, graph.tensors, graph.framework) for op in graph.ops)


def graph_moved_bytes(graph: Graph) -> int:
    """Return the bytes that the ops of one run of a graph read and write; bodies as for flops."""
    total = 0
    for op in graph.ops:
        total += work_of(op, graph.tensors, graph.framework).bytes
        total += _of_bodies(op, graph.tensors, [graph_moved_bytes(body) for body in op.subgraphs])
    return total


def uncounted_ops(graph: Graph) -> int:
    """Return how many ops, those of bodies included, have no rule that counts their operations."""
    return sum(
        (not work_of(op, graph.tensors, graph.framework).is_known)
        + sum(uncounted_ops(body) for body in op.subgraphs)
        for op in graph.ops
    )


def _of_bodies(op: Op, tensors: Sequence[Tensor], counts: Sequence[int]) -> int:
    once = max(counts, default=0) if op.kind in CHOICES else sum(counts)
    return min(trips_of(op, tensors) * once, MOST_FLOPS)


def trips_of(op: Op, tensors: Sequence[Tensor]) -> int:
    """Return how often the bodies of an op run; 1 where nobody knows before it runs.

    Known are ONNX's Scan, by the length of what it scans, and loops whose frontend found out
    (attribute "trip_count").
    """
    known = op.attributes.get("trip_count")
    if isinstance(known, int) and known > 0:
        return known
    count = op.attributes.get("num_scan_inputs")
    if op.kind != "Scan" or not isinstance(count, int) or not 0 < count <= len(op.inputs):
        return 1
    own = op.inputs[: len(op.inputs) - op.captures]
    axes = op.attributes.get("scan_input_axes")
    axis = axes[0] if isinstance(axes, tuple) and axes else 0
    scanned = own[len(own) - count] if count <= len(own) else ABSENT
    shape = tensors[scanned].shape if scanned != ABSENT else ()
    return max(shape[axis], 1) if -len(shape) <= axis < len(shape) else 1


def _entry(framework: str, kind: str) -> tuple[str, str]:
    """Return the table that knows an operator, and its name there."""
    if framework == "onnx":
        domain = next((d for d in DOMAINS if kind.startswith(d)), "")
        return framework, kind[len(domain) :]
    if framework == "torch":
        return framework, torch.bare_name(kind)
    if kind.startswith(FLEX):
        return "tensorflow", kind[len(FLEX) :]
    return framework, kind


def _rule_of(framework: str, op: Op, kind: str) -> Rule | None:
    if framework not in _RULES:
        return None
    table, name = _entry(framework, op.kind)
    return _RULES[table].get(name) or DEFAULT_RULES.get(kind)


def _bytes_of(framework: str, kind: str, op: Operands) -> int:
    if kind in WEIGHTLESS:
        return 0
    read = [size_of(t) for t in _distinct(op.inputs)]
    written = sum(size_of(t) for t in op.outputs if t is not None)
    if framework == "tensorflow" and op.kind in tensorflow.BYTES:
        return tensorflow.BYTES[op.kind] * max([*read, written], default=0)
    if kind == "copy":
        return min(sum(read), written) + written
    if kind == "gather":
        return sum(read) - max(read, default=0) + 2 * written
    return sum(read) + written


def _distinct(tensors: Sequence[Tensor | None]) -> list[Tensor]:
    """Return each tensor once: what is multiplied by itself is read once."""
    return list({id(t): t for t in tensors if t is not None}.values())


def _by_op(kinds: Mapping[str, str]) -> Mapping[str, str]:
    return {name: kind for kind, names in kinds.items() for name in names.split()}


_KINDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "tensorflow": _by_op(tensorflow.KINDS),
        "tflite": _by_op(tflite.KINDS),
        "onnx": _by_op(onnx.KINDS),
        "torch": _by_op(torch.KINDS),
        "jax": _by_op(jax.KINDS),
    }
)
_RULES: Mapping[str, Mapping[str, Rule]] = MappingProxyType(
    {
        "tensorflow": tensorflow.FLOPS,
        "tflite": tflite.FLOPS,
        "onnx": onnx.FLOPS,
        "torch": torch.FLOPS,
        "jax": jax.FLOPS,
    }
)
DEFAULT_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "pool": formulas.pooling,
        "pointwise": formulas.pointwise,
        "reduce": formulas.reduction,
        "norm": formulas.per_output(formulas.LAYER_NORM),
        "softmax": formulas.per_input(formulas.SOFTMAX),
        "resize": formulas.per_output(formulas.RESIZE_BILINEAR),
        "scatter": formulas.pointwise,
        "sort": formulas.sorting,
        "random": formulas.pointwise,
    }
)
