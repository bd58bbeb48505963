"""Training problems of the default method's policy, and what candidate means are worth on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.errors import ModelError, UsageError
from regal.learning.environment import RANDOM, Task, strategy
from regal.learning.prior_arms import ArmTask
from regal.learning.prior_modes import ModeTable
from regal.learning.types import TaskSpec
from regal.learning.workload import TRAIN, VALID, by_turns, entries_of, train_entries
from regal.policy.canonical import canonical_means, device_places, head_weights
from regal.policy.columns import LEVEL_GENE, LEVELS
from regal.search.devices.compact import decoder_for
from regal.search.devices.guided import first_progress, value_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from regal.learning.options import DataOptions, PriorOptions

UNLIMITED = 10**9  # evaluations
MOST_TURNS = 4  # over all graphs, kinds of devices and objectives; after the first, variations


def arm_tasks(options: DataOptions, side: str, count: int, seed: int) -> list[ArmTask]:
    """Return problems with something to gain, as many of each objective where there are.

    Families and devices take turns; on the train side each graph comes as it is at first, later
    some as variations.

    Raises:
        UsageError: there is none.

    Cost: the heuristics of each problem; 20 ms per 1,000 ops.
    """
    missing = {
        name: len(part)
        for name, part in zip(
            dict.fromkeys(options.objectives),
            np.array_split(np.arange(count), len(set(options.objectives))),
            strict=True,
        )
    }
    found: list[ArmTask] = []
    for spec in _specs(options, side, seed):
        if not any(missing.values()):
            break
        if missing[spec.objective] == 0:
            continue
        try:
            task = Task(spec)
        except ModelError:
            continue  # no device can run some op
        made = ArmTask(problem=task.problem, compact=task.compact, objective=task.objective)
        run = made.run(UNLIMITED, 0)
        run.heuristics()
        if run.goes_on():
            found.append(made)
            missing[spec.objective] -= 1
    if not found:
        raise UsageError(f"data: no problem of the {side} side has anything to gain")
    return found


def mode_table(
    tasks: Sequence[ArmTask],
    part: str,
    options: PriorOptions,
    seed: int,
    report: Callable[[str], None],
) -> ModeTable:
    """Return what the ends of long searches are worth on the problems of all others.

    Args:
        tasks: training problems; the first `mode_problems` of the part count.
        part: "time": those whose objective counts time; "memory": the others.
        options: how long, and how many.
        seed: of the searches, and of the choice.
        report: is told about the progress.

    Cost: per problem `elite_evaluations` and then `candidates` evaluations.
    """
    tasks = [task for task in tasks if (task.objective.per_ns > 0) == (part == "time")]
    tasks = tasks[: options.mode_problems]
    rng = np.random.default_rng(seed)
    elites, gains = [], []
    for number, task in enumerate(tasks):
        found, cost = _elite(task, options.elite_evaluations, seed)
        elites.append(found)
        gains.append(min(max(_best_rule(task) - cost, 0.0), 1.0) + 0.01)
        if number % 50 == 49:
            report(f"{part}: {number + 1} of {len(tasks)} long searches")
    shares = np.array(gains) / sum(gains)
    count = min(options.candidates, len(elites))
    chosen = rng.choice(len(elites), size=count, replace=False, p=shares)
    plain = np.zeros((1 if part == "time" else len(LEVELS), len(elites[0])))
    if part == "memory":
        plain[:, LEVEL_GENE - _native.GENE_WEIGHTS] = LEVELS
    candidates = np.concatenate((plain, np.array(elites)[chosen]))
    costs, states, rules = [], [], []
    for number, task in enumerate(tasks):
        costs.append(_costs(task, candidates))
        states.append(first_state(task))
        rules.append(_best_rule(task))
        if number % 50 == 49:
            report(f"{part}: candidates on {number + 1} of {len(tasks)} problems")
    return ModeTable(
        candidates=candidates.astype(np.float32),
        costs=np.array(costs),
        rules=np.array(rules),
        states=np.array(states, dtype=np.float32),
        always=len(plain),
    )


def first_state(task: ArmTask) -> NDArray[np.float32]:
    """Return what a policy sees first."""
    run = task.run(UNLIMITED, 0)
    return np.concatenate((task.context, first_progress(run).state()))


def _elite(task: ArmTask, evaluations: int, seed: int) -> tuple[NDArray[np.float64], float]:
    """Return canonical means at which a long evolution strategy is best, and its log value."""
    found = strategy(task.compact, task.objective, evaluations, seed)
    means = canonical_means(found.weights[None], device_places(task.problem))
    return means[0], float(_costs(task, means)[0])


def _costs(task: ArmTask, means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (k,) log values of means."""
    scores = _native.device_weight_scores(
        task.compact,
        decoder_for(task.objective),
        task.objective.per_ns,
        task.objective.per_byte,
        head_weights(means, device_places(task.problem)),
    )
    capacity = task.capacity
    return np.array([value_of(score, capacity) for score in scores])


def _best_rule(task: ArmTask) -> float:
    """Return the log value of the best heuristic."""
    if math.isnan(task.best_rule):
        run = task.run(UNLIMITED, 0)
        run.heuristics()
        task.best_rule = value_of(run.best, task.capacity)
    return task.best_rule


def _specs(options: DataOptions, side: str, seed: int) -> Iterator[TaskSpec]:
    """Yield tasks: each graph on each kind of devices for each objective; then variations."""
    rng = np.random.default_rng((seed, side == VALID))
    entries = train_entries(options) if side == TRAIN else by_turns(entries_of(side, options))
    kinds, objectives = options.devices, options.objectives
    turns = len(kinds) * len(objectives)
    varied = options.varied if side == TRAIN else 0.0
    for turn in range(turns * (MOST_TURNS if varied else 1)):
        for place, entry in enumerate(entries):
            devices = kinds[(turn + place) % len(kinds)]
            drawn = int(rng.integers(1 << 30))
            is_varied = turn >= turns or rng.random() < varied
            yield TaskSpec(
                key=entry.key,
                objective=objectives[(turn // len(kinds) + place) % len(objectives)],
                devices=f"{RANDOM}:{drawn}" if devices == RANDOM else devices,
                variation=drawn if varied and is_varied else -1,
            )
