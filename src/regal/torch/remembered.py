"""Plans for time that were chosen before, on disk: one readable file per graph and machine.

What a file says is a proposal: it has to be of this graph, machine, PyTorch and way of searching,
the judge of fusion plans has to accept it, the graph built by it runs once on drawn inputs, and
the first call is compared with the original's like that of any other plan.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch.fx.node import map_arg

from regal import __version__
from regal.backends.torch.kernels import ATEN, PACKED, can_pack, kernels_of
from regal.backends.torch.trial import settled
from regal.errors import PlanError, RegalError, UsageError, summary_of
from regal.files import write_atomically
from regal.fusion.check import check_fusion
from regal.fusion.types import CHANNELS_LAST, CONTIGUOUS, FusionPlan, Kernel
from regal.torch.cache import key_of
from regal.torch.fusing import AS_TRACED, Candidate, inputs_of, without
from regal.torch.measured import problem_of, unmeasured
from regal.torch.region_times import compile_regions
from regal.torch.times import machine, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from torch.fx import GraphModule

    from regal.backends.torch.fuse import Wishes
    from regal.graph.types import Graph
    from regal.torch.fusing import Workshop
    from regal.torch.settings import Settings

    Strides = tuple[int, ...]

log = logging.getLogger("regal.torch")

SCHEMA = "regal.torch-plan/1"
LAYOUTS = {CONTIGUOUS: "contiguous", CHANNELS_LAST: "channels last"}
LAYOUT_OF = {name: layout for layout, name in LAYOUTS.items()}
# What looking at a document raises that is not what it should be.
BROKEN = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured and predicted when a plan was chosen, in ns."""

    ns: Mapping[str, int]  # way -> what the graph took
    predicted_ns: int  # for the searched plan
    before_ns: int  # predicted for ops one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A plan from a file, ready to run."""

    chosen: str
    candidate: Candidate | None  # None: the graph as traced
    figures: Figures


def path_of(
    folder: Path | None,
    module: GraphModule,
    graph: Graph,
    wishes: Wishes,
    settings: Settings,
    behind: GraphModule | None = None,
) -> Path | None:
    """Return where the plan of a graph lies; None: nothing is remembered.

    Graphs of one name are equal node by node: operators, all their arguments, sizes, strides and
    dtypes, and who holds what they are given; so are the options and the processor.

    Args:
        folder: for plans.
        module: as for `prepared`.
        graph: as for `prepared`.
        wishes: as for `prepared`.
        settings: all of them that a plan depends on.
        behind: the backward graph, whose time counts where forward plans are compared.
    """
    if folder is None:
        return None
    way = (
        settings.objective, settings.budget, settings.seconds, settings.compile_seconds,
        settings.seed, settings.threads, sorted(wishes.given.items()),
        sorted(wishes.free_outputs), sorted(wishes.held),
    )  # fmt: skip
    here = [value for name, value in sorted(machine().items()) if name != "torch"]
    digest = hashlib.sha256(key_of(graph, SCHEMA, *way, here).encode())
    for each in (module,) if behind is None else (module, behind):
        for line in _lines(each):
            digest.update(line.encode())
    return folder / f"plan-{digest.hexdigest()[:40]}.json"


def remember(
    path: Path | None,
    role: str,
    objective: str,
    candidate: Candidate | None,
    figures: Figures,
) -> None:
    """Write what was chosen for a graph, whole or not at all.

    A folder that cannot be written is no error.

    Args:
        path: of `path_of`; None: nothing is written.
        role: of the graph.
        objective: it was searched for.
        candidate: what was chosen; None: the graph as traced.
        figures: of the search.
    """
    if path is None:
        return
    document = {
        "schema": SCHEMA,
        "made by": _maker(),
        "graph": role,
        "objective": objective,
        "chosen": AS_TRACED if candidate is None else candidate.name,
        "ns": dict(figures.ns),
        "predicted ns": figures.predicted_ns,
        "ns before": figures.before_ns,
        **({} if candidate is None else _decisions(candidate)),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _readable(document).encode())
    except (OSError, UsageError) as error:
        log.info("the plan is not remembered: %s", error)


