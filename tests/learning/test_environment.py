"""Graphs as tasks: rewards are relative to the same search without a policy; keys are canonical."""

import numpy as np
import pytest

from regal import _native
from regal.data import load_index
from regal.learning.environment import GraphEnvironment, Task
from regal.learning.types import Request, TaskSpec
from regal.policy.paper import PAPER_SEARCH

KEY = min(
    (e for e in load_index() if e.split == "train" and e.ops > 60), key=lambda e: (e.ops, e.key)
).key


@pytest.fixture(scope="module")
def environment() -> GraphEnvironment:
    return GraphEnvironment()


def neutral(task: Task) -> np.ndarray:
    """Return an action that makes no difference between genes."""
    action = np.full((int(task.rows.max()) + 1, 3), 1 / 3, dtype=np.float32)
    action[:, 0], action[:, 2] = 0.5, 0.7
    return action


def request(task: Task, action: np.ndarray | None, **more: object) -> Request:
    spec = TaskSpec(key=KEY)
    return Request(spec=spec, action=action, evaluations=60, seed=3, **more)  # type: ignore[arg-type]


def test_the_baseline_has_no_reward(environment: GraphEnvironment) -> None:
    reply = environment.run(request(environment.task(TaskSpec(key=KEY)), None))
    assert reply.reward == 0.0
    assert reply.keys is None


def test_the_reward_is_the_logarithm_of_the_ratio_of_costs(environment: GraphEnvironment) -> None:
    task = environment.task(TaskSpec(key=KEY))
    reply = environment.run(request(task, neutral(task), wants_keys=True))
    assert reply.reward == pytest.approx(np.log(task.baseline(60, 3) / reply.cost))
    assert reply.keys is not None


def test_equal_requests_have_equal_replies(environment: GraphEnvironment) -> None:
    task = environment.task(TaskSpec(key=KEY))
    one = environment.run(request(task, neutral(task)))
    two = GraphEnvironment().run(request(task, neutral(task)))
    assert one == two


@pytest.mark.parametrize("devices", ["2", "3"])
def test_keys_of_a_schedule_decode_to_a_schedule_of_equal_cost(devices: str) -> None:
    task = Task(TaskSpec(key=KEY, devices=devices))
    found = task.search(None, 200, 0)
    keys = task.keys_of(found.schedule)
    n, count = task.problem.n_ops, task.problem.n_devices
    groups = task.problem.native.n_groups
    affinity = keys[n : n + groups * count].reshape(groups, count)
    assert (affinity.max(axis=1) == 1).all()
    assert (np.sort(affinity, axis=1)[:, :-1] == 0).all()
    # Devices are named by first use, along the order of the keys.
    by_key = np.argsort(-keys[:n], kind="stable")
    used = affinity[np.asarray(task.problem.native.group)[by_key]].argmax(axis=1)
    assert list(dict.fromkeys(used.tolist())) == sorted(set(used.tolist()))
    rows = np.where(task.rows >= 0, keys[task.rows], 0.5)
    shares = np.nan_to_num(rows.astype(np.float64), nan=0.5)
    genes = (shares * (2**32 - 1)).astype(np.uint32)
    weights = (task.objective.per_ns, task.objective.per_byte)
    decoder = PAPER_SEARCH.decoder
    schedule, _ = _native.decode_schedule(task.compact, decoder, *weights, genes)
    placements = [schedule.placement.tolist(), found.schedule.placement.tolist()]
    renamed = [[list(dict.fromkeys(p)).index(d) for d in p] for p in placements]
    assert renamed[0] == renamed[1]


def test_what_does_not_fit_costs_more() -> None:
    task = Task(TaskSpec(key=KEY, devices="random:3", objective="time"))
    found = task.search(None, 50, 0)
    figures = _native.simulate_devices(task.problem.native, found.schedule)
    assert figures is not None
    value = task.objective.value(figures.time, figures.most)
    assert (task.cost_of(found.schedule) > value) == (figures.overflow > 0)


def test_objectives_and_variations_are_tasks_of_their_own(environment: GraphEnvironment) -> None:
    specs = [
        TaskSpec(key=KEY),
        TaskSpec(key=KEY, objective="time"),
        TaskSpec(key=KEY, objective="balanced"),
        TaskSpec(key=KEY, variation=1),
        TaskSpec(key=KEY, devices="4"),
    ]
    costs = {environment.task(spec).baseline(50, 0) for spec in specs}
    assert len(costs) == 5
