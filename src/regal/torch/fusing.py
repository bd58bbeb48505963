"""Fusion, layouts, kernels and order of one fx graph, chosen by measured time."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from regal.backends.torch.executor import boxed
from regal.backends.torch.fuse import written_inputs
from regal.backends.torch.layouts import restrided, with_strides
from regal.backends.torch.trial import at_depth, clock_ns, drawn_inputs, settled, written_copied
from regal.errors import BackendError, RegalError
from regal.fusion.search import plan_fusion
from regal.fusion.types import CHANNELS_LAST, CONTIGUOUS, Kernel, LayoutRule
from regal.search.types import Budget
from regal.torch.measured import alone, measured, problem_of
from regal.torch.region_times import compile_regions, slow_regions, time_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch.fx import GraphModule

    from regal.backends.torch.fuse import Built, Wishes
    from regal.backends.torch.regions import Call
    from regal.fusion.search import FusionOutcome
    from regal.graph.types import Graph
    from regal.torch.measured import Measured
    from regal.torch.settings import Settings
    from regal.torch.times import Times

    Strides = tuple[int, ...]

log = logging.getLogger("regal.torch")

EVALUATIONS = 4_000  # plans of a graph that are decoded
MEASURE_SECONDS = 20.0  # for the kernels of a graph that were never measured; most take 1 s
TRIAL_SECONDS = 3.0  # for comparing the candidates of a graph
TRIALS = 40  # at most; the median of a way counts
SIFTED = 3  # trials after which ways that took more than NEAR times the least are dropped
NEAR = 1.2
AS_TRACED = "as traced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One way of running a graph."""

    name: str
    kernels: Sequence[Kernel]
    built: Built
    wishes: Wishes  # as it was built
    late: int = 0  # groups and copies for whose compilation no time was left


