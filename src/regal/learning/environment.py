"""Graphs as tasks: a graph, devices, an objective and a search budget; a reward."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from regal import _native
from regal.cost.roofline import graph_cost
from regal.data.augment import Augmentation, augmented
from regal.data.entries import load_graph, load_index
from regal.data.systems import needed_bytes, random_system
from regal.devices.presets import system_named
from regal.learning.types import Reply, SearchTask
from regal.plan.schedule_problem import schedule_problem
from regal.policy.inputs import policy_inputs
from regal.policy.paper import PAPER_SEARCH, gene_rows, proposal_of_rows
from regal.search.devices.brkga import run_device_brkga
from regal.search.devices.compact import compact_devices, decoder_for
from regal.search.devices.es import DeviceEsOptions, run_device_es
from regal.search.devices.methods import device_method_named
from regal.search.devices.objectives import Weights, objective_of
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from regal._native import CompactDevices, DeviceSchedule
    from regal.data.entries import Entry
    from regal.graph.types import Graph
    from regal.learning.types import Request, TaskSpec
    from regal.plan.schedule_problem import ScheduleProblem
    from regal.policy.inputs import PolicyInputs
    from regal.search.devices.compact import Found
    from regal.search.devices.es import Adapted, WeightPrior
    from regal.search.devices.types import Objective

MOST_REWARD = 1.0
MOST_CACHED = 1024  # tasks; about 1 MB each
KEY_SCALE = 2.0**-32
RANDOM = "random"  # devices of a TaskSpec: "random:SEED"
TaskT = TypeVar("TaskT", bound=SearchTask, covariant=True)


class Task:
    """A graph on devices, to be planned for an objective."""

    def __init__(self, spec: TaskSpec) -> None:
        """Build the problem of a spec.

        Raises:
            ModelError: no device can run some op.

        Cost: 10 ms per 1,000 ops, more for a variation.
        """
        graph = graph_of(spec)
        name, _, seed = spec.devices.partition(":")
        system = random_system(int(seed), graph) if name == RANDOM else system_named(name)
        self.problem: ScheduleProblem = schedule_problem(graph, system, graph_cost(graph, system))
        self.compact: CompactDevices = compact_devices(self.problem)
        times = self.problem.durations[:, 0]
        self.objective: Objective = objective_of(
            spec.objective,
            Weights(),
            before_time_ns=int(times[times > 0].sum()),
            before_peak_bytes=needed_bytes(graph),
        )
        self._baselines: dict[tuple[int, int], float] = {}

    @cached_property
    def inputs(self) -> PolicyInputs:
        """Return what the policy sees."""
        return policy_inputs(self.problem, self.compact, self.objective)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Return `gene_rows` of the problem."""
        return gene_rows(self.problem)

    @cached_property
    def bound(self) -> float:
        """Return a proven bound of the cost; the raw decoder seldom reaches it."""
        native = self.problem.native
        return self.objective.value(
            _native.device_time_bound(native), _native.device_peak_bound(native)
        )

    def search(self, action: NDArray[np.float32] | None, evaluations: int, seed: int) -> Found:
        """Return what BRKGA finds with the (rows, 3) means, spreads and biases; None: uniform."""
        proposal = None
        if action is not None:
            proposal = proposal_of_rows(self.rows, *action.astype(np.float64).T)
        return run_device_brkga(
            self.compact,
            self.objective,
            Budget(evaluations=evaluations),
            seed=seed,
            options=PAPER_SEARCH,
            proposal=proposal,
        )

    def baseline(self, evaluations: int, seed: int) -> float:
        """Return the cost that uniform keys reach; it is searched once."""
        key = (evaluations, seed)
        if key not in self._baselines:
            self._baselines[key] = self.cost_of(self.search(None, evaluations, seed).schedule)
        return self._baselines[key]

    def attempt(
        self,
        action: NDArray[np.float32] | None,
        evaluations: int,
        seed: int,
        *,
        wants_keys: bool,
    ) -> tuple[float, NDArray[np.float32] | None]:
        """Return the cost of what `search` finds, and its keys if they are wanted."""
        found = self.search(action, evaluations, seed)
        keys = self.keys_of(found.schedule) if wants_keys else None
        return self.cost_of(found.schedule), keys

    def cost_of(self, schedule: DeviceSchedule) -> float:
        """Return the objective's value, raised by the share of memory that does not fit."""
        figures = _native.simulate_devices(self.problem.native, schedule)
        if figures is None:
            raise AssertionError("a decoded schedule waits in a circle")
        value = self.objective.value(figures.time, figures.most)
        if figures.overflow:
            value *= 1.0 + figures.overflow / float(self.problem.capacity.min())
        return max(value, 1e-12)

    def lesson(self, evaluations: int, seed: int) -> tuple[float, NDArray[np.float32]]:
        """Return the cost and the keys of a good schedule that the raw decoder can make.

        The strongest method finds one; half as many evaluations of BRKGA over raw keys make it
        one of that decoder.
        """
        found = device_method_named("regal")(
            self.problem, self.objective, Budget(evaluations=evaluations), seed=seed, threads=1
        )
        start = _native.encode_schedule(self.compact, PAPER_SEARCH.decoder, found.schedule)
        best = run_device_brkga(
            self.compact,
            self.objective,
            Budget(evaluations=max(evaluations // 2, 1)),
            seed=seed,
            options=PAPER_SEARCH,
            chromosomes=start,
        )
        return self.cost_of(best.schedule), self.keys_of(best.schedule)

    def keys_of(self, schedule: DeviceSchedule) -> NDArray[np.float32]:
        """Return a key per row of `gene_rows`; NaN where an op makes nothing that can be sent.

        Order as places, one device high. Equal devices are named by first use: else their two
        names would cancel each other in the mean over schedules.
        """
        genes = _native.encode_schedule(self.compact, PAPER_SEARCH.decoder, schedule)[0]
        n, devices = self.problem.n_ops, self.problem.n_devices
        names = _names_by_first_use(schedule, self.problem.native.device_class, devices)
        end = n + self.problem.native.n_groups * devices
        affinity = genes[n:end].reshape(-1, devices)
        renamed = np.empty_like(affinity)
        renamed[:, names] = affinity
        producers = self.problem.producers
        made = producers >= 0
        transfers = np.full(n, -np.inf)
        np.maximum.at(transfers, producers[made], genes[end:][made])
        transfers[np.isinf(transfers)] = np.nan
        keys = np.concatenate((genes[:n], renamed.reshape(-1), transfers))
        return (keys * KEY_SCALE).astype(np.float32)


class TaskEnvironment(Generic[TaskT]):
    """An `Environment` of tasks that a function makes; searches run in this process."""

    def __init__(self, make: Callable[[TaskSpec], TaskT]) -> None:
        self._make = make
        self._tasks: OrderedDict[TaskSpec, TaskT] = OrderedDict()

    def task(self, spec: TaskSpec) -> TaskT:
        """Return the task of a spec; the last ones are kept."""
        task = self._tasks.get(spec)
        if task is None:
            task = self._tasks[spec] = self._make(spec)
            if len(self._tasks) > MOST_CACHED:
                self._tasks.popitem(last=False)
        self._tasks.move_to_end(spec)
        return task

    def inputs(self, spec: TaskSpec) -> PolicyInputs:
        """Return what the policy sees of a task."""
        return self.task(spec).inputs

    def run(self, request: Request) -> Reply:
        """Return the reward of a search: the logarithm of the baseline's cost over its own."""
        task = self.task(request.spec)
        cost, keys = task.attempt(
            request.action, request.evaluations, request.seed, wants_keys=request.wants_keys
        )
        ratio = math.log(task.baseline(request.evaluations, request.seed) / cost)
        return Reply(
            reward=max(-MOST_REWARD, min(MOST_REWARD, ratio)),
            cost=cost,
            keys=keys,
        )

    def lesson(self, spec: TaskSpec, evaluations: int, seed: int) -> Reply:
        """Return a good schedule of a task; its reward is not measured."""
        cost, keys = self.task(spec).lesson(evaluations, seed)
        return Reply(reward=0.0, cost=cost, keys=keys)


class GraphEnvironment(TaskEnvironment[Task]):
    """The environment of graphs of the data set on devices."""

    def __init__(self, make: Callable[[TaskSpec], Task] = Task) -> None:
        super().__init__(make)


def strategy(
    compact: CompactDevices,
    objective: Objective,
    evaluations: int,
    seed: int,
    prior: WeightPrior | None = None,
) -> Adapted:
    """Return what the evolution strategy finds, with the objective's decoder."""
    return run_device_es(
        compact,
        objective,
        Budget(evaluations=evaluations),
        seed=seed,
        options=DeviceEsOptions(decoder=decoder_for(objective)),
        prior=prior,
    )


def graph_of(spec: TaskSpec) -> Graph:
    """Return the graph of a task, or the variation of it that the task asks for."""
    graph = load_graph(_entries()[spec.key])
    return graph if spec.variation < 0 else augmented(graph, spec.variation, Augmentation())


@lru_cache(maxsize=1)
def _entries() -> Mapping[str, Entry]:
    return {entry.key: entry for entry in load_index()}


def _names_by_first_use(
    schedule: DeviceSchedule, classes: NDArray[np.int64], devices: int
) -> NDArray[np.int64]:
    """Return device -> its new name: the devices of a class, by their first ops, get its names."""
    used = schedule.placement[schedule.order]
    by_use = list(dict.fromkeys([*(int(d) for d in used), *range(devices)]))
    free = {c: [d for d in range(devices) if classes[d] == c] for c in set(classes.tolist())}
    names = np.empty(devices, dtype=np.int64)
    for device in by_use:
        names[device] = free[int(classes[device])].pop(0)
    return names
