"""Turn a graph, a system and its costs into the numbers that the native kernel searches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from regal._native import DeviceFault, DeviceProblem, build_device_problem
from regal.cost.types import FORBIDDEN
from regal.devices.types import MOST_DEVICES, allowed_devices
from regal.errors import ModelError, UsageError
from regal.graph.memory import counted_storages
from regal.graph.types import ABSENT, COUNTED_ROLES, Role
from regal.plan.problem import in_place_pairs
from regal.plan.residents import residents_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from regal.cost.types import GraphCost
    from regal.devices.types import Link, System
    from regal.graph.types import Graph
    from regal.plan.problem import InPlaceRow

    Ints = NDArray[np.int64]

UNLIMITED = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleProblem:
    """The problem "which device runs each op, in which order do ops and transfers run?".

    N ops, D devices, T tensors that can be sent, S counted storages, R residents (parameters,
    constants, state). All arrays are int64. Their meaning is that of native/device_problem.h.
    """

    native: DeviceProblem
    durations: Ints  # (N, D) ns, or -1: the device cannot run the op
    data_edges: Ints  # (E, 3): producer op, reader op, tensor row
    control_edges: Ints  # (C, 2): earlier op, later op
    input_reads: Ints  # (I, 2): reader op, tensor row of a graph input
    producers: Ints  # (T,): op or -1
    tensor_storages: Ints  # (T,): storage row or -1
    outputs: Ints  # tensor rows
    storage_bytes: Ints  # (S,)
    workspace: Ints  # (N,)
    groups: Ints  # (N,): equal = colocated
    in_place: Ints  # (P, 3): op, in storage row, out storage row
    resident_bytes: Ints  # (R,)
    resident_users: Ints  # (U, 2): op, resident
    capacity: Ints  # (D,); 2**63 - 1 = no limit
    link_classes: Ints  # (D, D), -1 on the diagonal
    transfers: Ints  # (classes, T) ns
    latency: Ints  # (D, D) ns of a control edge
    tensors: tuple[int, ...]  # tensor row -> tensor of the graph
    storages: tuple[int, ...]  # storage row -> storage of the graph
    residents: tuple[int, ...]  # resident row -> storage of the graph; -1: in a body
    tensors_of_pair: Mapping[InPlaceRow, tuple[int, int]]  # in-place row -> its two tensors
    has_contention: bool
    capacity_counts_live: bool

    @property
    def n_ops(self) -> int:
        """Return N."""
        return len(self.durations)

    @property
    def n_devices(self) -> int:
        """Return D."""
        return self.capacity.size


def schedule_problem(
    graph: Graph,
    system: System,
    cost: GraphCost,
    workspace: Sequence[int] | None = None,
    *,
    in_place: bool = True,
) -> ScheduleProblem:
    """Return the problem "where and when does each op of `graph` run on `system`?".

    Tensors that can be sent are graph inputs and outputs of ops. A tensor of a counted role that
    nothing writes is taken for a graph input. Parameters, constants and state are there from
    the start on each device that uses them. Ops that touch the same state run on one device.

    Args:
        graph: a checked graph of N ops.
        system: D devices.
        cost: what the ops take on these devices.
        workspace: N byte counts that replace the ops' own workspaces (planned bodies).
        in_place: whether ops may write over an input that dies.

    Raises:
        ModelError: no device can run an op or all ops of a colocation group, or numbers are too
            large.
        UsageError: a link has no speed, or there are more than 256 devices.

    Cost: O((N + uses) log + D^2 T).
    """
    sizes = counted_storages(graph)
    storage_row = {storage: row for row, storage in enumerate(sizes)}
    tensors = sendable(graph)
    row_of = {tensor: row for row, tensor in enumerate(tensors)}
    producer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs}
    reads = [
        (i, row_of[t])
        for i, op in enumerate(graph.ops)
        for t in dict.fromkeys(op.inputs)
        if t in row_of
    ]
    producers = [producer.get(t, -1) for t in tensors]
    residents = residents_of(graph)
    pairs = in_place_pairs(graph, storage_row, sizes) if in_place else {}
    classes, links = _link_classes(system)
    problem = _Numbers(
        durations=_durations(graph, system, cost),
        workspace=_ints(
            [op.workspace_bytes for op in graph.ops] if workspace is None else workspace
        ),
        groups=_ints(groups_of(graph)),
        reads=_rows(reads, 2),
        producers=_ints(producers),
        tensor_storages=_ints([storage_row.get(graph.tensors[t].storage, -1) for t in tensors]),
        outputs=_ints(sorted({row_of[t] for t in graph.outputs if t in row_of})),
        controls=_rows(
            [(a, i) for i, op in enumerate(graph.ops) for a in dict.fromkeys(op.control_inputs)], 2
        ),
        bytes=_ints(list(sizes.values())),
        in_place=_rows(list(pairs), 3),
        resident_bytes=_ints([resident.bytes for resident in residents]),
        resident_users=_rows(
            sorted((i, row) for row, resident in enumerate(residents) for i in resident.users), 2
        ),
        capacity=_ints(
            [UNLIMITED if d.memory_bytes is None else d.memory_bytes for d in system.devices]
        ),
        link_classes=classes,
        transfers=_transfers(graph, tensors, links),
        latency=_latency(system),
    )
    _require_devices(graph, system, problem)
    return ScheduleProblem(
        native=_built(graph, problem, system, tensors),
        durations=problem.durations,
        data_edges=_rows([(producers[t], i, t) for i, t in reads if producers[t] >= 0], 3),
        control_edges=problem.controls,
        input_reads=_rows([(i, t) for i, t in reads if producers[t] < 0], 2),
        producers=problem.producers,
        tensor_storages=problem.tensor_storages,
        outputs=problem.outputs,
        storage_bytes=problem.bytes,
        workspace=problem.workspace,
        groups=problem.groups,
        in_place=problem.in_place,
        resident_bytes=problem.resident_bytes,
        resident_users=problem.resident_users,
        capacity=problem.capacity,
        link_classes=problem.link_classes,
        transfers=problem.transfers,
        latency=problem.latency,
        tensors=tensors,
        storages=tuple(sizes),
        residents=tuple(resident.storage for resident in residents),
        tensors_of_pair=pairs,
        has_contention=system.has_contention,
        capacity_counts_live=system.capacity_counts_live,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbers:
    """What the kernel reads; see native/device_problem.h."""

    durations: Ints
    workspace: Ints
    groups: Ints
    reads: Ints
    producers: Ints
    tensor_storages: Ints
    outputs: Ints
    controls: Ints
    bytes: Ints
    in_place: Ints
    resident_bytes: Ints
    resident_users: Ints
    capacity: Ints
    link_classes: Ints
    transfers: Ints
    latency: Ints


def groups_of(graph: Graph) -> list[int]:
    """Return, per op, the lowest op that must run on the same device.

    Ops are joined by the names of their colocation groups and by the state that they touch.
    """
    root = list(range(len(graph.ops)))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    first_of: dict[tuple[str, int], int] = {}
    states = {tensor.storage for tensor in graph.tensors if tensor.role is Role.STATE}
    for i, op in enumerate(graph.ops):
        used = {graph.tensors[t].storage for t in (*op.inputs, *op.outputs) if t != ABSENT}
        keys = [("", storage) for storage in sorted(used & states)]
        keys += [(op.colocation, -1)] if op.colocation else []
        for key in keys:
            a, b = find(first_of.setdefault(key, i)), find(i)
            root[max(a, b)] = min(a, b)
    return [find(i) for i in range(len(graph.ops))]


def sendable(graph: Graph) -> tuple[int, ...]:
    """Return the tensors that can be sent: outputs of ops, and counted ones without a writer."""
    made = {t for op in graph.ops for t in op.outputs}
    used = {t for op in graph.ops for t in op.inputs} | {*graph.inputs, *graph.outputs}
    given = {t for t in used - {ABSENT} if graph.tensors[t].role in COUNTED_ROLES}
    return tuple(sorted((made | given) - {ABSENT}))


def transfer_ns(link: Link, size: int) -> int:
    """Return what sending `size` bytes over `link` takes: latency + bytes / bandwidth, up.

    Raises:
        UsageError: the link has no speed.
    """
    if not link.bytes_per_s > 0 or link.latency_ns < 0:
        raise UsageError(
            f"a link has {link.bytes_per_s} bytes/s and {link.latency_ns} ns latency; give a speed"
            " above 0 and a latency of 0 or more"
        )
    if math.isinf(link.bytes_per_s):
        return max(link.latency_ns, 1)
    # Exact: floats of large tensors would round differently from what a file says.
    return max(link.latency_ns + math.ceil(Fraction(size * 10**9) / Fraction(link.bytes_per_s)), 1)


def _durations(graph: Graph, system: System, cost: GraphCost) -> Ints:
    table = np.array(cost.op_ns, dtype=np.int64).reshape(len(graph.ops), len(system.devices))
    durations = np.where(table == FORBIDDEN, FORBIDDEN, np.maximum(table, 1))
    for i, op in enumerate(graph.ops):
        if op.devices:
            durations[i, np.logical_not(allowed_devices(system, op.devices))] = FORBIDDEN
    return durations


def _link_classes(system: System) -> tuple[Ints, list[Link]]:
    """Return the (D, D) table of classes, and one link of each class."""
    count = len(system.devices)
    classes = np.full((count, count), -1, dtype=np.int64)
    number_of: dict[tuple[int, float], int] = {}
    links: list[Link] = []
    for a in range(count):
        for b in range(count):
            if a != b:
                link = system.links[a, b]
                number = number_of.setdefault((link.latency_ns, link.bytes_per_s), len(links))
                if number == len(links):
                    links.append(link)
                classes[a, b] = number
    return classes, links


def _transfers(graph: Graph, tensors: Sequence[int], links: Sequence[Link]) -> Ints:
    table = np.zeros((len(links), len(tensors)), dtype=np.int64)
    sizes, of_tensor = np.unique(
        np.array([graph.tensors[t].bytes for t in tensors], dtype=np.int64), return_inverse=True
    )
    for row, link in zip(table, links, strict=True):
        row[:] = _ints([_fits(transfer_ns(link, int(size))) for size in sizes])[of_tensor]
    for column, t in enumerate(tensors):
        explicit = graph.tensors[t].transfer_ns
        if explicit is not None:
            table[:, column] = _fits(max(explicit, 1))
    return table


def _fits(time_ns: int) -> int:
    """Return `time_ns`, cut where the kernel refuses it anyway."""
    return min(time_ns, 1 << 62)


def _latency(system: System) -> Ints:
    count = len(system.devices)
    latency = np.zeros((count, count), dtype=np.int64)
    for (a, b), link in system.links.items():
        if a != b and 0 <= a < count and 0 <= b < count:
            latency[a, b] = _fits(link.latency_ns)
    return latency


def _require_devices(graph: Graph, system: System, problem: _Numbers) -> None:
    if len(system.devices) > MOST_DEVICES:
        raise UsageError(
            f"system '{system.name}' has {len(system.devices)} devices; {MOST_DEVICES} at most"
        )
    names = ", ".join(f"'{device.name}'" for device in system.devices)
    members: dict[int, list[int]] = {}
    for i, group in enumerate(problem.groups):
        members.setdefault(int(group), []).append(i)
    for ops in members.values():
        guilty = next((i for i in ops if (problem.durations[i] == FORBIDDEN).all()), None)
        if guilty is not None:
            op = graph.ops[guilty]
            kinds = f"; it is meant for kinds {', '.join(op.devices)}" if op.devices else ""
            raise ModelError(f"op '{op.name}' ({op.kind}) can run on none of {names}{kinds}")
        if (problem.durations[ops] == FORBIDDEN).any(axis=0).all():
            a, b = _split_pair(problem.durations, ops)
            raise ModelError(
                f"ops '{graph.ops[a].name}' and '{graph.ops[b].name}' must share a device (a group"
                f" of {len(ops)} ops), and none of {names} can run them all"
            )


def _split_pair(durations: Ints, ops: Sequence[int]) -> tuple[int, int]:
    """Return two ops of a group that no device can run as a whole; no common device, if any."""
    first = ops[0]
    for other in ops[1:]:
        if ((durations[first] == FORBIDDEN) | (durations[other] == FORBIDDEN)).all():
            return first, other
    return first, ops[1]


def _built(
    graph: Graph, numbers: _Numbers, system: System, tensors: Sequence[int]
) -> DeviceProblem:
    verdict, native = build_device_problem(
        durations=numbers.durations,
        workspace=numbers.workspace,
        groups=numbers.groups,
        reads=numbers.reads,
        producers=numbers.producers,
        tensor_storages=numbers.tensor_storages,
        outputs=numbers.outputs,
        controls=numbers.controls,
        bytes=numbers.bytes,
        in_place=numbers.in_place,
        resident_bytes=numbers.resident_bytes,
        resident_users=numbers.resident_users,
        capacity=numbers.capacity,
        link_classes=numbers.link_classes,
        transfers=numbers.transfers,
        latency=numbers.latency,
        has_contention=system.has_contention,
        capacity_counts_live=system.capacity_counts_live,
    )
    if verdict.fault is DeviceFault.CYCLE:
        raise ModelError(f"op '{graph.ops[verdict.guilty].name}' depends on itself: a cycle")
    if verdict.fault is DeviceFault.TOO_LARGE:
        raise ModelError(
            f"graph '{graph.name}' on '{system.name}': times or sizes add up to more than 2^61"
        )
    if verdict.fault is not DeviceFault.NONE:
        raise ModelError(
            f"graph '{graph.name}' cannot be scheduled on '{system.name}':"
            f" {verdict.fault.name.lower()} at {verdict.guilty}"
        )
    return native


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _rows(rows: Sequence[tuple[int, ...]], columns: int) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, columns)
