"""Write a plan into a TensorFlow file: devices, and control edges that keep the order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from regal.backends.tensorflow.bodies import MAIN, Library, Planned, bodies_of
from regal.backends.tensorflow.chain import HELPER, chain_of
from regal.backends.tensorflow.devices import require_devices, tensorflow_devices
from regal.backends.tensorflow.files import beside, copy_of, graph_of, source_of
from regal.backends.tensorflow.flatten import flatten
from regal.backends.tensorflow.nodes import Nodes
from regal.backends.tensorflow.place import place, write_order
from regal.backends.tensorflow.step import free_nodes, step_of
from regal.backends.types import AppliedModel
from regal.errors import BackendError, PlanError
from regal.frontends.tensorflow.schema import new

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.backends.tensorflow.bodies import Body, Home
    from regal.backends.tensorflow.chain import Chain
    from regal.frontends.tensorflow.schema import Proto
    from regal.frontends.tensorflow.source import EntrySource, TensorFlowSource
    from regal.graph.types import Graph, LoadedModel
    from regal.plan.schedule import ModelSchedule
    from regal.plan.types import ModelPlan


def apply(model: LoadedModel, plan: ModelPlan) -> AppliedModel:
    """Return the model with control edges that make TensorFlow run its ops in planned order.

    All else stays as it is, devices too. Bodies of If and While keep their own order.

    Raises:
        PlanError: the plan is not one of this model.
    """
    source = source_of(model)
    message = copy_of(source)
    writer = _Writer(graph_of(source, message), None)
    for entry, graph, planned in zip(source.entries, model.entries, plan.plans, strict=True):
        step = step_of(source, entry)
        writer.write(entry, step, graph, (0,) * len(graph.ops), planned.order)
    return AppliedModel(
        files={"": message.SerializeToString(deterministic=True), **beside(source)},
        notes=(*source.notes, *writer.notes()),
        is_order_whole=writer.is_order_whole,
    )


def apply_schedule(
    model: LoadedModel,
    schedule: ModelSchedule,
    *,
    name: str = "",
    devices: Sequence[str] | None = None,
) -> AppliedModel:
    """Return the model with devices, and control edges that keep the order on each of them.

    Every planned node gets a device; constants are copied to each device that reads them;
    variables and inputs lie where they are read first. Nodes of the file that are not planned
    (initializers, savers) are left to TensorFlow's placer. Bodies of If and While run where
    their op runs, in their own order.

    Args:
        model: what was planned.
        schedule: of this model.
        name: of the output file; no other file has its name from it.
        devices: device -> TensorFlow's name for it; by default those of the system, such as
            "/device:GPU:1" (see `tensorflow_devices`, `logical_cpus` and `worker_devices`).

    Raises:
        PlanError: the schedule is not one of this model.
        UsageError: `devices` does not fit the system.
    """
    source = source_of(model)
    names = require_devices(devices or tensorflow_devices(schedule.system), schedule.system)
    message = copy_of(source)
    writer = _Writer(graph_of(source, message), names)
    for entry, graph, plan in zip(source.entries, model.entries, schedule.plans, strict=True):
        step = step_of(source, entry)
        writer.write(entry, step, graph, plan.schedule.placement, plan.schedule.order)
    return AppliedModel(
        files={"": message.SerializeToString(deterministic=True), **beside(source)},
        notes=(*source.notes, f"devices: {', '.join(names)}", *writer.notes()),
        is_order_whole=writer.is_order_whole,
    )


def in_file_order(source: TensorFlowSource, entry: EntrySource, graph: Graph) -> EntrySource:
    """Return `entry` with control edges that keep the order of the file, on one device."""
    copy = new("GraphDef")
    copy.CopyFrom(entry.graph)
    writer = _Writer(copy, None)
    flat = replace(entry, homes={})
    step = step_of(source, entry)
    writer.write(flat, step, graph, [0] * len(graph.ops), range(len(graph.ops)))
    return replace(flat, graph=copy)


class _Writer:
    """Writes the plans of the entries of one file into its graph, one after the other.

    Without devices only the order is written. Nodes that two entries share wait for nothing:
    one entry must not run what only the other one asks for.
    """

    def __init__(self, graph: Proto, devices: Sequence[str] | None) -> None:
        self._graph = graph
        self._apart = 0
        self._devices = devices
        self._done: set[Home] = set()
        self._moved: dict[Home, Home] = {}  # nodes of functions that were inlined into others
        self._copies = self._edges = self._helpers = 0
        self._loose: list[tuple[str, str]] = []
        if devices is not None:
            _clear_devices(graph)

    def write(
        self,
        entry: EntrySource,
        step: frozenset[str],
        graph: Graph,
        placement: Sequence[int],
        order: Sequence[int],
    ) -> None:
        """Write the plan of one entry; only the nodes of `step` wait for each other.

        Raises:
            PlanError: the plan is not one of this entry.
            BackendError: the graph has a cycle.
        """
        if sorted(order) != list(range(len(entry.op_nodes))):
            raise PlanError(
                f"the plan of '{entry.name}' orders {len(order)} ops; the file has"
                f" {len(entry.op_nodes)}"
            )
        position = [0] * len(order)
        for rank, op in enumerate(order):
            position[op] = rank

        def home_of(node: str) -> Home:
            home = entry.homes.get(node, (MAIN, node))
            return self._moved.get(home, home)

        bodies = dict.fromkeys(body for body, _ in entry.homes.values())
        self._moved |= flatten(self._graph, bodies)
        homes = [[home_of(node) for node in nodes] for nodes in entry.op_nodes]
        in_step = [[home_of(node) for node in nodes if node in step] for nodes in entry.op_nodes]
        free = free_nodes(Nodes(entry.graph.node), step)
        self._apart += sum(step.isdisjoint(nodes) for nodes in entry.op_nodes)
        planned = Planned(homes, placement, position, in_step)
        shared = self._done | {home_of(name) for name in free}
        for body in bodies_of(Library(self._graph), planned):
            self._write_body(body, graph, {node for name, node in shared if name == body.name})
        self._done.update(home for row in homes for home in row)

    @property
    def is_order_whole(self) -> bool:
        """Return whether the whole order could be written."""
        return not self._loose

    def notes(self) -> list[str]:
        """Return what was done and what could not be, for people."""
        notes = [f"added {self._edges} control edges, which keep the order"]
        if self._apart:
            notes.append(
                f"{self._apart} ops wait for nothing: a program runs them apart from its step, to"
                " set up, save or check"
            )
        if self._helpers:
            notes.append(f"added {self._helpers} nodes '{HELPER}/...' around branches and loops")
        if self._copies:
            notes.append(f"copied {self._copies} constants that several devices read")
        if self._loose:
            first, second = self._loose[0]
            more = f" and {len(self._loose) - 1} more" if len(self._loose) > 1 else ""
            notes.append(
                f"the order of '{first}' and '{second}'{more} cannot be written into the graph:"
                " nothing keeps it there"
            )
        notes.append(
            "runs as planned with regal.tensorflow.session_config, and when all outputs are"
            " fetched together: what is asked for alone runs all before it on its device, too"
        )
        return notes

    def _write_body(self, body: Body, graph: Graph, free: set[str]) -> None:
        facts = body.nodes.facts()
        if facts is None:
            raise BackendError(f"the graph '{body.name}' has a cycle; it cannot be ordered")
        chain = chain_of(body.nodes, facts, body.units, _waits(body, graph), frozenset(free))
        if self._devices is not None:
            done = frozenset(node for name, node in self._done if name == body.name)
            self._copies += place(body, self._devices, done)
        write_order(body, chain, self._devices or ("",))
        self._edges += len(chain.edges)
        self._helpers += len(chain.helpers)
        self._loose += _named(body, chain)
        if Nodes(body.protos, body.nodes.arguments).facts() is None:
            raise PlanError(f"the order of '{body.name or graph.name}' waits for itself")


def _waits(body: Body, graph: Graph) -> list[tuple[int, int]]:
    """Return pairs of units on different devices that the plan orders without a tensor.

    What an op waits for may be apart from the step; then what that waits for counts.
    """
    pairs: dict[tuple[int, int], None] = {}
    for i, later in body.unit_of.items():
        devices = set(body.units[later].devices)
        stack = list(graph.ops[i].control_inputs)
        seen: set[int] = set()
        while stack:
            earlier = stack.pop()
            if earlier in seen:
                continue
            seen.add(earlier)
            first = body.unit_of.get(earlier)
            if first is None:
                stack += graph.ops[earlier].control_inputs
            elif first != later and devices.isdisjoint(body.units[first].devices):
                pairs[first, later] = None
    return list(pairs)


def _named(body: Body, chain: Chain) -> list[tuple[str, str]]:
    return [(body.units[a].names[0], body.units[b].names[0]) for a, b in chain.loose]


def _clear_devices(graph: Proto) -> None:
    """Remove all devices: those that the file names are not those of the plan."""
    for node in graph.node:
        node.device = ""
    for function in graph.library.function:
        for node in function.node_def:
            node.device = ""
