"""Fusion problems from the roofline alone: for graphs that nobody measured."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from regal.cost.operands import size_of
from regal.cost.roofline import graph_cost, peak_of
from regal.cost.types import FORBIDDEN
from regal.cost.work import work_of
from regal.devices.quantities import LARGEST_NS
from regal.fusion.classify import IMAGE_RANK, classes_of
from regal.fusion.types import (
    CONTIGUOUS,
    FuseClass,
    FusionProblem,
    LayoutRule,
    PerLayout,
)
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from regal.cost.profile import OpTimes
    from regal.devices.types import Device, System
    from regal.fusion.classify import Classes
    from regal.graph.types import Graph, Op


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutModel:
    """What a convolution pays for its layout, where nobody measured it. An assumption.

    Libraries (oneDNN, cuDNN) compute on blocks of `lanes` channels. Contiguous images are
    reordered into blocks and back, `reorders` times through memory each; with channels last they
    are blocks already. Images of few channels fill a block badly: then channels last takes up to
    `worst` times the arithmetic, by the share of lanes that work.
    """

    reorders: float = 1.0
    lanes: int = 16
    worst: float = 2.0


def fusion_problem(
    graph: Graph,
    system: System,
    *,
    profile: OpTimes | None = None,
    layouts: LayoutModel | None = None,
    most_ops: int = 64,
) -> FusionProblem:
    """Return what fusing and laying out `graph` may do and costs on `system`.

    Alone an op takes what `regal.cost.roofline` says. Inside a kernel it takes its arithmetic, and
    the kernel its launch and the traffic at its border. Times that were measured are kept: inside
    a kernel such a convolution or product takes its time less the launch, any other op at most
    that.

    Args:
        graph: a checked graph of N ops.
        system: D devices.
        profile: measured times that replace the formula op by op.
        layouts: what convolutions pay; None: the defaults.
        most_ops: in one kernel.

    Cost: O(N (operands + D)).
    """
    classes = classes_of(graph)
    pricing = _Pricing(graph, system, classes, layouts or LayoutModel())
    cost = graph_cost(graph, system, profile)
    alone, work = [], []
    for i, row in enumerate(cost.op_ns):
        prices = [
            pricing.op(i, device, ns, is_measured=cost.sources[i] in {"file", "profile"})
            for device, ns in zip(system.devices, row, strict=True)
        ]
        alone.append(tuple(price[0] for price in prices))
        work.append(tuple(price[1] for price in prices))
    through = [
        tuple(_ns(size_of(tensor), device) for device in system.devices) for tensor in graph.tensors
    ]
    ops = range(len(graph.ops))
    return FusionProblem(
        graph=graph,
        n_devices=len(system.devices),
        fuse_classes=classes.fuse_classes,
        pairs=classes.pairs,
        anchors=frozenset(i for i in ops if classes.fuse_classes[i] is FuseClass.ANCHOR),
        not_with_anchors=frozenset(
            i for i in ops if classes.fuse_classes[i] is FuseClass.REDUCTION
        ),
        most_ops=most_ops,
        layout_rules=classes.layout_rules,
        two_layouts=classes.two_layouts,
        view_of=classes.view_of,
        output_layouts=(CONTIGUOUS,) * len(graph.outputs),
        alone_ns=tuple(alone),
        work_ns=tuple(work),
        launch_ns=tuple(device.launch_ns for device in system.devices),
        read_ns=tuple(through),
        write_ns=tuple(through),
        convert_ns=tuple(
            tuple(
                min(device.launch_ns + 2 * ns, LARGEST_NS)
                for device, ns in zip(system.devices, row, strict=True)
            )
            for row in through
        ),
    )


class _Pricing:
    """What an op takes alone and inside a kernel, by layout."""

    def __init__(
        self, graph: Graph, system: System, classes: Classes, layouts: LayoutModel
    ) -> None:
        self._graph = graph
        self._system = system
        self._classes = classes
        self._layouts = layouts

    def op(
        self, number: int, device: Device, alone_ns: int, *, is_measured: bool
    ) -> tuple[PerLayout, PerLayout]:
        """Return (alone, inside) of an op that takes `alone_ns` alone in any layout."""
        if alone_ns == FORBIDDEN:
            return (FORBIDDEN, FORBIDDEN), (FORBIDDEN, FORBIDDEN)
        op = self._graph.ops[number]
        if self._classes.fuse_classes[number] is FuseClass.VIEW:
            return (alone_ns, alone_ns), (0, 0)
        body = max(alone_ns - device.launch_ns, 0)
        inside = self._arithmetic(op, device)
        if is_measured:
            is_anchor = self._classes.fuse_classes[number] is FuseClass.ANCHOR
            inside = body if is_anchor else min(inside, body)
        if self._classes.layout_rules[number] is not LayoutRule.SENSITIVE:
            return (alone_ns, alone_ns), (inside, inside)
        images = [t for t in dict.fromkeys((*op.inputs, *op.outputs)) if t != ABSENT]
        moved = sum(
            size_of(self._graph.tensors[t]) for t in images if t in self._classes.two_layouts
        )
        reorder = _ns(2 * self._layouts.reorders * moved, device)
        idle = ceil((self._idle(op) - 1.0) * inside)
        return (
            (min(alone_ns + reorder, LARGEST_NS), min(alone_ns + idle, LARGEST_NS)),
            (min(inside + reorder, LARGEST_NS), min(inside + idle, LARGEST_NS)),
        )

    def _arithmetic(self, op: Op, device: Device) -> int:
        work = work_of(op, self._graph.tensors, self._graph.framework)
        peak = peak_of(device, work)
        return min(ceil(work.flops * 1e9 / peak), LARGEST_NS) if peak else 0

    def _idle(self, op: Op) -> float:
        """Return by how much longer the arithmetic takes where lanes idle, 1 to `worst`."""
        lanes = self._layouts.lanes
        channels = [
            self._graph.tensors[t].shape[1]
            for t in (*op.inputs[:1], *op.outputs[:1])
            if t != ABSENT and len(self._graph.tensors[t].shape) == IMAGE_RANK
        ]
        shares = [ceil(c / lanes) * lanes / c for c in channels if c > 0]
        return min(max(shares, default=1.0), self._layouts.worst)


def _ns(size: float, device: Device) -> int:
    return min(ceil(size * 1e9 / device.bytes_per_s), LARGEST_NS)
