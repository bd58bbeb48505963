"""What runs in a child process: graphs in TensorFlow, which may abort or never end.

Usage: python -m regal.backends.tensorflow.runner REQUEST.json RESULT.json

Results are written after every case, so that a crash leaves those before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from regal.backends.tensorflow.cluster import start_workers, stop_workers
from regal.backends.tensorflow.feeds import STYLES, value_of, variable_value
from regal.backends.tensorflow.request import Case, CaseResult, Request, request_of
from regal.backends.tensorflow.stats import disordered, misplaced, observed_count, read_stats
from regal.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from regal.backends.tensorflow.cluster import Workers

LONGEST_RUN_MS = 20_000  # an empty queue would block a run for ever
OWN = "regal_check"  # the first part of the names of nodes that are added here
REF_VARIABLES = frozenset({"Variable", "VariableV2"})


def main() -> None:
    """Run the request named on the command line."""
    request_path, result_path = sys.argv[1:]
    request = request_of(json.loads(Path(request_path).read_text()))
    tf = import_tensorflow()
    # Forked before any session exists: a worker then has TensorFlow without importing it again.
    wants_workers = any(case.workers for case in request.cases)
    workers = start_workers(tf, request.n_devices) if wants_workers else None
    results: list[CaseResult] = []
    try:
        for case in request.cases:
            style = results[0].style if results else ""
            results.append(_run_case(tf, case, request, style, workers))
            text = json.dumps([asdict(result) for result in results])
            write_atomically(Path(result_path), text.encode())
            if results[0].error:
                break  # nothing to compare with
    finally:
        stop_workers(workers)
    # TensorFlow may crash while it is torn down; its results are safe by now.
    sys.stdout.flush()
    os._exit(0)


def import_tensorflow() -> Any:
    """Return TensorFlow, set so that equal graphs give equal bits."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    return import_module("tensorflow")


def _run_case(
    tf: Any, case: Case, request: Request, style: str, workers: Workers | None
) -> CaseResult:
    """Return what became of one case; whatever TensorFlow refuses is a result."""
    result = CaseResult(name=case.name)
    refusals = (tf.errors.OpError, ValueError, TypeError, KeyError, RuntimeError, MemoryError)
    try:
        graph = _graph_of(tf, case)
        with graph.as_default():
            variables = _Variables(tf, graph)
        result.style = style
        for choice in () if style else STYLES:
            # In a session of its own: a run changes the state of its session.
            with _session(tf, graph, case, request, workers) as session:
                variables.initialize(session, request.init, refusals)
                try:
                    _run(session, request, 0, choice)
                except refusals as error:
                    result.error = result.error or one_line(error)
                    continue
            result.style, result.error = choice, ""
            break
        if result.error:
            return result
        with _session(tf, graph, case, request, workers) as session:
            variables.initialize(session, request.init, refusals)
            result.filled = variables.filled
            _invoke(session, request, result)
            result.state = variables.digests(session)
            _trace(tf, session, case, request, result)
    except refusals as error:
        result.error = one_line(error)
    return result


def _graph_of(tf: Any, case: Case) -> Any:
    definition = tf.compat.v1.GraphDef.FromString(Path(case.graph).read_bytes())
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return graph


@contextmanager
def _session(
    tf: Any, graph: Any, case: Case, request: Request, workers: Workers | None
) -> Iterator[Any]:
    """Yield a session on the devices of the case."""
    config = config_of(tf, 1 if case.workers else request.n_devices, grappler=case.grappler)
    if not case.units:
        config.inter_op_parallelism_threads = 1  # one device, which runs one op at a time
    target = workers.target if case.workers and workers is not None else ""
    if target:
        tf.compat.v1.Session.reset(target)  # variables of earlier sessions would still be there
    session = tf.compat.v1.Session(target, graph=graph, config=config)
    try:
        yield session
    finally:
        session.close()


def config_of(tf: Any, n_devices: int, *, grappler: bool) -> Any:
    """Return the settings of a session in which a planned graph runs as planned.

    Logical devices share one pool of threads: with fewer threads than devices they would take
    turns. Optimizations rename, merge and add nodes, so they are off unless asked for.
    """
    config = tf.compat.v1.ConfigProto(
        device_count={"CPU": n_devices},
        inter_op_parallelism_threads=n_devices,
        intra_op_parallelism_threads=1,
        operation_timeout_in_ms=LONGEST_RUN_MS,
    )
    if not grappler:
        config.graph_options.optimizer_options.opt_level = -1
        config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


