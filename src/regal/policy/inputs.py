"""What a policy sees of a problem: ops, edges, devices and the whole, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.plan.schedule_problem import UNLIMITED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regal._native import CompactDevices
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.search.devices.types import Objective

    Floats = NDArray[np.float32]
    Ints = NDArray[np.int64]

# Columns after those of `_native.device_feature_names`, for ops. The reference order is a good
# order for one device; shares are of the most live bytes, or of the work, in it.
MORE_NODE_FEATURES = (
    "reference_position",  # from -1, first, to 1, last
    "live_share",  # bytes live when the op runs
    "written_share",  # bytes that it writes
    "lifetime",  # from it to the last reader of what it writes, as a share of the order
    "work_share",  # its duration: log(1 + ops * share)
    "may_move",  # share of devices that can run it
    "reference_wave_2",  # cosine over the places in the reference order: a whole wave,
    "reference_wave_4",  # two waves, and so on: stretches of it that could share a device
    "reference_wave_8",
    "reference_wave_16",
)
WAVES = (2, 4, 8, 16)
EDGE_FEATURES = (
    "is_backward",  # 1: from the reader to the producer
    "is_control",  # 1: no tensor
    "bytes",  # log(1 + bytes) / 20
    "bytes_share",  # of the most live bytes in the reference order
    "transfer_ratio",  # log of the time to send it over the mean duration of an op
    "input_share",  # of the bytes that the reader reads
    "is_heaviest",  # 1: the heaviest tensor that the reader reads
    "is_last",  # 1: the reader is the last one in the reference order
    "distance",  # between the two in the reference order, as a share of it
)
CONTEXT = (
    "time_weight",  # share of running time in the objective; the rest is memory
    "is_balanced",  # 1: both count
    "devices",  # log2 of their number
    "two_devices",  # 1: exactly two
    "ops",  # log of their number, about -2 to 2
    "edges_per_op",  # log
    "parallelism",  # log of work over the longest chain
    "transfer_ratio",  # log of the mean time to send a tensor over the mean duration
    "latency_ratio",  # log of the mean latency over the mean duration
    "speed_ratio",  # log of the slowest over the fastest device
    "resident_share",  # parameters and state over all bytes
    "is_limited",  # 1: some device has a memory limit
    "capacity_ratio",  # log of all capacities over what one device needs, cut at 2
    "equal_devices",  # 1: all are equal
    "has_contention",  # 1: a link carries one tensor at a time
    "peak_gap",  # log of the reference's peak over the proven bound of the peak
)
DEVICE_FEATURES = (
    "place",  # from -1, first, to 1, last
    "is_first",
    "is_last",
    "wave_2",  # cosine over the places: breaks the symmetry of equal devices
    "wave_4",
    "speed",  # log of its speed over the mean
    "may_run",  # share of ops that it can run
    "capacity",  # log of its memory over an equal share of the need, cut at 2
    "latency",  # log of its latency over the mean latency
)


def node_feature_names() -> tuple[str, ...]:
    """Return the names of the columns of `PolicyInputs.nodes`."""
    return (*(name for name, *_ in _native.device_feature_names()), *MORE_NODE_FEATURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInputs:
    """A problem of n ops, e edges, D devices and G colocation groups, as networks read it."""

    nodes: Floats  # (n, f): see node_feature_names
    sources: Ints  # (e,): ops that messages come from; every edge is there in both directions
    targets: Ints  # (e,): ops that they go to
    edges: Floats  # (e, g): EDGE_FEATURES
    context: Floats  # (c,): CONTEXT
    devices: Floats  # (D, h): DEVICE_FEATURES
    groups: Ints  # (n,): group of each op, as `_native.GeneLayout` numbers them
    group_sizes: Floats  # (G,): ops of each group

    @property
    def n_ops(self) -> int:
        """Return n."""
        return len(self.nodes)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return the arrays by name, in the order of the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def policy_inputs(
    problem: ScheduleProblem, compact: CompactDevices, objective: Objective
) -> PolicyInputs:
    """Return what a policy sees of a problem and an objective.

    Args:
        problem: n ops, at least one, on D devices.
        compact: of the same problem.
        objective: what is minimized.

    Cost: O((n + e) * features); 10 ms per 2,000 ops.
    """
    numbers = _Numbers(problem, compact)
    groups, sizes = numbers.groups()
    sources, targets, edges = numbers.edges()
    return PolicyInputs(
        nodes=numbers.nodes(),
        sources=sources,
        targets=targets,
        edges=edges,
        context=numbers.context(objective, len(edges)),
        devices=numbers.devices(),
        groups=groups,
        group_sizes=sizes,
    )


def policy_context(
    problem: ScheduleProblem, compact: CompactDevices, objective: Objective
) -> Floats:
    """Return the (c,) numbers that hold for a problem of at least one op; see CONTEXT.

    Cost: O(n + e); 1 ms per 1,000 ops.
    """
    n_edges = 2 * (len(problem.data_edges) + len(problem.control_edges))
    return _Numbers(problem, compact).context(objective, n_edges)


class _Numbers:
    """What several of the arrays need, computed once."""

    def __init__(self, problem: ScheduleProblem, compact: CompactDevices) -> None:
        self._problem, self._compact = problem, compact
        n = problem.n_ops
        self._n = n
        self._places = np.empty(n, dtype=np.int64)  # op -> place in the reference order
        self._places[compact.reference] = np.arange(n)
        runs = problem.durations >= 0
        self._runs = runs
        known = np.where(runs, problem.durations, 0).astype(np.float64)
        self._durations = known.sum(axis=1) / np.maximum(runs.sum(axis=1), 1)  # (n,) mean ns
        self._tensor_bytes = np.zeros(len(problem.producers), dtype=np.float64)
        stored = problem.tensor_storages >= 0
        self._tensor_bytes[stored] = problem.storage_bytes[problem.tensor_storages[stored]]
        sent = problem.transfers
        self._sent = sent.mean(axis=0) if len(sent) else np.zeros(len(problem.producers))
        self._live, self._last_reader = self._lives()
        self._peak = max(float(self._live.max(initial=0.0)), 1.0)
        self._resident = float(problem.resident_bytes.sum())

    def _lives(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the live bytes per place, and per tensor the place of its last reader."""
        problem, n = self._problem, self._n
        producers, storages = problem.producers, problem.tensor_storages
        made = np.where(producers >= 0, self._places[producers], n)
        first, last = made.copy(), np.where(producers >= 0, made, 0)
        reads = (problem.data_edges[:, 1:], problem.input_reads)
        for reader, tensor in (rows.T for rows in reads):
            np.minimum.at(first, tensor, self._places[reader])
            np.maximum.at(last, tensor, self._places[reader])
        last_reader = last.copy()
        last[problem.outputs] = n - 1
        begins = np.full(len(problem.storage_bytes), n, dtype=np.int64)
        ends = np.zeros(len(problem.storage_bytes), dtype=np.int64)
        stored = storages >= 0
        np.minimum.at(begins, storages[stored], first[stored])
        np.maximum.at(ends, storages[stored], last[stored])
        used = begins < n
        change = np.zeros(n + 2)
        np.add.at(change, begins[used], problem.storage_bytes[used])
        np.add.at(change, ends[used] + 1, -problem.storage_bytes[used])
        live = np.cumsum(change)[:n]
        live[self._places] += problem.workspace
        return live, last_reader

    def groups(self) -> tuple[Ints, Floats]:
        """Return the group of each op, as genes number them, and the sizes of the groups."""
        native = self._problem.native
        groups = np.asarray(native.group, dtype=np.int64)
        return groups, np.bincount(groups, minlength=native.n_groups).astype(np.float32)

    def nodes(self) -> Floats:
        """Return the (n, f) features of ops."""
        problem, n = self._problem, self._n
        written, lifetime = np.zeros(n), np.zeros(n)
        made = problem.producers >= 0
        makers = problem.producers[made]
        np.add.at(written, makers, self._tensor_bytes[made])
        np.maximum.at(lifetime, makers, self._last_reader[made] - self._places[makers])
        work = max(self._durations.sum(), 1.0)
        more = np.stack(
            (
                2.0 * self._places / max(n - 1, 1) - 1.0,
                self._live[self._places] / self._peak,
                np.minimum(written / self._peak, 2.0),
                lifetime / n,
                np.log1p(n * self._durations / work),
                self._runs.mean(axis=1),
                *(np.cos(np.pi * wave * self._places / max(n - 1, 1)) for wave in WAVES),
            ),
            axis=1,
        )
        table = _native.device_features(self._compact)
        return np.concatenate((table, more.astype(np.float32)), axis=1)

    def edges(self) -> tuple[Ints, Ints, Floats]:
        """Return sources, targets and features of the edges in both directions."""
        problem, n = self._problem, self._n
        data, control = problem.data_edges, problem.control_edges
        producers, readers = np.concatenate((data[:, :2], control)).T
        count = len(data)
        tensors = data[:, 2]
        is_data = np.arange(len(producers)) < count
        sizes = np.zeros(len(producers))
        sizes[:count] = self._tensor_bytes[tensors]
        ratios = np.zeros(len(producers))
        ratios[:count] = np.log((self._sent[tensors] + 1) / (self._durations.mean() + 1))
        read = np.zeros(n)
        heaviest = np.zeros(n)
        np.add.at(read, readers, sizes)
        np.maximum.at(heaviest, readers, sizes)
        is_last = np.zeros(len(producers))
        is_last[:count] = self._last_reader[tensors] == self._places[data[:, 1]]
        one_way = np.stack(
            (
                np.zeros(len(producers)),
                ~is_data,
                np.log1p(sizes) / 20.0,
                np.minimum(sizes / self._peak, 2.0),
                np.clip(ratios / 4.0, -2.0, 2.0),
                sizes / np.maximum(read[readers], 1.0),
                is_data & (sizes >= heaviest[readers]),
                is_last,
                (self._places[readers] - self._places[producers]) / n,
            ),
            axis=1,
        ).astype(np.float32)
        back = one_way.copy()
        back[:, 0] = 1.0
        return (
            np.concatenate((producers, readers)),
            np.concatenate((readers, producers)),
            np.concatenate((one_way, back)),
        )

    def context(self, objective: Objective, n_edges: int) -> Floats:
        """Return the (c,) numbers that hold for the whole problem."""
        problem, n = self._problem, self._n
        count = problem.n_devices
        work = max(float(self._durations.sum()), 1.0)
        duration = work / n
        time_part = objective.per_ns * work
        memory_part = objective.per_byte * self._peak
        classes = problem.native.device_class
        limited = problem.capacity < UNLIMITED
        speeds = self._speeds()
        bound = max(float(_native.device_peak_bound(problem.native)), 1.0)
        longest = max(float(_native.device_time_bound(problem.native)), 1.0)
        values = (
            time_part / max(time_part + memory_part, 1e-300),
            float(time_part > 0 and memory_part > 0),
            np.log2(count),
            float(count == 2),
            (np.log(n) - 6.0) / 2.0,
            np.log((n_edges / 2 + 1) / n),
            np.log(work / longest) / 2.0,
            _log_ratio(float(self._sent.mean()) if self._sent.size else 0.0, duration),
            _log_ratio(float(problem.latency.mean()), duration),
            np.log(speeds.min() / speeds.max()),
            self._resident / (self._resident + self._peak),
            float(limited.any()),
            self._capacity_ratio(float(np.minimum(problem.capacity, 2**61).sum(dtype=np.float64))),
            float(len(set(classes)) == 1),
            float(problem.has_contention),
            min(np.log(self._peak / bound), 4.0),
        )
        return np.array(values, dtype=np.float32)

    def devices(self) -> Floats:
        """Return the (D, h) features of devices."""
        problem = self._problem
        count = problem.n_devices
        place = np.arange(count) / max(count - 1, 1)
        speeds = self._speeds()
        latency = problem.latency.mean(axis=1) + 1.0
        capacity = [self._capacity_ratio(min(float(c), 2.0**61) * count) for c in problem.capacity]
        columns = (
            2.0 * place - 1.0,
            np.arange(count) == 0,
            np.arange(count) == count - 1,
            np.cos(2 * np.pi * place),
            np.cos(4 * np.pi * place),
            np.log(speeds / speeds.mean()),
            self._runs.mean(axis=0),
            capacity,
            np.clip(np.log(latency / latency.mean()), -4.0, 4.0),
        )
        return np.stack([np.asarray(c, dtype=np.float32) for c in columns], axis=1)

    def _speeds(self) -> NDArray[np.float64]:
        """Return how fast each device is: mean of the ops' mean duration over that on it."""
        times = np.where(self._runs, self._problem.durations, 0)
        ratios = np.where(self._runs, self._durations[:, None] / np.maximum(times, 1), 0.0)
        counts = self._runs.sum(axis=0)
        speeds = ratios.sum(axis=0) / np.maximum(counts, 1)
        return np.maximum(np.where(counts > 0, speeds, 1.0), 1e-6)

    def _capacity_ratio(self, capacity: float) -> float:
        need = self._peak + self._resident
        return float(np.clip(np.log(max(capacity, 1.0) / need), -2.0, 2.0))


def _log_ratio(value: float, unit: float) -> float:
    return float(np.clip(np.log((value + 1.0) / (unit + 1.0)) / 4.0, -2.0, 2.0))
