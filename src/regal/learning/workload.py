"""Which tasks a run trains on, and validates on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from regal.data.entries import load_index
from regal.errors import ModelError, UsageError
from regal.learning.environment import RANDOM
from regal.learning.types import TaskSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np

    from regal.data.entries import Entry
    from regal.learning.environment import TaskEnvironment
    from regal.learning.options import DataOptions, SearchOptions
    from regal.learning.types import Reply, SearchTask

TRAIN, VALID = "train", "valid"
VARIATIONS = 1 << 30
MOST_TRIES = 20  # to draw a task with headroom


class Workload(Protocol):
    """The tasks of a run."""

    @property
    def valid(self) -> Sequence[TaskSpec]:
        """Return the tasks to validate on."""
        ...

    def draw(self, iteration: int, count: int, rng: np.random.Generator) -> list[TaskSpec]:
        """Return the tasks of an iteration."""
        ...

    def lessons(self, rng: np.random.Generator) -> Iterator[tuple[TaskSpec, list[Reply]]]:
        """Yield training tasks, each with good schedules to imitate."""
        ...


class GraphWorkload:
    """A `Workload` of graphs of the data set."""

    def __init__(
        self,
        options: DataOptions,
        search: SearchOptions,
        environment: TaskEnvironment[SearchTask],
    ) -> None:
        """Choose the tasks.

        Raises:
            UsageError: no graph has the size that is asked for, or none has headroom.

        Cost: one short search per task.
        """
        self._options, self._search, self._environment = options, search, environment
        self._train = train_entries(options)
        self._valid = [spec for spec in valid_specs(options) if self._has_headroom(spec)]
        if not self._valid:
            raise UsageError("data: no task of the valid side has headroom")

    @property
    def valid(self) -> Sequence[TaskSpec]:
        """Return the tasks to validate on."""
        return self._valid

    def draw(self, iteration: int, count: int, rng: np.random.Generator) -> list[TaskSpec]:
        """Return the tasks of an iteration, perhaps variations; most have headroom.

        Families are as likely as each other.
        """
        most = size_limit(self._options, iteration)
        families: dict[str, list[Entry]] = {}
        for entry in self._train:
            if entry.ops <= most:
                families.setdefault(entry.family, []).append(entry)
        names = list(families) or [self._train[0].family]
        found: list[TaskSpec] = []
        while len(found) < count:
            for _ in range(MOST_TRIES):
                members = families.get(names[int(rng.integers(len(names)))], self._train[:1])
                spec = self._drawn(members[int(rng.integers(len(members)))], rng)
                if self._has_headroom(spec):
                    break
            found.append(spec)
        return found

    def lessons(self, rng: np.random.Generator) -> Iterator[tuple[TaskSpec, list[Reply]]]:
        """Yield training tasks, each with good schedules to imitate.

        Cost: per lesson a long search: `SearchOptions.lesson_evaluations`.
        """
        search = self._search
        for entry in self._train:
            spec = self._drawn(entry, rng)
            if search.lesson_evaluations and self._has_headroom(spec):
                yield (
                    spec,
                    [
                        self._environment.lesson(spec, search.lesson_evaluations, seed)
                        for seed in range(search.lessons)
                    ],
                )

    def _drawn(self, entry: Entry, rng: np.random.Generator) -> TaskSpec:
        """Return a task of a graph: the graph itself or a variation, on drawn devices."""
        options = self._options
        objective = options.objectives[int(rng.integers(len(options.objectives)))]
        devices = options.devices[int(rng.integers(len(options.devices)))]
        seed = int(rng.integers(VARIATIONS))
        return TaskSpec(
            key=entry.key,
            objective=objective,
            devices=f"{RANDOM}:{seed}" if devices == RANDOM else devices,
            variation=seed if rng.random() < options.varied else -1,
        )

    def _has_headroom(self, spec: TaskSpec) -> bool:
        try:
            task = self._environment.task(spec)
        except ModelError:
            return False  # no device can run some op of it
        cost = task.baseline(self._search.evaluations, 0)
        return cost > (1.0 + self._options.headroom) * task.bound


def train_entries(options: DataOptions) -> list[Entry]:
    """Return the graphs to train on, families in turn.

    Raises:
        UsageError: no graph has the size that is asked for.
    """
    entries = by_turns(entries_of(TRAIN, options))
    return entries[: options.limit or None]


def valid_specs(options: DataOptions) -> list[TaskSpec]:
    """Return the tasks to validate on; families take turns, random devices get fixed seeds.

    Raises:
        UsageError: no graph has the size that is asked for.
    """
    return [
        TaskSpec(
            key=entry.key,
            objective=objective,
            devices=f"{RANDOM}:{place}" if devices == RANDOM else devices,
        )
        for place, entry in enumerate(by_turns(entries_of(VALID, options))[: options.valid_graphs])
        for objective in dict.fromkeys(options.objectives)
        for devices in dict.fromkeys(options.devices)
    ]


def size_limit(options: DataOptions, iteration: int) -> int:
    """Return the most ops of a graph at an iteration: the curriculum grows geometrically."""
    if iteration >= options.growth or options.first_most_ops >= options.most_ops:
        return options.most_ops
    growth = options.most_ops / options.first_most_ops
    return round(options.first_most_ops * growth ** (iteration / options.growth))


def entries_of(split: str, options: DataOptions) -> list[Entry]:
    """Return the graphs of a side that have the size that is asked for.

    Raises:
        UsageError: there is none.
    """
    fewest, most = options.fewest_ops, options.most_ops
    found = [
        e
        for e in load_index()
        if e.split == split
        and fewest <= e.ops <= most
        and (not options.frameworks or e.framework in options.frameworks)
    ]
    if not found:
        raise UsageError(f"data: no graph of the {split} side has {fewest} to {most} ops")
    return found


def by_turns(entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries so that any beginning of the list is spread over families."""
    seen: dict[str, int] = {}
    ranked = []
    for place, entry in enumerate(entries):
        rank = seen[entry.family] = seen.get(entry.family, -1) + 1
        ranked.append((rank, place, entry))
    return [entry for *_, entry in sorted(ranked, key=lambda row: row[:2])]