class _Variables:
    """The variables of a graph: initialized like the file says, or with made-up values."""

    def __init__(self, tf: Any, graph: Any) -> None:
        self.filled = 0
        self._checks: dict[str, Any] = {}
        self._fills: dict[str, Any] = {}
        self._reads: dict[str, Any] = {}
        raw = tf.raw_ops
        for op in list(graph.get_operations()):
            if op.type not in REF_VARIABLES and op.type != "VarHandleOp":
                continue
            dtype = op.get_attr("dtype")
            shape = tf.TensorShape(op.get_attr("shape"))
            if not shape.is_fully_defined() or dtype in (tf.resource, tf.variant):
                continue
            value = np.full(shape, b"", dtype=object)
            if dtype != tf.string:
                value = variable_value(op.name, tuple(shape), dtype.as_numpy_dtype)
            with tf.compat.v1.name_scope(f"{OWN}/{op.name}/"):
                made = tf.constant(value, dtype=dtype)
                (handle,) = op.outputs
                if op.type == "VarHandleOp":
                    self._checks[op.name] = raw.VarIsInitializedOp(resource=handle)
                    self._fills[op.name] = raw.AssignVariableOp(resource=handle, value=made)
                    self._reads[op.name] = raw.ReadVariableOp(resource=handle, dtype=dtype)
                else:
                    self._checks[op.name] = raw.IsVariableInitialized(ref=handle)
                    self._fills[op.name] = raw.Assign(ref=handle, value=made)
                    self._reads[op.name] = raw.Identity(input=handle)

    def initialize(
        self, session: Any, init: Sequence[str], refusals: tuple[type[BaseException], ...]
    ) -> None:
        """Run the initializers of the file, then fill what they left."""
        for name in init:
            try:
                session.run(session.graph.get_operation_by_name(name))
            except refusals:
                continue  # a checkpoint that is not there, for instance
        ready = session.run(self._checks)
        left = [name for name, is_ready in ready.items() if not is_ready]
        session.run([self._fills[name] for name in left])
        self.filled = len(left)

    def digests(self, session: Any) -> dict[str, str]:
        """Return variable -> a digest of its value."""
        ready = session.run(self._checks)
        reads = {name: self._reads[name] for name, is_ready in ready.items() if is_ready}
        return {name: digest(value) for name, value in session.run(reads).items()}


def _run(session: Any, request: Request, number: int, style: str, **options: Any) -> list[Any]:
    feeds = {feed.tensor: value_of(feed, request.seed + number, style) for feed in request.feeds}
    found: dict[str, Any] = session.run(
        {"fetches": list(request.fetches), "targets": list(request.targets)}, feeds, **options
    )
    values: list[Any] = found["fetches"]
    return values


def _invoke(session: Any, request: Request, result: CaseResult) -> None:
    for number in range(request.invocations):
        begin = time.perf_counter()
        values = _run(session, request, number, result.style)
        result.seconds.append(time.perf_counter() - begin)
        result.digests.append([digest(value) for value in values])


def _trace(tf: Any, session: Any, case: Case, request: Request, result: CaseResult) -> None:
    """Run once more, and note where and in which order the ops ran, and their memory."""
    v1 = tf.compat.v1
    metadata = v1.RunMetadata()
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    number = request.invocations
    _run(session, request, number, result.style, options=options, run_metadata=metadata)
    seen = read_stats(metadata.step_stats, request.n_devices, workers=case.workers)
    result.devices = list(seen.devices)
    result.peaks = list(seen.peaks)
    result.transfers = seen.transfers
    result.observed = observed_count(seen, case.units)
    result.misplaced = misplaced(seen, case.units)
    result.disordered = disordered(seen, case.units)
    result.traced = True


def digest(value: Any) -> str:
    """Return a digest of type, shape and every bit of a value."""
    array = np.asarray(value)
    data = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + data).hexdigest()[:16]


def one_line(error: BaseException) -> str:
    """Return the first sentence of what TensorFlow says."""
    text = str(error).split("\n\nOriginal stack trace")[0]
    return " ".join(text.split())[:300] or type(error).__name__


if __name__ == "__main__":
    main()
