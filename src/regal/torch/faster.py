"""The graphs of one captured module, run as fast as they were seen to run."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from torch._dispatch.python import no_python_dispatcher
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_leaves

from regal.backends.torch.executor import callable_of
from regal.backends.torch.fuse import Wishes
from regal.backends.torch.fused_executor import FusedExecutor, Link
from regal.backends.torch.trial import keep_freed_memory
from regal.errors import PlanError
from regal.frontends.torch.fx import graph_of
from regal.graph.check import require_valid_graph
from regal.torch.fusing import AS_TRACED, Workshop, prepared, quick_ns, require_plain
from regal.torch.planning import folder_of
from regal.torch.remembered import Figures, Remembered, forget, path_of, remember, remembered
from regal.torch.times import times_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from torch.fx import GraphModule

    from regal.graph.types import Graph, Role
    from regal.torch.fusing import Prepared
    from regal.torch.settings import Settings

    Run = Callable[[list[Any]], Any]

log = logging.getLogger("regal.torch")

SMALL = 0.02  # of the time: below what measuring tells apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was chosen for one graph."""

    role: str  # "forward", "backward" or "inference"
    chosen: str
    ns: Mapping[str, int]  # way -> what the graph took
    predicted_ns: int  # for the searched plan
    before_ns: int  # predicted for ops one by one
    groups: int
    copies: int  # between layouts
    was_stored: bool  # read from a file of an earlier process: `ns` was measured then


