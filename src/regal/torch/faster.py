"""The graphs of one captured module, run as fast as they were seen to run."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch._dispatch.python import no_python_dispatcher
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_leaves

from regal.backends.torch.executor import callable_of
from regal.backends.torch.fuse import Wishes
from regal.backends.torch.fused_executor import FusedExecutor, Link, Way
from regal.errors import PlanError
from regal.frontends.torch.fx import graph_of
from regal.graph.check import require_valid_graph
from regal.torch.fusing import AS_TRACED, Workshop, prepared, quick_ns, require_plain
from regal.torch.planning import folder_of
from regal.torch.remembered import Figures, forget, path_of, remember, remembered
from regal.torch.times import times_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from torch.fx import GraphModule

    from regal.graph.types import Graph, Role
    from regal.torch.fusing import Candidate, Prepared
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The ways of one graph that beat it as traced."""

    role: str
    objective: str
    ways: Sequence[Candidate]  # best first
    figures: Figures
    path: Path | None  # where the chosen one is remembered
    was_stored: bool = False
    is_whole: bool = False  # nothing was left out because time was up

    def way(self, name: str) -> Candidate | None:
        """Return the way of a name; None: the graph as traced."""
        return next((each for each in self.ways if each.name == name), None)

    def choice(self, way: Candidate | None) -> Choice:
        """Return what is said where a way is chosen."""
        return Choice(
            role=self.role,
            chosen=AS_TRACED if way is None else way.name,
            ns=self.figures.ns,
            predicted_ns=self.figures.predicted_ns,
            before_ns=self.figures.before_ns,
            groups=0 if way is None else len(way.built.region_of),
            copies=0 if way is None else way.built.conversions,
            was_stored=self.was_stored,
        )


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
    again: Callable[[], None] | None = None  # compiles the backward graph once more
    done: dict[str, Choice] = field(default_factory=dict)  # by role

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
        if stored is None:
            found = self._searched(path, module, name, graph, wishes, settings)
        else:
            found = Found(
                role=name,
                objective=settings.objective,
                ways=() if stored.candidate is None else (stored.candidate,),
                figures=stored.figures,
                path=path,
                was_stored=True,
            )
        best = found.ways[0] if found.ways else None
        self.done[name] = found.choice(best)
        _report(self.done[name])
        if is_forward:
            self._save(leaves, best)
        if best is None:
            return self.as_traced(module, name)
        return callable_of(
            FusedExecutor(
                module,
                [Way(each.name, each.built.module) for each in found.ways],
                self.link,
                name=name,
                saved=free,
                settled=partial(self._settled, found, leaves),
            )
        )

    def _searched(
        self,
        path: Path | None,
        module: GraphModule,
        name: str,
        graph: Graph,
        wishes: Wishes,
        settings: Settings,
    ) -> Found:
        """Return the plans that are found; the best is written to `path` if no time was short."""
        if self.workshop is None:
            raise PlanError("there is nothing to make candidates with: a defect")
        tried = prepared(module, graph, wishes, settings, self.workshop)
        totals, is_whole = dict(tried.ns), tried.is_whole
        if name == "forward" and self.backward is not None:
            leaves = tree_leaves(module.graph.output_node().args[0])
            is_whole = self._add_backward(totals, tried, leaves, settings) and is_whole
        figures = Figures(
            ns=dict(tried.ns),
            predicted_ns=tried.outcome.figures.time_ns,
            before_ns=tried.outcome.before.time_ns,
        )
        for way, ns in tried.ns.items():
            log.debug("%s: %s takes %.3f ms, both %.3f", name, way, ns / 1e6, totals[way] / 1e6)
        by_name = {each.name: each for each in tried.candidates}
        ways = [by_name[way] for way in better_ways(totals, tried, settings.objective)]
        if is_whole:
            remember(path, name, settings.objective, ways[0] if ways else None, figures)
        return Found(
            role=name,
            objective=settings.objective,
            ways=ways,
            figures=figures,
            path=path,
            is_whole=is_whole,
        )

    def _settled(self, found: Found, leaves: list[Any], name: str) -> None:
        """Note which way runs, since the best is given up; the backward graph follows it.

        Args:
            found: all ways.
            leaves: results of the graph.
            name: of the way that runs; "": the graph as traced.
        """
        way = found.way(name)
        self.done[found.role] = found.choice(way)
        if found.path is not None:
            if way is None or not found.is_whole:
                forget(found.path)
            else:
                remember(found.path, found.role, found.objective, way, found.figures)
        if found.role == "backward" and way is None:
            self.link.has_failed = True
        if found.role == "forward":
            self._save(leaves, way)
            if self.again is not None:
                with torch.autocast("cpu", enabled=False), torch.random.fork_rng(devices=[]):
                    self.again()

    def _save(self, leaves: list[Any], way: Candidate | None) -> None:
        """Note the strides of what the forward graph saves for the backward graph."""
        self.strides = {} if way is None else _named(leaves, way.built.strides)

    def as_traced(self, module: GraphModule, name: str) -> Run | None:
        """Return a graph as traced, if it has to convert what the forward graph saved otherwise."""
        if name != "backward" or not self.strides:
            return None
        return callable_of(FusedExecutor(module, (), Link(), name=name))

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


def better_ways(totals: Mapping[str, int], tried: Prepared, objective: str) -> list[str]:
    """Return the names of the ways that gain SMALL or more against the trace, best first.

    Args:
        totals: way -> its time, in ns.
        tried: all ways.
        objective: "time", or "balanced": time and planned peak against those of the trace.
    """
    base = max(totals[AS_TRACED], 1)
    if objective == "balanced":
        peaks = tried.outcome.figures.peak / max(tried.outcome.before.peak, 1)
        value = {n: ns / base + (1.0 if n == AS_TRACED else peaks) for n, ns in totals.items()}
    else:
        value = {name: ns / base for name, ns in totals.items()}
    most = value[AS_TRACED] * (1 - SMALL)
    return sorted((name for name in value if value[name] < most), key=lambda name: value[name])


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