@dataclass(frozen=True, slots=True)
class Workshop:
    """What candidates are made with."""

    times: Times
    examples: list[Any] = field(default_factory=list)  # what the graph was captured with
    calls: dict[str, Call | None] = field(default_factory=dict)  # by key of a region


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The ways of running a graph that were tried, and what each took."""

    candidates: Sequence[Candidate]
    ns: Mapping[str, int]  # candidate, or AS_TRACED -> measured time of a run
    outcome: FusionOutcome
    is_whole: bool  # nothing was left out because time was up

    def strides_of(self, name: str) -> Mapping[int, Strides]:
        """Return free output -> its strides, where they are not those of the trace."""
        found = [each.built.strides for each in self.candidates if each.name == name]
        return found[0] if found else {}


def prepared(
    module: GraphModule, graph: Graph, wishes: Wishes, settings: Settings, workshop: Workshop
) -> Prepared:
    """Return the searched plan and, for "time", either layout throughout; all measured.

    Args:
        module: every tensor node has a fake tensor as `meta["val"]`.
        graph: was read from it: its ops have the names of nodes.
        wishes: strides of what it is given, and outputs whose strides are free.
        settings: objective, budget, seconds, seed.
        workshop: times and compiled groups; both grow.

    Raises:
        BackendError: sizes are symbols, or not everything lies on a CPU.
    """
    require_plain(module)
    args = inputs_of(module, wishes, workshop.examples)
    workshop.times.allow(MEASURE_SECONDS)
    found = measured(module, graph, wishes, args, workshop.times)
    outcome = plan_fusion(
        problem_of(module, graph, found),
        settings.objective,
        Budget(evaluations=settings.budget or EVALUATIONS, seconds=settings.seconds),
        seed=settings.seed,
        threads=settings.threads,
        in_place=False,
    )
    plans: dict[str, Sequence[Kernel]] = {"joint": outcome.plan.kernels}
    if settings.objective == "time":
        plans |= throughout(found)
    seconds = settings.compile_seconds
    candidates, ns = _tried(plans, module, graph, found, args, workshop, seconds)
    is_whole = _is_whole(candidates, workshop, seconds)
    return Prepared(candidates=candidates, ns=ns, outcome=outcome, is_whole=is_whole)


def quick_ns(
    module: GraphModule, graph: Graph, wishes: Wishes, workshop: Workshop, seconds: float
) -> tuple[int, bool]:
    """Return about what a graph takes when it is given values of other strides.

    And whether nothing was left out because time was up.

    Args:
        module: as for `prepared`.
        graph: as for `prepared`.
        wishes: strides of what it is given.
        workshop: as for `prepared`.
        seconds: for compiling copies between layouts.
    """
    require_plain(module)
    args = inputs_of(module, wishes, workshop.examples)
    workshop.times.allow(MEASURE_SECONDS)
    found = measured(module, graph, wishes, args, workshop.times)
    candidates, ns = _tried(throughout(found), module, graph, found, args, workshop, seconds)
    return min(ns.values()), _is_whole(candidates, workshop, seconds)


def _is_whole(candidates: Sequence[Candidate], workshop: Workshop, seconds: float) -> bool:
    """Return whether time sufficed; 0 s for compiling are a wish, not a lack."""
    return not workshop.times.was_cut and (seconds == 0 or not any(e.late for e in candidates))


def _tried(
    plans: Mapping[str, Sequence[Kernel]],
    module: GraphModule,
    graph: Graph,
    found: Measured,
    args: list[Any],
    workshop: Workshop,
    seconds: float,
) -> tuple[list[Candidate], dict[str, int]]:
    """Return the plans that can be written, and what each of them takes, and the trace."""
    deadline = time.monotonic() + seconds
    made = [
        compiled_candidate(name, kernels, module, graph, found, args, workshop, deadline)
        for name, kernels in plans.items()
    ]
    candidates = [each for each in made if each is not None]
    return candidates, measured_runs(module, candidates, args)


def throughout(found: Measured) -> dict[str, Sequence[Kernel]]:
    """Return the plans without groups that have one layout throughout, by name."""
    plans: dict[str, Sequence[Kernel]] = {"contiguous": alone(found.rules, CONTIGUOUS)}
    if any(rule is not LayoutRule.FIXED for rule in found.rules):
        plans["channels last"] = alone(found.rules, CHANNELS_LAST)
    return plans


def require_plain(module: GraphModule) -> None:
    """Raise unless all tensors of a graph lie on a CPU and all sizes are numbers.

    Raises:
        BackendError: names the node.
    """
    for node in module.graph.nodes:
        for leaf in torch.utils._pytree.tree_leaves(node.meta.get("val")):
            if isinstance(leaf, torch.SymInt | torch.SymFloat | torch.SymBool):
                raise BackendError(f"node '{node.name}' yields a symbolic number")
            if not isinstance(leaf, torch.Tensor):
                continue
            if leaf.device.type != "cpu":
                raise BackendError(f"node '{node.name}' is on '{leaf.device}', not on a CPU")
            if any(not isinstance(size, int) for size in leaf.shape):
                raise BackendError(f"node '{node.name}' has symbolic sizes")


def inputs_of(module: GraphModule, wishes: Wishes, examples: Sequence[Any]) -> list[Any]:
    """Return drawn tensors like the placeholders of a graph, with the strides of its wishes."""
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    return [
        restrided(value, wishes.given[node.name]) if node.name in wishes.given else value
        for node, value in zip(given, drawn_inputs(module, examples), strict=True)
    ]


def compiled_candidate(
    name: str,
    kernels: Sequence[Kernel],
    module: GraphModule,
    graph: Graph,
    found: Measured,
    args: list[Any],
    workshop: Workshop,
    deadline: float,
    *,
    keep_slow: bool = False,
) -> Candidate | None:
    """Return a candidate with compiled regions; None: the graph cannot be written so.

    Args:
        name: of the candidate.
        kernels: of its plan.
        module: as for `prepared`.
        graph: as for `prepared`.
        found: of `measured`.
        args: real ones, like the placeholders.
        workshop: times and compiled groups; both grow.
        deadline: time.monotonic() after which nothing more is compiled.
        keep_slow: keep groups that take longer than their ops; else they are taken apart.
    """
    try:
        made, wishes = settled(module, graph, kernels, found.wishes, args)
        late = compile_regions(made.regions.values(), workshop.calls, deadline)
        time_groups(made, args, workshop.times)
        slow = slow_regions(made, kernels, found, workshop.times)
        if slow and not keep_slow:
            kernels = without(kernels, slow)
            made, wishes = settled(module, graph, kernels, wishes, args)
            late += compile_regions(made.regions.values(), workshop.calls, deadline)
    except RegalError as error:
        log.info("candidate '%s' is left out: %s", name, error)
        return None
    return Candidate(name=name, kernels=kernels, built=made, wishes=wishes, late=late)


def without(kernels: Sequence[Kernel], groups: set[tuple[int, ...]]) -> list[Kernel]:
    """Return kernels with some groups taken apart: their ops alone, in their order."""
    found: list[Kernel] = []
    for kernel in kernels:
        if kernel.ops in groups:
            found += [replace(kernel, ops=(op,)) for op in kernel.ops]
        else:
            found.append(kernel)
    return found


def measured_runs(
    module: GraphModule, candidates: Sequence[Candidate], args: list[Any]
) -> dict[str, int]:
    """Return what each candidate takes, and the graph as traced, in ns: medians, in turns.

    Each turn is at another depth of the stack.

    Where the graph is given values of other strides than in the trace, making those of the trace
    counts for the graph as traced.
    """
    plain = boxed(module)
    strides = [
        value.stride() if isinstance(value, torch.Tensor) else None for value in _given(module)
    ]

    def as_traced(held: list[Any]) -> Any:
        return plain(with_strides(held, strides))

    runs: dict[str, Callable[[list[Any]], Any]] = {AS_TRACED: as_traced}
    runs |= {each.name: boxed(each.built.module) for each in candidates}
    taken: dict[str, list[int]] = {name: [] for name in runs}
    written = written_inputs(module)
    stop = time.monotonic() + TRIAL_SECONDS
    with torch.no_grad():
        for trial in range(1, TRIALS + 1):
            for name, run in runs.items():
                timed = partial(_timed, run, partial(written_copied, args, written))
                taken[name].append(at_depth(trial, timed))
            if trial >= SIFTED and time.monotonic() > stop:
                break
            if trial % SIFTED == 0:
                runs = _near_the_best(runs, taken)
    return {name: int(median(each)) for name, each in taken.items()}


def _timed(run: Callable[[list[Any]], Any], given: Callable[[], list[Any]]) -> int:
    """Return what the second of two runs takes: memory of others leaves the caches in the first."""
    run(given())
    held = given()
    started = clock_ns()
    run(held)
    return clock_ns() - started


def _near_the_best(
    runs: dict[str, Callable[[list[Any]], Any]], taken: Mapping[str, list[int]]
) -> dict[str, Callable[[list[Any]], Any]]:
    """Return the ways that may still turn out to be the fastest: the time is for them."""
    least = min(min(taken[name]) for name in runs)
    return {name: run for name, run in runs.items() if min(taken[name]) <= NEAR * least}


def _given(module: GraphModule) -> list[Any]:
    return [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