@dataclass(slots=True)
class Faster:
    """What the graphs of one captured module know of each other."""

    examples: list[Any] = field(default_factory=list)  # what the module was captured with
    outputs: int = 0  # how many results of the forward graph its caller gets; others are saved
    backward: GraphModule | None = None  # what the forward graph is split from
    roles_of: Callable[[GraphModule, str], Mapping[str, Role]] | None = None
    strides: dict[str, tuple[int, ...]] = field(default_factory=dict)  # saved value -> its own
    workshop: Workshop | None = None
    link: Link = field(default_factory=Link)
    done: list[Choice] = field(default_factory=list)

    def compiled(
        self, module: GraphModule, name: str, roles: Mapping[str, Role], settings: Settings
    ) -> Run | None:
        """Return the fastest way to run a graph; None: as it is.

        Raises:
            RegalError: it cannot be fused.
        """
        try:
            with unset_fake_temporarily(), no_python_dispatcher():  # kernels run for real
                return self._compiled(module, name, roles, settings)
        finally:
            self.examples.clear()  # they belong to whoever calls

    def _compiled(
        self, module: GraphModule, name: str, roles: Mapping[str, Role], settings: Settings
    ) -> Run | None:
        require_plain(module)
        keep_freed_memory()
        if self.workshop is None:
            self.workshop = Workshop(times_at(folder_of(settings)), self.examples)
        graph = require_valid_graph(graph_of(module, name, roles))
        leaves = tree_leaves(module.graph.output_node().args[0])
        is_forward = name == "forward"
        given = self.strides if name == "backward" else {}
        free = frozenset(range(self.outputs, len(leaves))) if is_forward else frozenset[int]()
        # Without gradients weights seldom change; their blocked forms take memory beside them.
        keeps = name == "inference" and settings.objective == "time"
        held = frozenset(roles) if keeps else frozenset[str]()
        wishes = Wishes(given=given, free_outputs=free, held=held)
        behind = self.backward if is_forward else None
        path = path_of(folder_of(settings), module, graph, wishes, settings, behind)
        stored = remembered(path, module, graph, wishes, settings, self.workshop)
        found = stored or self._searched(path, module, name, graph, wishes, settings)
        built = None if found.candidate is None else found.candidate.built
        self.done.append(
            Choice(
                role=name,
                chosen=found.chosen,
                ns=found.figures.ns,
                predicted_ns=found.figures.predicted_ns,
                before_ns=found.figures.before_ns,
                groups=0 if built is None else len(built.region_of),
                copies=0 if built is None else built.conversions,
                was_stored=stored is not None,
            )
        )
        _report(self.done[-1])
        if built is None:
            return self.as_traced(module, name)
        if is_forward:
            self.strides = _named(leaves, built.strides)
        failed = None if path is None else partial(forget, path)
        return callable_of(
            FusedExecutor(module, built.module, self.link, name=name, saved=free, failed=failed)
        )

    def _searched(
        self,
        path: Path | None,
        module: GraphModule,
        name: str,
        graph: Graph,
        wishes: Wishes,
        settings: Settings,
    ) -> Remembered:
        """Return the best plan that is found; it is written to `path` if no time was short."""
        if self.workshop is None:
            raise PlanError("there is nothing to make candidates with: a defect")
        found = prepared(module, graph, wishes, settings, self.workshop)
        totals, is_whole = dict(found.ns), found.is_whole
        if name == "forward" and self.backward is not None:
            leaves = tree_leaves(module.graph.output_node().args[0])
            is_whole = self._add_backward(totals, found, leaves, settings) and is_whole
        chosen = choice_of(totals, found, settings.objective)
        candidate = next((each for each in found.candidates if each.name == chosen), None)
        figures = Figures(
            ns=dict(found.ns),
            predicted_ns=found.outcome.figures.time_ns,
            before_ns=found.outcome.before.time_ns,
        )
        for way, ns in found.ns.items():
            log.debug("%s: %s takes %.3f ms, both %.3f", name, way, ns / 1e6, totals[way] / 1e6)
        if is_whole:
            remember(path, name, settings, candidate, figures)
        return Remembered(chosen=chosen, candidate=candidate, figures=figures)

    def as_traced(self, module: GraphModule, name: str) -> Run | None:
        """Return a graph as traced, if it has to convert what the forward graph saved otherwise."""
        if name != "backward" or not self.strides:
            return None
        return callable_of(FusedExecutor(module, module, Link(has_failed=True), name=name))

    def _add_backward(
        self, totals: dict[str, int], found: Prepared, leaves: list[Any], settings: Settings
    ) -> bool:
        """Add to each way of the forward graph what the backward graph takes behind it.

        Returns whether nothing was left out because time was up.
        """
        module, workshop = self.backward, self.workshop
        if module is None or workshop is None or self.roles_of is None:
            return True
        is_whole = True
        roles = self.roles_of(module, "backward")
        graph = require_valid_graph(graph_of(module, "backward", roles))
        taken: dict[frozenset[tuple[str, tuple[int, ...]]], int] = {}
        for name in totals:
            strides = _named(leaves, found.strides_of(name))
            key = frozenset(strides.items())
            if key not in taken:
                taken[key], had_time = quick_ns(
                    module, graph, Wishes(given=strides), workshop, settings.compile_seconds / 4
                )
                is_whole = is_whole and had_time
            totals[name] += taken[key]
        return is_whole


def choice_of(totals: Mapping[str, int], found: Prepared, objective: str) -> str:
    """Return the name of the best way: what gains less than SMALL against the trace is left.

    Args:
        totals: way -> its time, in ns.
        found: all ways.
        objective: "time", or "balanced": time and planned peak against those of the trace.
    """
    base = max(totals[AS_TRACED], 1)
    if objective == "balanced":
        peaks = found.outcome.figures.peak / max(found.outcome.before.peak, 1)
        value = {n: ns / base + (1.0 if n == AS_TRACED else peaks) for n, ns in totals.items()}
    else:
        value = {name: ns / base for name, ns in totals.items()}
    best = min(value, key=lambda name: value[name])
    return best if value[best] < value[AS_TRACED] * (1 - SMALL) else AS_TRACED


def _named(leaves: list[Any], strides: Mapping[int, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {leaves[position].name: each for position, each in strides.items()}


def _report(choice: Choice) -> None:
    log.info(
        "%s graph: %s, %.3f -> %.3f ms; %d groups, %d copies between layouts%s",
        choice.role,
        choice.chosen,
        choice.ns[AS_TRACED] / 1e6,
        choice.ns[choice.chosen] / 1e6,
        choice.groups,
        choice.copies,
        " (remembered)" if choice.was_stored else "",
    )
