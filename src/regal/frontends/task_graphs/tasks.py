"""Collect the tasks of a file, in any order, and turn them into a checked graph."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from regal.devices.types import Device, Link, System
from regal.errors import ModelError
from regal.graph.check import require_valid_model
from regal.graph.types import Graph, LoadedModel, Op, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# What stands where a file names no speed at all: its times decide, these are never read.
NOMINAL_FLOPS_PER_S = 1e12
NOMINAL_BYTES_PER_S = 1e11


class TaskGraph:
    """Collects tasks and the values that they hand over; `model` returns the checked model.

    Tasks may come in any order: the graph lists them in the order of the file where that is
    possible, and else each as early as its predecessors allow.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: list[_Task] = []
        self._tensors: list[Tensor] = []
        self._writers: dict[int, int] = {}  # tensor -> task
        self._inputs: list[int] = []
        self._kept: set[int] = set()  # tensors that are results although tasks read them
        self._shared: dict[tuple[int, int, int | None], int] = {}

    def task(
        self,
        name: str,
        kind: str,
        *,
        times_ns: Mapping[str, int] | None = None,
        parameter_bytes: int = 0,
        colocation: str = "",
        workspace_bytes: int = 0,
        flops: int = 0,
    ) -> int:
        """Return the number of a new task; `parameter_bytes` are its own."""
        number = len(self._tasks)
        self._tasks.append(
            _Task(
                name=name,
                kind=kind,
                times_ns=times_ns or {},
                colocation=colocation,
                workspace_bytes=workspace_bytes,
                flops=flops,
            )
        )
        if parameter_bytes:
            self.read(number, self.parameter(f"{name}.parameters", parameter_bytes))
        return number

    def name_of(self, task: int) -> str:
        """Return the name of a task."""
        return self._tasks[task].name

    def input(
        self, name: str, size: int, *, shape: tuple[int, ...] | None = None, dtype: str = "uint8"
    ) -> int:
        """Return a new value that the graph is given."""
        tensor = self._tensor(name, size, Role.INPUT, shape=shape, dtype=dtype)
        self._inputs.append(tensor)
        return tensor

    def constant(
        self, name: str, size: int, *, shape: tuple[int, ...] | None = None, dtype: str = "uint8"
    ) -> int:
        """Return a new value that is fixed data of the program."""
        return self._tensor(name, size, Role.CONSTANT, shape=shape, dtype=dtype)

    def parameter(self, name: str, size: int) -> int:
        """Return a new value that lies in the memory of each device that reads it."""
        return self._tensor(name, size, Role.PARAMETER)

    def value(
        self,
        writer: int,
        size: int,
        *,
        name: str = "",
        transfer_ns: int | None = None,
        shape: tuple[int, ...] | None = None,
        dtype: str = "uint8",
        same_memory_as: int | None = None,
    ) -> int:
        """Return a new value that the task `writer` makes."""
        task = self._tasks[writer]
        tensor = self._tensor(
            name or f"{task.name}.{len(task.writes)}",
            size,
            Role.ACTIVATION,
            transfer_ns=transfer_ns,
            shape=shape,
            dtype=dtype,
            same_memory_as=same_memory_as,
        )
        task.writes.append(tensor)
        self._writers[tensor] = writer
        return tensor

    def read(self, reader: int, tensor: int) -> None:
        """Let the task `reader` read a value."""
        if tensor not in self._tasks[reader].reads:
            self._tasks[reader].reads[tensor] = None

    def wait(self, task: int, earlier: int) -> None:
        """Let `task` run after `earlier`, although it reads nothing of it."""
        self._tasks[task].waits[earlier] = None

    def hand_over(self, writer: int, reader: int, size: int, transfer_ns: int | None) -> None:
        """Let `reader` read `size` bytes of `writer`; equal sizes and times are one value."""
        key = (writer, size, transfer_ns)
        if key not in self._shared:
            self._shared[key] = self.value(writer, size, transfer_ns=transfer_ns)
        self.read(reader, self._shared[key])

    def keep(self, tensor: int) -> None:
        """Make a value a result of the graph."""
        self._kept.add(tensor)

    def model(self, system: System | None = None) -> LoadedModel:
        """Return the model: values that nothing reads are its results.

        Raises:
            ModelError: there is no task, a circle, or a rule of graphs is broken.
        """
        if not self._tasks:
            raise ModelError(f"'{self._name}' has no tasks")
        order = self._order()
        place = {task: position for position, task in enumerate(order)}
        read = {tensor for task in self._tasks for tensor in task.reads}
        results = [t for t in self._writers if t in self._kept or t not in read]
        tensors = list(self._tensors)
        for tensor in results:
            tensors[tensor] = replace(tensors[tensor], role=Role.OUTPUT)
        graph = Graph(
            name=self._name,
            framework="graph",
            ops=tuple(self._tasks[task].op(place) for task in order),
            tensors=tuple(tensors),
            inputs=tuple(self._inputs),
            outputs=tuple(results),
            alignment=1,
        )
        return require_valid_model(
            LoadedModel(framework="graph", entries=(graph,), source=None, system=system)
        )

    def _tensor(
        self,
        name: str,
        size: int,
        role: Role,
        *,
        transfer_ns: int | None = None,
        shape: tuple[int, ...] | None = None,
        dtype: str = "uint8",
        same_memory_as: int | None = None,
    ) -> int:
        index = len(self._tensors)
        storage = index if same_memory_as is None else self._tensors[same_memory_as].storage
        self._tensors.append(
            Tensor(
                name=name,
                shape=(size,) if shape is None else shape,
                dtype=dtype,
                bytes=size,
                role=role,
                storage=storage,
                transfer_ns=transfer_ns,
            )
        )
        return index

    def _order(self) -> list[int]:
        """Return the tasks, each as soon as its predecessors are listed, lowest number first."""
        before = [self._predecessors(task) for task in self._tasks]
        after: list[list[int]] = [[] for _ in self._tasks]
        for task, earlier in enumerate(before):
            for other in earlier:
                after[other].append(task)
        missing = [len(earlier) for earlier in before]
        ready = [task for task, count in enumerate(missing) if count == 0]
        order = []
        while ready:
            task = heapq.heappop(ready)
            order.append(task)
            for later in after[task]:
                missing[later] -= 1
                if missing[later] == 0:
                    heapq.heappush(ready, later)
        if len(order) < len(self._tasks):
            names = [self._tasks[task].name for task in _circle(before, set(order))]
            circle = " -> ".join(names if len(names) < 8 else [*names[:5], "...", names[-1]])
            raise ModelError(f"'{self._name}': its tasks wait for each other in a circle: {circle}")
        return order

    def _predecessors(self, task: _Task) -> set[int]:
        writers = {self._writers[t] for t in task.reads if t in self._writers}
        return writers | set(task.waits)