def forget(path: Path) -> None:
    """Remove a plan that was given up: the next process searches anew."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.info("plan %s stays: %s", path, error)


def remembered(
    path: Path | None,
    module: GraphModule,
    graph: Graph,
    wishes: Wishes,
    settings: Settings,
    workshop: Workshop,
) -> Remembered | None:
    """Return the plan that lies in a file, built and compiled; None: there is none that holds here.

    Args:
        path: of `path_of`.
        module: as for `prepared`.
        graph: as for `prepared`.
        wishes: as for `prepared`.
        settings: time for compiling.
        workshop: compiled groups; they grow.

    Cost: a run of the graph, and loading its groups.
    """
    if path is None:
        return None
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        log.info("plan %s is ignored: it cannot be read: %s", path, error)
        return None
    try:
        return _from(document, module, graph, wishes, settings, workshop)
    except BROKEN as error:
        log.info("plan %s is ignored: it is damaged: %s", path, summary_of(error))
    except RegalError as error:
        log.info("plan %s is ignored: %s", path, error)
    return None


def _from(
    document: Any,
    module: GraphModule,
    graph: Graph,
    wishes: Wishes,
    settings: Settings,
    workshop: Workshop,
) -> Remembered:
    """Return a plan as it was written.

    Raises:
        RegalError: it does not hold for this graph, here.
        BROKEN: the document is none that `remember` wrote.
    """
    if document["schema"] != SCHEMA or document["made by"] != _maker():
        raise PlanError(f"it was made by {document['made by']}, here is {_maker()}")
    figures = Figures(
        ns={_text(name): _number(ns) for name, ns in document["ns"].items()},
        predicted_ns=_number(document["predicted ns"]),
        before_ns=_number(document["ns before"]),
    )
    chosen = _text(document["chosen"])
    if AS_TRACED not in figures.ns or chosen not in figures.ns:
        raise PlanError(f"it has no time of '{chosen}' beside that of the graph as traced")
    if chosen == AS_TRACED:
        return Remembered(chosen=chosen, candidate=None, figures=figures)
    kernels, names = _kernels(document["steps"], graph)
    bare = unmeasured(module, graph, wishes)
    # Where layouts meet, copies are made as the graph is built: they are no part of the file.
    problem = replace(problem_of(module, graph, bare), two_layouts=frozenset[int]())
    check_fusion(problem, FusionPlan(kernels=tuple(kernels)), time_bound_ns=0)
    _require_kernels(module, names, wishes)
    wishes = replace(wishes, kernels=names, observed=_observed(document["strides"]))
    candidate = _candidate(chosen, kernels, module, graph, wishes, settings, workshop)
    return Remembered(chosen=chosen, candidate=candidate, figures=figures)


def _candidate(
    chosen: str,
    kernels: Sequence[Kernel],
    module: GraphModule,
    graph: Graph,
    wishes: Wishes,
    settings: Settings,
    workshop: Workshop,
) -> Candidate:
    """Return a built and compiled plan; groups that cannot be compiled here are taken apart."""
    args = inputs_of(module, wishes, workshop.examples)
    deadline = time.monotonic() + settings.compile_seconds
    made, wishes = settled(module, graph, kernels, wishes, args)
    late = compile_regions(made.regions.values(), workshop.calls, deadline)
    apart = {ops for ops, name in made.region_of.items() if not made.regions[name].is_compiled}
    if apart:
        kernels = without(kernels, apart)
        made, wishes = settled(module, graph, kernels, wishes, args)
        late += compile_regions(made.regions.values(), workshop.calls, deadline)
    return Candidate(name=chosen, kernels=kernels, built=made, wishes=wishes, late=late)


def _decisions(candidate: Candidate) -> dict[str, Any]:
    """Return groups, layouts and kernels in their order, and strides, by names of nodes."""
    names = candidate.built.op_names
    chosen = candidate.wishes.kernels
    steps = []
    alone = set()
    for kernel in candidate.kernels:
        if kernel.is_copy:
            continue
        ops = [names[op] for op in kernel.ops]
        step: dict[str, Any] = {"ops": ops, "layout": LAYOUTS[kernel.layout]}
        # A group that could not be written as a region has its ops one by one.
        for name in ops:
            by = chosen.get((name, kernel.layout), ATEN)
            if by != ATEN:
                step.setdefault("kernels", {})[name] = by
            alone.add((name, kernel.layout))
        steps.append(step)
    return {
        "steps": steps,
        "strides": [
            {"op": name, "layout": LAYOUTS[layout], "strides": strides}
            for (name, layout), strides in candidate.wishes.observed.items()
            if (name, layout) in alone
        ],
    }


def _readable(document: Mapping[str, Any]) -> str:
    """Return JSON with one line per entry, and one per row of those that are lists."""
    entries = []
    for name, value in document.items():
        text = json.dumps(value)
        if isinstance(value, list) and value:
            text = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        entries.append(f"{json.dumps(name)}: {text}")
    return "{\n " + ",\n ".join(entries) + "\n}\n"


def _kernels(steps: Any, graph: Graph) -> tuple[list[Kernel], dict[tuple[str, int], str]]:
    index = {op.name: i for i, op in enumerate(graph.ops)}
    kernels = []
    names = {}
    for step in steps:
        layout = LAYOUT_OF[step["layout"]]
        if not step["ops"]:
            raise PlanError("one of its steps has no ops")
        kernels.append(Kernel(ops=tuple(index[name] for name in step["ops"]), layout=layout))
        for name, by in step.get("kernels", {}).items():
            names[_text(name), layout] = _text(by)
    return kernels, names


def _observed(rows: Any) -> dict[tuple[str, int], tuple[Strides | None, ...]]:
    return {
        (_text(row["op"]), LAYOUT_OF[row["layout"]]): tuple(
            None if strides is None else tuple(map(_number, strides)) for strides in row["strides"]
        )
        for row in rows
    }


def _require_kernels(
    module: GraphModule, names: Mapping[tuple[str, int], str], wishes: Wishes
) -> None:
    """Raise PlanError unless each node can be computed by the kernel that is named."""
    nodes = {node.name: node for node in module.graph.nodes}
    for (name, _), kernel in names.items():
        node = nodes[name]
        is_there = can_pack(node, wishes.held) if kernel == PACKED else kernel in kernels_of(node)
        if not is_there:
            raise PlanError(f"node '{name}' has no kernel '{kernel}' here")


def _lines(module: GraphModule) -> Iterator[str]:
    """Yield all that a graph computes, node by node; values of constants are left out."""
    for node in module.graph.nodes:
        args = map_arg((node.args, node.kwargs), str)
        yield f"{node.op} {node.name} {node.target} {plain(args)} {plain(node.meta.get('val'))}\n"


def _maker() -> dict[str, object]:
    return {"regal": __version__, **machine()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is no whole number, 0 or more")
    return value
