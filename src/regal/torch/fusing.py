"""Fusion, layouts, kernels and order of one fx graph, chosen by measured time."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from regal.backends.torch.executor import boxed
from regal.backends.torch.layouts import restrided
from regal.backends.torch.trial import clock_ns, drawn_inputs, settled, written_copied
from regal.errors import BackendError, RegalError
from regal.fusion.search import plan_fusion
from regal.fusion.types import CHANNELS_LAST, CONTIGUOUS, Kernel, LayoutRule
from regal.search.types import Budget
from regal.torch.measured import alone, measured, problem_of
from regal.torch.region_times import compile_regions, slow_regions
from regal.torch.times import times_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

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
MEASURE_SECONDS = 4.0  # for the kernels of a graph that were never measured
TRIAL_SECONDS = 1.5  # for comparing the candidates of a graph
TRIALS = 7
WORTH = 0.99  # of the time of the trace: what gains less is left
AS_TRACED = "as traced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One way of running a graph."""

    name: str
    kernels: Sequence[Kernel]
    built: Built
    ns: int = 0  # measured
    predicted_ns: int = 0


@dataclass(frozen=True, slots=True)
class Workshop:
    """What candidates are made with."""

    times: Times
    calls: dict[str, Call | None]
    deadline: float  # time.monotonic() after which nothing more is compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class Fused:
    """The way that was chosen; `module` None: the graph as traced is as good."""

    name: str
    module: GraphModule | None
    strides: Mapping[int, Strides]  # free output -> its strides
    ns: Mapping[str, int]  # candidate -> measured time of a run
    regions: int = 0
    conversions: int = 0
    outcome: FusionOutcome | None = None


def fused(
    module: GraphModule,
    graph: Graph,
    wishes: Wishes,
    settings: Settings,
    folder: Path | None,
    calls: dict[str, Call | None],
) -> Fused:
    """Return the fastest of: the graph as traced, either layout throughout, the searched plan.

    Args:
        module: every tensor node has a fake tensor as `meta["val"]`.
        graph: was read from it: its ops have the names of nodes.
        wishes: strides of what it is given, and outputs whose strides are free.
        settings: objective, budget, seconds, seed.
        folder: where times are remembered; None: nowhere.
        calls: regions that were compiled before, by key; grows.

    Raises:
        BackendError: sizes are symbols, or not everything lies on a CPU.
    """
    require_plain(module)
    args = _inputs(module, wishes)
    times = times_at(folder, MEASURE_SECONDS)
    found = measured(module, graph, wishes, args, times)
    problem = problem_of(module, graph, found)
    outcome = plan_fusion(
        problem,
        settings.objective,
        Budget(evaluations=settings.budget or EVALUATIONS, seconds=settings.seconds),
        seed=settings.seed,
        threads=settings.threads,
        in_place=False,
    )
    has_layouts = any(rule is not LayoutRule.FIXED for rule in found.rules)
    plans: dict[str, Sequence[Kernel]] = {"joint": outcome.plan.kernels}
    if settings.objective == "time":
        plans["contiguous"] = alone(found.rules, CONTIGUOUS)
        if has_layouts:
            plans["channels last"] = alone(found.rules, CHANNELS_LAST)
    workshop = Workshop(times, calls, time.monotonic() + settings.compile_seconds)
    candidates = []
    for name, kernels in plans.items():
        made = _candidate(name, kernels, module, graph, found, args, workshop)
        if made is not None:
            candidates.append(made)
    return _chosen(module, candidates, args, outcome)


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


def _inputs(module: GraphModule, wishes: Wishes) -> list[Any]:
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    return [
        restrided(value, wishes.given[node.name]) if node.name in wishes.given else value
        for node, value in zip(given, drawn_inputs(module), strict=True)
    ]


def _candidate(
    name: str,
    kernels: Sequence[Kernel],
    module: GraphModule,
    graph: Graph,
    found: Measured,
    args: list[Any],
    workshop: Workshop,
) -> Candidate | None:
    """Return a candidate with compiled regions; groups that do not pay are taken apart."""
    try:
        made, wishes = settled(module, graph, kernels, found.wishes, args)
        compile_regions(made.regions.values(), workshop.calls, workshop.deadline)
        slow = slow_regions(made, graph, kernels, found, workshop.times)
        if slow:
            kernels = without(kernels, slow)
            made, wishes = settled(module, graph, kernels, wishes, args)
            compile_regions(made.regions.values(), workshop.calls, workshop.deadline)
    except RegalError as error:
        log.info("candidate '%s' is left out: %s", name, error)
        return None
    return Candidate(name=name, kernels=kernels, built=made)


def without(kernels: Sequence[Kernel], groups: set[tuple[int, ...]]) -> list[Kernel]:
    """Return kernels with some groups taken apart: their ops alone, in their order."""
    found: list[Kernel] = []
    for kernel in kernels:
        if kernel.ops in groups:
            found += [replace(kernel, ops=(op,)) for op in kernel.ops]
        else:
            found.append(kernel)
    return found


def _chosen(
    module: GraphModule,
    candidates: Sequence[Candidate],
    args: list[Any],
    outcome: FusionOutcome,
) -> Fused:
    """Return the fastest candidate, measured in turns."""
    runs = {AS_TRACED: boxed(module)}
    runs |= {each.name: boxed(each.built.module) for each in candidates}
    # Whoever calls the graph as traced gives it what the trace says.
    plain = [
        restrided(arg, value.stride())
        if isinstance(arg, torch.Tensor) and isinstance(value, torch.Tensor)
        else arg
        for arg, value in zip(args, _given(module), strict=True)
    ]
    given = {name: plain if name == AS_TRACED else args for name in runs}
    best = dict.fromkeys(runs, 1 << 62)
    stop = time.monotonic() + TRIAL_SECONDS
    with torch.no_grad():
        for trial in range(TRIALS):
            for name, run in runs.items():
                held = written_copied(module, given[name])
                started = clock_ns()
                run(held)
                best[name] = min(best[name], clock_ns() - started)
            if trial >= 1 and time.monotonic() > stop:
                break
    fastest = min(best, key=lambda name: best[name])
    if best[fastest] > WORTH * best[AS_TRACED]:
        fastest = AS_TRACED
    for each in candidates:
        if each.name == fastest:
            return Fused(
                name=fastest,
                module=each.built.module,
                strides=each.built.strides,
                ns=best,
                regions=sum(r.is_compiled for r in each.built.regions.values()),
                conversions=each.built.conversions,
                outcome=outcome,
            )
    return Fused(name=AS_TRACED, module=None, strides={}, ns=best, outcome=outcome)


def _given(module: GraphModule) -> list[Any]:
    return [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