@dataclass(slots=True, kw_only=True)
class _Task:
    name: str
    kind: str
    times_ns: Mapping[str, int]
    colocation: str
    workspace_bytes: int
    flops: int
    reads: dict[int, None] = field(default_factory=dict)  # used as ordered sets
    writes: list[int] = field(default_factory=list)
    waits: dict[int, None] = field(default_factory=dict)

    def op(self, place: Mapping[int, int]) -> Op:
        return Op(
            name=self.name,
            kind=self.kind,
            inputs=tuple(self.reads),
            outputs=tuple(self.writes),
            control_inputs=tuple(sorted(place[task] for task in self.waits)),
            workspace_bytes=self.workspace_bytes,
            flops=self.flops,
            colocation=self.colocation,
            times_ns=self.times_ns,
        )


def equal_devices(
    name: str,
    kind: str,
    count: int,
    *,
    memory_bytes: int | None = None,
    bytes_per_s: float = NOMINAL_BYTES_PER_S,
    capacity_counts_live: bool = True,
) -> System:
    """Return `count` equal devices, each linked with each other, without contention."""
    devices = [device(f"{kind}{i}", kind, memory_bytes) for i in range(count)]
    link = Link(latency_ns=0, bytes_per_s=bytes_per_s)
    return System(
        name=name,
        devices=tuple(devices),
        links={(a, b): link for a in range(count) for b in range(count) if a != b},
        has_contention=False,
        capacity_counts_live=capacity_counts_live,
    )


def device(name: str, kind: str, memory_bytes: int | None = None) -> Device:
    """Return a device of which a file tells nothing but its memory: op times come with the ops."""
    return Device(
        name=name,
        kind=kind,
        flops_per_s={"": NOMINAL_FLOPS_PER_S},
        bytes_per_s=NOMINAL_BYTES_PER_S,
        launch_ns=0,
        memory_bytes=memory_bytes,
    )


def _circle(before: Sequence[set[int]], listed: set[int]) -> list[int]:
    """Return a circle among the tasks that are not listed, its first task again at the end."""
    task = min(set(range(len(before))) - listed)
    path: dict[int, None] = {}
    while task not in path:
        path[task] = None
        task = min(before[task] - listed)
    circle = list(path)
    circle = circle[circle.index(task) :][::-1]
    first = circle.index(min(circle))
    return [*circle[first:], *circle[:first], circle[first]]
