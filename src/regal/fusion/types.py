"""What may be fused and laid out, what that costs, and the plan that says what is.

docs/decisions/0023-fusion-and-layout.md has the semantics in words. Times are integers in ns,
indices are positions in `Graph.ops` and `Graph.tensors`, devices are numbered from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regal.graph.types import Graph

CONTIGUOUS = 0  # NCHW for images; the only layout of tensors without two of them
CHANNELS_LAST = 1  # NHWC
N_LAYOUTS = 2
ANY_LAYOUT = -1  # of a graph output: the caller takes either

PerLayout = tuple[int, int]  # contiguous, channels last


class FuseClass(StrEnum):
    """What an op is to fusion. Makers of problems derive `FusionProblem.pairs` from it."""

    OPAQUE = "opaque"  # always a kernel of its own
    VIEW = "view"  # a new shape of the same bytes: no kernel
    POINTWISE = "pointwise"  # reads element k to write element k; broadcasts count
    REDUCTION = "reduction"
    ANCHOR = "anchor"  # convolution, matrix product: takes pointwise ops behind it


class LayoutRule(StrEnum):
    """Which layouts an op can run in."""

    FIXED = "fixed"  # contiguous only
    AGNOSTIC = "agnostic"  # either, in equal time
    SENSITIVE = "sensitive"  # either, each with its own time: has a layout key


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionProblem:
    """One graph, with what fusing and laying out its ops may do and costs.

    With n ops, t tensors, D devices. A kernel is a group of ops, or a layout copy. A group with one
    op that is no view takes the `alone_ns` of that op; of views alone, the sum of theirs. A larger
    one takes

        launch_ns + max(sum of work_ns of its ops, sum of read_ns and write_ns at its border):

    each tensor read from outside is read once, each tensor that escapes (read outside, or an output
    of the graph, or read by nobody) is written once. A view (`view_of`) is the tensor that it
    shows: it is neither written nor read besides it. A copy takes `convert_ns` and is shared by all
    its readers.
    """

    graph: Graph
    n_devices: int = 1
    fuse_classes: tuple[FuseClass, ...]  # (n,)
    # (producer, consumer): the consumer reads the producer, and one kernel may do both. Within a
    # group every such edge must be listed, and the listed ones must connect the group.
    pairs: frozenset[tuple[int, int]]
    anchors: frozenset[int]  # ops of which a group has at most one
    not_with_anchors: frozenset[int] = frozenset()  # ops that no group with an anchor has
    most_ops: int = 64  # in one group
    layout_rules: tuple[LayoutRule, ...]  # (n,)
    two_layouts: frozenset[int]  # tensors whose layouts differ in memory: only these are converted
    view_of: tuple[int, ...]  # (t,): the tensor whose bytes it shows, or -1: it has its own
    # Graph output -> layout that the caller expects, or ANY_LAYOUT; one entry per position.
    output_layouts: tuple[int, ...]
    alone_ns: tuple[tuple[PerLayout, ...], ...]  # [op][device][layout]; FORBIDDEN = not there
    work_ns: tuple[tuple[PerLayout, ...], ...]  # [op][device][layout]: inside a larger group
    launch_ns: tuple[int, ...]  # [device]
    read_ns: tuple[tuple[int, ...], ...]  # [tensor][device]: once through memory
    write_ns: tuple[tuple[int, ...], ...]  # [tensor][device]
    convert_ns: tuple[tuple[int, ...], ...]  # [tensor][device]: the whole copy, launch included


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What runs at once: a group of ops, or (without ops) a copy of `tensor` into `layout`.

    `ops` come in an order in which they can run. Inner tensors (made and read inside alone) take
    no memory; the others that it makes appear at its start, and what it reads lives to its end.
    """

    ops: tuple[int, ...] = ()
    tensor: int = -1
    layout: int = CONTIGUOUS
    device: int = 0

    @property
    def is_copy(self) -> bool:
        """Return whether it converts a layout."""
        return not self.ops


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionTransfer:
    """One tensor that is sent to another device, once, in the layout that is read there."""

    tensor: int
    layout: int
    source: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionPlan:
    """The decisions: what is fused, in which layout, where, and in which order.

    Every op is in exactly one kernel; all ops of a kernel have its layout and device. Copies are
    those that the layouts demand: one per tensor and layout. `kernels` is the order; each device
    runs its kernels in it. `in_place` holds (input tensor, output tensor) pairs of kernels of one
    op, which share bytes.
    """

    kernels: tuple[Kernel, ...]
    transfers: tuple[FusionTransfer, ...] = ()
    in_place: tuple[tuple[int, int], ...] = ()

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Return the ops of each kernel that has any, in order; those of one op included."""
        return tuple(kernel.ops for kernel in self.kernels if kernel.ops)

    @property
    def layouts(self) -> dict[int, int]:
        """Return the layout of every op."""
        return {op: kernel.layout for kernel in self.kernels for op in kernel.ops}

    @property
    def order(self) -> tuple[int, ...]:
        """Return all ops in the order in which they run."""
        return tuple(op for kernel in self.kernels for op in kernel.ops)


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionFigures:
    """What the checker says of a plan."""

    time_ns: int
    peak_bytes: tuple[int, ...]  # per device, without parameters and state
    overflow_bytes: int  # beyond the memories, summed over devices
    kernel_ns: tuple[int, ...]  # like FusionPlan.kernels
    time_bound_ns: int  # proven: no plan of this problem is faster

    @property
    def peak(self) -> int:
        """Return the largest peak of a device."""
        return max(self.peak_bytes)
