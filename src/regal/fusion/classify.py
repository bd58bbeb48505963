"""What an op is to fusion and to layouts, told by its kind and its tensors."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

from regal.cost.torch import bare_name
from regal.cost.work import kind_of
from regal.fusion.types import FuseClass, LayoutRule
from regal.graph.types import ABSENT, COUNTED_ROLES, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from regal.graph.types import Graph, Op, Tensor

# Frameworks whose images are (batch, channels, height, width): only there a second layout pays.
CHANNELS_FIRST: Final = frozenset({"torch", "onnx"})
ANCHOR_KINDS: Final = frozenset({"conv", "matmul"})
REDUCTION_KINDS: Final = frozenset({"reduce", "softmax", "norm"})
# Normalized kinds that run as well on either layout, where their images keep four dimensions.
AGNOSTIC_KINDS: Final = frozenset({"pointwise", "norm", "pool", "resize"})
# So do these of the kind "copy": what they join or cut is a whole axis of both layouts.
AGNOSTIC_COPIES: Final = frozenset(
    {"Concat", "Split", "Slice", "Pad", "cat", "constant_pad_nd", "split", "chunk"}
)
IMAGE_RANK: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """The classes of a graph's n ops and t tensors; the names are those of FusionProblem."""

    fuse_classes: tuple[FuseClass, ...]
    layout_rules: tuple[LayoutRule, ...]
    view_of: tuple[int, ...]
    two_layouts: frozenset[int]
    pairs: frozenset[tuple[int, int]]


def classes_of(graph: Graph) -> Classes:
    """Return what may be fused and laid out in a graph of any framework.

    Fused may be: pointwise ops of as many elements, or with what they broadcast; pointwise ops
    into a reduction over their elements, and behind one; pointwise ops behind a convolution or
    product; views with all of these. Ops with bodies, state, random numbers, sorting, gathers and
    whatever the cost tables do not know stay alone.

    Two layouts have images of PyTorch and ONNX with several channels and pixels. Convolutions are
    sensitive; other frameworks keep their images with the channels last as it is.

    Cost: O(ops + operands).
    """
    view_of = _views(graph)
    classes = tuple(_class_of(graph, op, view_of) for op in graph.ops)
    images = _images(graph) if graph.framework in CHANNELS_FIRST else frozenset()
    return Classes(
        fuse_classes=classes,
        layout_rules=tuple(_rule_of(graph, op, images) for op in graph.ops),
        view_of=tuple(view_of),
        two_layouts=images,
        pairs=_pairs(graph, classes, view_of),
    )


def _views(graph: Graph) -> list[int]:
    """Return, per tensor, the input of its op whose bytes it shows, or -1."""
    view_of = [-1] * len(graph.tensors)
    for op in graph.ops:
        if kind_of(graph.framework, op) != "view":
            continue
        for output in op.outputs:
            if output == ABSENT:
                continue
            storage = graph.tensors[output].storage
            same = (t for t in op.inputs if t != ABSENT and graph.tensors[t].storage == storage)
            view_of[output] = next(same, -1)
    return view_of


def _class_of(graph: Graph, op: Op, view_of: Sequence[int]) -> FuseClass:
    kind = kind_of(graph.framework, op)
    outputs = [t for t in op.outputs if t != ABSENT]
    if op.subgraphs or not outputs:
        return FuseClass.OPAQUE
    if kind == "view":
        return FuseClass.VIEW if all(view_of[t] >= 0 for t in outputs) else FuseClass.OPAQUE
    if any(graph.tensors[t].role not in COUNTED_ROLES for t in outputs):
        return FuseClass.OPAQUE
    if kind in ANCHOR_KINDS:
        return FuseClass.ANCHOR
    if kind == "pointwise" or (kind == "norm" and _is_affine(graph, op)):
        return FuseClass.POINTWISE
    # A normalization that reads state while it trains writes it, too.
    has_state = any(t != ABSENT and graph.tensors[t].role is Role.STATE for t in op.inputs)
    is_reduction = kind in REDUCTION_KINDS and not has_state
    return FuseClass.REDUCTION if is_reduction else FuseClass.OPAQUE


