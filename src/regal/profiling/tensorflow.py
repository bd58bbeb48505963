"""Op times from TensorFlow's trace of a run (StepStats)."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from regal.backends.tensorflow.files import source_of
from regal.backends.tensorflow.judge import runtime_name
from regal.backends.tensorflow.prepare import public_name, runnable
from regal.child import run_module
from regal.errors import BackendError
from regal.profiling.samples import profile_of, without_warmup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from regal.backends.tensorflow.prepare import Runnable
    from regal.cost.profile import Profile
    from regal.graph.types import LoadedModel
    from regal.profiling.samples import OpSamples
    from regal.profiling.types import ProfileOptions


def profile_tensorflow(model: LoadedModel, options: ProfileOptions, name: str) -> Profile:
    """Return the op times of the main entry: each node as it stands, no graph optimization.

    A loop is one op here; it takes what all its nodes take. Ops in the bodies of functional
    control flow count with the op that runs them. What iterators and queues would yield is fed,
    and variables without a value in the file get made-up ones.

    Raises:
        BackendError: TensorFlow is not installed, or refuses the graph.
    """
    entry, graph = source_of(model).entries[0], model.graph
    found = _run(runnable(source_of(model), entry, graph, {}), options, name)
    runs: list[dict[str, int]] = found["nodes"]
    return profile_of(
        _rows(model, entry.op_nodes, runs, options.warmup),
        model.entries,
        model=name,
        runtime=runtime_name(),
        threads=options.threads,
        runs=options.runs,
        warmup=options.warmup,
        total_ns=min(found["run_ns"][options.warmup :]),
    )


def _rows(
    model: LoadedModel,
    op_nodes: Sequence[Sequence[str]],
    runs: Sequence[Mapping[str, int]],
    warmup: int,
) -> Iterator[OpSamples]:
    """Yield the samples of each op of the main entry that ran every time."""
    for op, nodes in zip(model.graph.ops, op_nodes, strict=True):
        names = [public_name(node) for node in nodes]
        if all(any(name in run for name in names) for run in runs):
            samples = [sum(run.get(name, 0) for name in names) for run in runs]
            yield op, model.graph, without_warmup(samples, warmup, len(runs))


def _run(what: Runnable, options: ProfileOptions, name: str) -> dict[str, Any]:
    """Return what the child process measured."""
    if not runtime_name():
        raise BackendError("tensorflow is not installed: pip install regal[tensorflow]")
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        paths = {part: Path(folder, part) for part in ("graph.pb", "request", "result")}
        paths["graph.pb"].write_bytes(what.graph.SerializeToString())
        request = {
            "graph": str(paths["graph.pb"]),
            "feeds": [asdict(feed) for feed in what.feeds],
            "fetches": what.fetches,
            "targets": what.targets,
            "init": what.init,
            "invocations": options.warmup + options.runs,
            "threads": options.threads,
            "seed": options.seed,
        }
        paths["request"].write_text(json.dumps(request))
        arguments = [str(paths["request"]), str(paths["result"])]
        ended = run_module("regal.profiling.tensorflow_child", arguments, options.timeout_s)
        if not paths["result"].exists():
            raise BackendError(f"TensorFlow {ended.end or 'ended early'} on '{name}'")
        result: dict[str, Any] = json.loads(paths["result"].read_text())
    if "error" in result:
        raise BackendError(f"TensorFlow cannot run '{name}': {result['error']}")
    return result
