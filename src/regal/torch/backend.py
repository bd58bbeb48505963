"""`torch.compile(model, backend="regal")`: AOTAutograd's graphs run in planned order."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import default_partition
from torch.fx import Node
from torch.utils._pytree import tree_leaves

from regal.backends.torch.executor import Executor, callable_of
from regal.backends.torch.judge import require_same_meaning
from regal.backends.torch.rewrite import decisions_of, rewritten
from regal.backends.torch.statistics import correct_statistics
from regal.cost.roofline import graph_cost
from regal.devices.presets import system_named
from regal.errors import RegalError, summary_of
from regal.frontends.torch.build import memory_of
from regal.graph.types import Role
from regal.torch.faster import Faster
from regal.torch.joint import drop_unread_statistics
from regal.torch.limit import Point, within_limit
from regal.torch.planning import planned
from regal.torch.reinplace import write_updates_in_place
from regal.torch.remat import constants_of, with_recomputation
from regal.torch.resizing import restore_resizing_gradients
from regal.torch.settings import Settings, settings_of
from regal.torch.sizes import BySize, free_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch.fx import GraphModule

    from regal.graph.types import Graph
    from regal.plan.types import Plan
    from regal.torch.planning import Planned

    Run = Callable[[list[Any]], Any]

log = logging.getLogger("regal.torch")

# Orders tried for each of the graphs that a memory limit compares: a number and no time, so that
# the same limit means the same split on every machine.
QUICK_EVALUATIONS = 2_000

# What PyTorch and the planner raise where a graph holds what they do not know.
UNPLANNED = (
    RegalError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


def regal(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, object] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Return a callable that computes what `module` does, with less memory alive at its peak.

    This is what `torch.compile(model, backend="regal", options=...)` calls per captured graph.

    Args:
        module: the graph that Dynamo captured.
        inputs: what it is called with.
        options: fields of `Settings`.
        mode: of `torch.compile`; there is nothing to choose.

    Raises:
        UsageError: an option is unknown.
    """
    return compilation_of(module, inputs, options)[1]


def compilation_of(
    module: GraphModule, inputs: Sequence[Any], options: Mapping[str, object] | None
) -> tuple[Compilation, Callable[..., Any]]:
    """Return what was decided about the graphs of a captured module, and the callable.

    Args:
        module: the graph that Dynamo captured.
        inputs: what it is called with.
        options: fields of `Settings`.

    Raises:
        UsageError: an option is unknown.
    """
    settings = settings_of(options)
    if settings.objective == "memory" or not (free := free_inputs(module, inputs)):
        return _compiled(module, inputs, settings)

    compilation, run = _compiled(module, inputs, replace(settings, objective="memory"))

    def planned(args: Sequence[Any]) -> Callable[..., Any]:
        try:
            with torch.random.fork_rng(devices=[]):
                return _compiled(module, args, settings)[1]
        except UNPLANNED as error:
            log.warning("there is no plan for one size: %s", summary_of(error))
            return run

    return compilation, BySize(free, run, planned)


def _compiled(
    module: GraphModule, inputs: Sequence[Any], settings: Settings
) -> tuple[Compilation, Callable[..., Any]]:
    compilation = Compilation(settings)
    if settings.objective != "memory":
        compilation.faster.examples.extend(inputs)
    return compilation, compilation.captured(module, inputs)


