"""Have TensorFlow run the original and the new graph: equal outputs, the plan kept, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.backends.tensorflow.apply import in_file_order
from regal.backends.tensorflow.chain import HELPER
from regal.backends.tensorflow.devices import (
    logical_cpus,
    require_devices,
    tensorflow_devices,
    worker_devices,
)
from regal.backends.tensorflow.files import source_of
from regal.backends.tensorflow.judge import Trial, judged
from regal.backends.tensorflow.nodes import Nodes
from regal.backends.tensorflow.prepare import pipeline, public_name, runnable
from regal.backends.tensorflow.step import free_nodes, step_of, writer_in
from regal.backends.types import Verification
from regal.errors import BackendError, RegalError
from regal.frontends.tensorflow import load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from regal.backends.tensorflow.request import Units
    from regal.frontends.tensorflow.source import EntrySource
    from regal.graph.types import LoadedModel
    from regal.plan.schedule import ModelSchedule

MOST_WORKERS = 4  # processes of some hundred MB each


def verify(
    original: Path,
    optimized: Path,
    *,
    seed: int,
    invocations: int = 20,
    timeout_s: float = 120,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Verification:
    """Return TensorFlow's verdict on two files: outputs and variables equal bit for bit.

    Both run several times in a row in one child process, on one CPU device and on equal
    inputs, TensorFlow's own optimizations off. `peak_bytes` is the most that the ops of a run
    had allocated at once, by TensorFlow's records.

    Args:
        original: the file that was planned.
        optimized: the file that was written.
        seed: of the inputs.
        invocations: runs, each on other inputs; variables carry over.
        timeout_s: wall time for the child process.
        shapes: input -> dimensions, as for loading.
        dims: dimension -> size, as for loading.
    """
    shapes, dims = shapes or {}, dims or {}
    try:
        old, new = load(original, shapes, dims), load(optimized, shapes, dims)
        # The new file is read in the order that its control edges demand. One for several
        # devices demands none between them.
        units = [
            units_of(new, i, [0] * len(graph.ops), range(len(graph.ops)), 1)
            if _devices_of(new, i) < 2
            else ()
            for i, graph in enumerate(new.entries)
        ]
        trials = trials_of(old, new, units, {}, {})
    except RegalError as error:
        return Verification(checks=(), skipped=str(error))
    return judged(trials, 1, seed=seed, invocations=invocations, timeout_s=timeout_s)


def verify_schedule(
    original: Path,
    optimized: Path,
    schedule: ModelSchedule,
    *,
    seed: int,
    invocations: int = 20,
    timeout_s: float = 120,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
    devices: Sequence[str] | None = None,
) -> Verification:
    """Return TensorFlow's verdict on a file with a schedule: outputs, placement, order, memory.

    The original runs on one CPU device; the new file runs twice: on one logical CPU device per
    planned device, and, for up to MOST_WORKERS devices, on one worker process each, on a core
    of its own. Outputs and variables must be equal bit for bit. TensorFlow's trace must show
    every op on its device, and none that begins before the op ahead of it has ended. Peaks are
    those of TensorFlow's allocation records, per device.

    Args:
        original: the file that was planned.
        optimized: the file that was written.
        schedule: what was applied.
        seed: of the inputs.
        invocations: runs, each on other inputs; variables carry over.
        timeout_s: wall time for the child process.
        shapes: input -> dimensions, as for loading.
        dims: dimension -> size, as for loading.
        devices: as for `apply_schedule`.
    """
    shapes, dims = shapes or {}, dims or {}
    count = len(schedule.system.devices)
    names = require_devices(devices or tensorflow_devices(schedule.system), schedule.system)
    logical = dict(zip(names, logical_cpus(count), strict=True))
    workers = dict(zip(names, worker_devices(count), strict=True))
    try:
        old, new = load(original, shapes, dims), load(optimized, shapes, dims)
        units = [
            units_of(old, i, plan.schedule.placement, plan.schedule.order, count)
            for i, plan in enumerate(schedule.plans)
        ]
        trials = trials_of(old, new, units, logical, workers if count <= MOST_WORKERS else {})
    except RegalError as error:
        return Verification(checks=(), skipped=str(error))
    return judged(trials, count, seed=seed, invocations=invocations, timeout_s=timeout_s)


def _devices_of(model: LoadedModel, number: int) -> int:
    """Return on how many devices the file places the nodes of an entry."""
    nodes = source_of(model).entries[number].graph.node
    return len({node.device for node in nodes if node.device})


def trials_of(
    old: LoadedModel,
    new: LoadedModel,
    units: Sequence[Units],
    logical: Mapping[str, str],
    workers: Mapping[str, str],
) -> list[Trial]:
    """Return what to run per entry; `logical` and `workers` map devices of the new file.

    Raises:
        BackendError: a run would change files.
    """
    sources = source_of(old), source_of(new)
    number_of = {entry.name: i for i, entry in enumerate(source_of(new).entries)}
    trials = []
    for i, (entry, graph) in enumerate(zip(source_of(old).entries, old.entries, strict=True)):
        writer = writer_in(entry, step_of(sources[0], entry))
        if writer:
            raise BackendError(f"node {writer} writes files, so nothing is run")
        # The entry of a file without signatures is named after the file.
        k = number_of.get(entry.name, i)
        after, after_graph = source_of(new).entries[k], new.entries[k]
        on_workers = None
        if workers:
            on_workers = runnable(sources[1], after, after_graph, workers)
        before = runnable(sources[0], entry, graph, {})
        ordered = None
        if before.has_state:
            kept = in_file_order(sources[0], entry, graph)
            ordered = runnable(sources[0], kept, graph, {})
        trials.append(
            Trial(
                name=entry.name if len(old.entries) > 1 else "",
                before=before,
                ordered=ordered,
                after=runnable(sources[1], after, after_graph, logical),
                workers=on_workers,
                units=units[i],
                inner=_inside_loops(entry),
            )
        )
    return trials


def _inside_loops(entry: EntrySource) -> tuple[str, ...]:
    """Return the nodes that neither enter nor leave a loop but lie in one."""
    facts = Nodes(entry.graph.node).facts()
    names = facts.order if facts is not None else ()
    return tuple(
        public_name(name)
        for name in names
        if facts is not None and facts.inside[name] and facts.outside[name]
    )


def units_of(
    model: LoadedModel,
    number: int,
    placement: Sequence[int],
    order: Sequence[int],
    n_devices: int,
) -> Units:
    """Return the ops of an entry that run in a step, per device and in order.

    Left out are those that may run when they like (see `apply`): what is fed, what other
    programs run too, and nodes that an order added.
    """
    source = source_of(model)
    entry = source.entries[number]
    nodes_of_graph = Nodes(entry.graph.node)
    step = step_of(source, entry)
    step -= pipeline(nodes_of_graph, step) | free_nodes(nodes_of_graph, step)
    rows: list[list[tuple[str, ...]]] = [[] for _ in range(n_devices)]
    for op in order:
        nodes = [node for node in entry.op_nodes[op] if node in step]
        if nodes and not nodes[0].startswith(HELPER):
            rows[placement[op]].append(tuple(map(public_name, nodes)))
    return tuple(map(tuple, rows))