def _is_affine(graph: Graph, op: Op) -> bool:
    """Return whether a normalization gets its statistics: a batch norm that is applied."""
    name = bare_name(op.kind) if graph.framework == "torch" else op.kind.rsplit("::", 1)[-1]
    is_batch_norm = "batch_norm" in name or "BatchNorm" in name
    if not is_batch_norm or "backward" in name.lower():
        return False
    rest = [graph.tensors[t] for t in op.outputs[1:] if t != ABSENT]
    return not op.attributes.get("training_mode") and all(prod(t.shape) == 0 for t in rest)


def _images(graph: Graph) -> frozenset[int]:
    """Return the tensors whose bytes lie otherwise with their channels last."""
    used = {t for op in graph.ops for t in (*op.inputs, *op.outputs)} - {ABSENT}
    return frozenset(t for t in used if _is_image(graph.tensors[t]))


def _is_image(tensor: Tensor) -> bool:
    shape = tensor.shape
    return (
        tensor.role in COUNTED_ROLES
        and len(shape) == IMAGE_RANK
        and shape[1] > 1
        and shape[2] * shape[3] > 1
    )


def _rule_of(graph: Graph, op: Op, images: frozenset[int]) -> LayoutRule:
    touched = [t for t in (*op.inputs, *op.outputs) if t in images]
    if not touched:
        return LayoutRule.AGNOSTIC
    kind = kind_of(graph.framework, op)
    if kind == "conv":
        return LayoutRule.SENSITIVE
    name = bare_name(op.kind) if graph.framework == "torch" else op.kind
    is_agnostic = kind in AGNOSTIC_KINDS or (kind == "copy" and name in AGNOSTIC_COPIES)
    # A tensor of five dimensions, or with other axes, has no place for the channels.
    counted = [graph.tensors[t] for t in (*op.inputs, *op.outputs) if t != ABSENT]
    flat = any(
        t.role in COUNTED_ROLES and len(t.shape) not in {0, IMAGE_RANK} and prod(t.shape) > 1
        for t in counted
    )
    return LayoutRule.AGNOSTIC if is_agnostic and not flat else LayoutRule.FIXED


def _pairs(
    graph: Graph, classes: Sequence[FuseClass], view_of: Sequence[int]
) -> frozenset[tuple[int, int]]:
    """Return the (producer, consumer) pairs that one kernel may hold.

    A pair that one tensor allows and another refuses is none: one kernel would hold both edges.
    """
    producer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs if t != ABSENT}
    allowed: set[tuple[int, int]] = set()
    refused: set[tuple[int, int]] = set()
    for i, op in enumerate(graph.ops):
        for tensor in op.inputs:
            if tensor not in producer:
                continue
            base = tensor
            while view_of[base] >= 0:
                base = view_of[base]
            maker = producer[tensor]
            ops = (maker, producer.get(base, maker), i)
            is_allowed = _fits(graph, classes, ops, base)
            (allowed if is_allowed else refused).add((maker, i))
    return frozenset(allowed - refused)


def _fits(
    graph: Graph,
    classes: Sequence[FuseClass],
    ops: tuple[int, int, int],
    base: int,
) -> bool:
    """Return whether a consumer may read a tensor in the kernel that makes it.

    Args:
        graph: that of the ops.
        classes: per op.
        ops: who made the tensor, who made the bytes that it shows, who reads it.
        base: the tensor that has those bytes.
    """
    maker, origin, consumer = ops
    kinds = classes[maker], classes[origin], classes[consumer]
    if FuseClass.OPAQUE in (kinds[0], kinds[2]) or kinds[2] is FuseClass.ANCHOR:
        return False
    if kinds[2] is FuseClass.VIEW:
        return True
    if kinds[1] is FuseClass.OPAQUE or kinds[1] is FuseClass.VIEW:
        return True  # only the view is inside
    made = prod(graph.tensors[base].shape)
    written = _elements(graph, graph.ops[consumer].outputs)
    read = max(_elements(graph, graph.ops[consumer].inputs), written)
    if kinds[1] is FuseClass.ANCHOR:
        return kinds[2] is FuseClass.POINTWISE and made == written
    if kinds[2] is FuseClass.REDUCTION:
        return made in (read, written)
    if kinds[1] is FuseClass.REDUCTION:
        source = _elements(graph, graph.ops[origin].inputs)
        return written in (made, source)
    return made <= written  # equal, or broadcast


def _elements(graph: Graph, tensors: Iterable[int]) -> int:
    return max(
        (
            prod(graph.tensors[t].shape)
            for t in tensors
            if t != ABSENT and graph.tensors[t].role in COUNTED_ROLES
        ),
        default=0,
    )