@dataclass(slots=True)
class Compilation:
    """What is known while the graphs of one captured module are compiled, one after another."""

    settings: Settings
    done: list[Planned] = field(default_factory=list)
    # Memory of parameters, inputs and outputs: whoever calls holds it.
    held: dict[int, object] = field(default_factory=dict)
    faster: Faster = field(default_factory=Faster)
    frontier: tuple[Point, ...] = ()  # memory against time, where a limit was set

    def captured(self, module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """Return a callable that computes a captured module, split and compiled as said here."""
        run: Callable[..., Any] = aot_autograd(
            fw_compiler=self.forward,
            bw_compiler=self.backward,
            inference_compiler=self.inference,
            partition_fn=self.partition,
            keep_inference_input_mutations=True,
        )(module, inputs)
        return run

    def forward(self, module: GraphModule, inputs: Sequence[Any]) -> Run:
        """Return the forward graph, ready to run."""
        return self.compiled(module, "forward")

    def inference(self, module: GraphModule, inputs: Sequence[Any]) -> Run:
        """Return a graph without gradients, ready to run."""
        if self.settings.objective != "memory":
            correct_statistics(module)
        return self.compiled(module, "inference")

    def backward(self, module: GraphModule, inputs: Sequence[Any]) -> Run:
        """Return the backward graph, ready to run: what forward saved dies as it is used."""
        if self.settings.objective == "memory":
            return self.compiled(module, "backward")
        behind = Replaceable(self.compiled(module, "backward"))

        def again() -> None:
            behind.run = self.compiled(module, "backward")

        self.faster.again = again
        return callable_of(behind)

    def partition(
        self, joint: GraphModule, inputs: Sequence[Any], **given: Any
    ) -> tuple[GraphModule, GraphModule]:
        """Return the forward and the backward graph of a joint one.

        With a memory limit, values that are cheap to compute are computed again in the backward
        pass, as few as it takes; `frontier` then holds what was tried.
        """
        for node in joint.graph.nodes:
            if node.op == "placeholder" and "tangent" not in node.name:
                self._hold(node.meta.get("val"))
        self.faster.outputs = given["num_fwd_outputs"]
        # What the forward pass returns is still in the caller's hands during the backward pass.
        (returned,) = joint.graph.output_node().args
        for node in tree_leaves(returned)[: given["num_fwd_outputs"]]:
            self._hold(node.meta.get("val") if isinstance(node, Node) else None)

        drop_unread_statistics(joint)
        if self.settings.objective != "memory":
            correct_statistics(joint)
            restore_resizing_gradients(joint)

        def parts_of(module: GraphModule) -> tuple[GraphModule, GraphModule]:
            forward, backward = default_partition(module, inputs, **given)
            # Outside of Dynamo, random numbers of the forward graph are left over here, unread.
            backward.graph.eliminate_dead_code(lambda node: node.is_impure(impure_random=False))
            backward.recompile()
            self.faster.backward, self.faster.roles_of = backward, self.roles
            return forward, backward

        limit = self.settings.memory_limit
        try:
            gradients = list(returned)[given["num_fwd_outputs"] :]
            # A buffer may be written between the passes; who writes to a parameter has to say so.
            lasting = [
                i
                for i in given.get("static_lifetime_input_indices") or ()
                if i < len(gradients) and gradients[i] is not None
            ]
            if constants := constants_of(joint, lasting):
                joint = with_recomputation(joint, constants)
            if limit is None:
                return parts_of(joint)
            parts, self.frontier = within_limit(joint, limit, parts_of, self._figures)
        except UNPLANNED as error:
            log.warning("nothing is computed again: %s", summary_of(error))
            return parts_of(joint)
        return parts

    def _figures(self, forward: GraphModule, backward: GraphModule) -> tuple[int, int]:
        """Return the larger planned peak of two graphs, and the predicted time of both."""
        quick = replace(self.settings, budget=QUICK_EVALUATIONS, seconds=None)
        peak, time_ns = 0, 0
        for module, name in ((forward, "forward"), (backward, "backward")):
            found = planned(module, name, self.roles(module, name), quick)
            peak = max(peak, found.plan.peak_bytes)
            cost = graph_cost(found.graph, system_named("1"))
            time_ns += sum(max(row[0], 0) for row in cost.op_ns)
        return peak, time_ns

    def roles(self, module: GraphModule, name: str) -> dict[str, Role]:
        """Return the role of what a graph is given: what its caller holds is never freed."""
        roles = {}
        for node in module.graph.nodes:
            if node.op != "placeholder":
                continue
            value = node.meta.get("val")
            found = memory_of(value) if isinstance(value, torch.Tensor) else None
            # What forward saved, and the gradients that the engine of autograd hands over, die in
            # the backward pass with their last reader.
            is_held = name != "backward" or (found is not None and found[0] in self.held)
            roles[node.name] = Role.PARAMETER if is_held else Role.INPUT
        return roles

    def _hold(self, value: object) -> None:
        if isinstance(value, torch.Tensor) and (found := memory_of(value)) is not None:
            self.held[found[0]] = found[1]

    def compiled(self, module: GraphModule, name: str) -> Run:
        """Return a graph ready to run: as planned, or as it is where a log says why."""
        if self.settings.objective != "memory":
            try:
                run = self.faster.compiled(module, name, self.roles(module, name), self.settings)
            except UNPLANNED as error:
                log.warning("%s graph: nothing is fused: %s", name, summary_of(error))
                run = self.faster.as_traced(module, name)
            if run is not None:
                return run
        try:
            write_updates_in_place(module)
            found = planned(module, name, self.roles(module, name), self.settings)
            run = run_of(module, found.graph, found.plan)
        except UNPLANNED as error:
            log.warning("the %s graph keeps its order: %s", name, summary_of(error))
            return callable_of(Executor(module, None, {}))
        self.done.append(found)
        log.info(
            "%s graph: %d ops, peak %d -> %d bytes%s",
            name,
            len(found.graph.ops),
            found.before.peak_bytes,
            found.plan.peak_bytes,
            " (remembered)" if found.was_stored else "",
        )
        return run


@dataclass(slots=True)
class Replaceable:
    """A graph, ready to run, that may be compiled once more."""

    run: Run

    def __call__(self, args: list[Any]) -> Any:
        """Return what the graph yields."""
        return self.run(args)


def run_of(module: GraphModule, graph: Graph, plan: Plan) -> Run:
    """Return a graph that runs as planned, once the judge of its nodes agrees.

    Raises:
        PlanError: the planned graph may compute something else.
    """
    decisions = decisions_of(module, graph, plan)
    after = rewritten(module, graph, plan)
    require_same_meaning(module, after, decisions.overwritten)
    return callable_of(Executor(module, after, decisions.overwritten))
