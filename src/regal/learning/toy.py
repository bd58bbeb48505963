"""A toy whose optimum is known: it shows in seconds that learning works."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal.learning.types import Reply, TaskSpec
from regal.policy.bins import MEAN_BINS
from regal.policy.inputs import (
    CONTEXT,
    DEVICE_FEATURES,
    EDGE_FEATURES,
    PolicyInputs,
    node_feature_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from regal.learning.types import Request

OPS, DEVICES = 12, 2
TRAIN_TASKS, VALID_TASKS = 16, 8
LOW, HIGH = 0.5 / MEAN_BINS, 1.0 - 0.5 / MEAN_BINS  # the lowest and the highest mean
OPTIMUM = 0.0  # of the reward: every op has the mean that is wanted of it
UNTRAINED = -((HIGH - 0.5) ** 2)  # of means in the middle


class ToyEnvironment:
    """An `Environment`: priorities should be high for ops that read from a marked one.

    An op is marked by its second feature. No op shows by its own features what is wanted of it:
    a policy must send messages along edges. The reward is minus the mean squared distance between
    the means of the priorities and those that are wanted.
    """

    def inputs(self, spec: TaskSpec) -> PolicyInputs:
        """Return a random chain of ops, by the number that the task is named."""
        rng = np.random.default_rng(int(spec.key))
        nodes = np.zeros((OPS, len(node_feature_names())), dtype=np.float32)
        nodes[:, 0] = 1.0
        nodes[:, 1] = rng.choice((-1.0, 1.0), size=OPS)
        producers, readers = np.arange(OPS - 1), np.arange(1, OPS)
        edges = np.zeros((2 * (OPS - 1), len(EDGE_FEATURES)), dtype=np.float32)
        edges[OPS - 1 :, 0] = 1.0
        devices = np.zeros((DEVICES, len(DEVICE_FEATURES)), dtype=np.float32)
        devices[:, 0] = (-1.0, 1.0)
        return PolicyInputs(
            nodes=nodes,
            sources=np.concatenate((producers, readers)),
            targets=np.concatenate((readers, producers)),
            edges=edges,
            context=np.zeros(len(CONTEXT), dtype=np.float32),
            devices=devices,
            groups=np.arange(OPS),
            group_sizes=np.ones(OPS, dtype=np.float32),
        )

    def run(self, request: Request) -> Reply:
        """Return the reward of an action; the first op reads nothing and wants a low mean."""
        marks = self.inputs(request.spec).nodes[:-1, 1]
        wanted = np.where(np.concatenate(((-1.0,), marks)) > 0, HIGH, LOW)
        means = np.full(OPS, 0.5) if request.action is None else request.action[:OPS, 0]
        cost = float(np.mean((means - wanted) ** 2))
        return Reply(reward=-cost, cost=cost, keys=None)


class ToyWorkload:
    """A `Workload` of random chains; other ones to validate on."""

    @property
    def valid(self) -> Sequence[TaskSpec]:
        """Return the tasks to validate on."""
        return [TaskSpec(key=str(TRAIN_TASKS + i)) for i in range(VALID_TASKS)]

    def draw(self, iteration: int, count: int, rng: np.random.Generator) -> list[TaskSpec]:
        """Return the tasks of an iteration."""
        del iteration
        return [TaskSpec(key=str(i)) for i in rng.integers(TRAIN_TASKS, size=count)]

    def lessons(self, rng: np.random.Generator) -> Iterator[tuple[TaskSpec, list[Reply]]]:
        """Yield nothing: the toy is learned by trying."""
        del rng
        yield from ()
