"""What each op of a graph takes on each device of a system, and where that number comes from."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from regal.cost.operands import size_of
from regal.cost.types import FORBIDDEN, GraphCost
from regal.cost.work import CHOICES, CONTROL, trips_of, work_of
from regal.devices.quantities import LARGEST_NS
from regal.devices.types import allowed_devices
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.cost.profile import OpTimes
    from regal.cost.work import Work
    from regal.devices.types import Device, System
    from regal.graph.types import Graph, Op

BYTES, ROOFLINE, PROFILE, FILE = "bytes", "roofline", "profile", "file"
SOURCES = (BYTES, ROOFLINE, PROFILE, FILE)  # the least trusted first


class Price(NamedTuple):
    """What one op takes on one device, and where that comes from."""

    ns: int
    source: str


def graph_cost(graph: Graph, system: System, profile: OpTimes | None = None) -> GraphCost:
    """Return what every op takes on every device, in whole nanoseconds of at least 1.

    What the file says comes first, then what `profile` measured on this kind of device, then
    launch + max(operations / peak of the dtype, bytes / bandwidth). An op whose operations no
    rule counts has its bytes alone. An op cannot run on a device that is of none of the op's own
    kinds of device; nor, unless the file gives a time there, on one that does not list the op's
    kind or has no peak for its dtype. In a system without a CPU, ops that need one run on the
    host that every other device has, at the price of that device.

    Bodies run one op after another: an op with bodies takes their sum, of a choice the longest,
    times the trips of a loop where they are known; unknown ones count once.

    Args:
        graph: N ops.
        system: D devices.
        profile: measured times that replace the formula op by op.

    Cost: O(N (operands + D)); 40,000 ops take below a second.
    """
    return _Pricing(system, profile).cost_of(graph)


class _Pricing:
    """Prices graphs and, once each, their bodies."""

    def __init__(self, system: System, profile: OpTimes | None) -> None:
        self._devices = system.devices
        self._profile = profile
        self._system = system
        self._has_pools = any(device.pools for device in system.devices)
        self._bodies: dict[int, GraphCost] = {}
        self._peaks: dict[tuple[str, str], tuple[float | None, ...]] = {}

    def cost_of(self, graph: Graph) -> GraphCost:
        rows, sources = [], []
        for op in graph.ops:
            prices = self._prices(op, graph)
            rows.append(tuple(FORBIDDEN if price is None else price.ns for price in prices))
            known = [SOURCES.index(price.source) for price in prices if price is not None]
            sources.append(SOURCES[min(known)] if known else ROOFLINE)
        return GraphCost(op_ns=tuple(rows), sources=tuple(sources))

    def _prices(self, op: Op, graph: Graph) -> list[Price | None]:
        """Return the price of the op per device, None where it cannot run."""
        work = work_of(op, graph.tensors, graph.framework)
        key = (work.kind, work.dtype)
        if key not in self._peaks:
            self._peaks[key] = tuple(peak_of(device, work) for device in self._devices)
        measured: Mapping[str, int] = {}
        if self._profile is not None:
            measured = self._profile.times_of(op, graph)
        touched = _touched_bytes(op, graph) if self._has_pools else 0
        allowed = allowed_devices(self._system, op.devices)

        def price_on(number: int) -> Price | None:
            device, peak = self._devices[number], self._peaks[key][number]
            if not allowed[number]:
                return None
            given = given_ns(op, device)
            if given is not None:
                return Price(given, FILE)
            if peak is None:
                return None
            if device.kind in measured:
                return Price(measured[device.kind], PROFILE)
            if work.kind == CONTROL:
                return self._price_of_bodies(op, graph, number)
            source = ROOFLINE if work.is_known else BYTES
            return Price(roofline_ns(work, device, peak, touched), source)

        return [_bounded(price_on(number)) for number in range(len(self._devices))]

    def _price_of_bodies(self, op: Op, graph: Graph, device: int) -> Price | None:
        totals, worst = [], SOURCES.index(FILE)
        for body in op.subgraphs:
            if id(body) not in self._bodies:
                self._bodies[id(body)] = self.cost_of(body)
            cost = self._bodies[id(body)]
            times = [row[device] for row in cost.op_ns]
            if FORBIDDEN in times:
                return None
            totals.append(sum(times))
            worst = min([worst, *(SOURCES.index(source) for source in cost.sources)])
        once = max(totals, default=0) if op.kind in CHOICES else sum(totals)
        launch = self._devices[device].launch_ns
        source = SOURCES[worst] if totals else BYTES
        return Price(launch + trips_of(op, graph.tensors) * once, source)


def _bounded(price: Price | None) -> Price | None:
    if price is None or 1 <= price.ns <= LARGEST_NS:
        return price
    return Price(min(max(price.ns, 1), LARGEST_NS), price.source)


def given_ns(op: Op, device: Device) -> int | None:
    """Return what the file says that the op takes on this kind of device, if it does."""
    if not op.times_ns:
        return None
    return op.times_ns.get(device.kind, op.times_ns.get(""))


def peak_of(device: Device, work: Work) -> float | None:
    """Return the operations per second for this work; None: the device cannot do it.

    The dtype of an op with bodies is that of their ops.
    """
    if device.kinds and work.kind not in device.kinds:
        return None
    peak = device.flops_per_s.get(work.dtype, device.flops_per_s.get(""))
    if peak is None and work.kind == CONTROL:
        return max(device.flops_per_s.values())
    return peak


def roofline_ns(work: Work, device: Device, peak: float, touched_bytes: int = 0) -> int:
    """Return launch + max(operations / peak, bytes / bandwidth), rounded up.

    Views take the launch alone; where nothing happens at all, 1 ns.

    Args:
        work: of one op.
        device: where it runs.
        peak: operations per second for its dtype.
        touched_bytes: of all its operands; the first memory pool that has room for them gives
            the bandwidth.
    """
    if work.kind == "none":
        return 1
    rate = device.bytes_per_s
    for pool in device.pools:
        if touched_bytes <= pool.bytes:
            rate = pool.bytes_per_s or rate
            break
    return device.launch_ns + ceil(max(work.flops * 1e9 / peak, work.bytes * 1e9 / rate))


def _touched_bytes(op: Op, graph: Graph) -> int:
    used = {t for t in (*op.inputs, *op.outputs) if t != ABSENT}
    return op.workspace_bytes + sum(size_of(graph.tensors[t]) for t in used)
