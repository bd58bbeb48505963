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
from regal.backends.tensorflow.contents import maker_of
from regal.backends.tensorflow.feeds import STYLES, value_of
from regal.backends.tensorflow.request import CaseResult, request_of
from regal.backends.tensorflow.session import LONGEST_RUN_MS, planned_config
from regal.backends.tensorflow.stats import disordered, misplaced, observed_count, read_stats
from regal.backends.tensorflow.variables import Variables
from regal.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator

    from regal.backends.tensorflow.cluster import Workers
    from regal.backends.tensorflow.contents import Maker
    from regal.backends.tensorflow.request import Case, Job, Request

TOO_LONG = f"a run took more than {LONGEST_RUN_MS // 1000} s: it is too slow, or waits for data"


def main() -> None:
    """Run the request named on the command line."""
    request_path, result_path = sys.argv[1:]
    request = request_of(json.loads(Path(request_path).read_text()))
    # Whatever a graph reads or writes by a relative name is not the user's.
    os.chdir(Path(result_path).parent)
    tf = import_tensorflow()
    # Forked before any session exists: a worker then has TensorFlow without importing it again.
    wants_workers = any(case.workers for job in request.jobs for case in job.cases)
    workers = start_workers(tf, request.n_devices) if wants_workers else None
    results: list[list[CaseResult]] = []
    try:
        for job in request.jobs:
            results.append([])
            for case in job.cases:
                run = _Run(tf, request, job, case, workers)
                results[-1].append(run.result(results[-1][0].style if results[-1] else ""))
                rows = [[asdict(result) for result in row] for row in results]
                write_atomically(Path(result_path), json.dumps(rows).encode())
                if results[-1][0].error:
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


class _Run:
    """One case of a job."""

    def __init__(
        self, tf: Any, request: Request, job: Job, case: Case, workers: Workers | None
    ) -> None:
        self._tf = tf
        self._request = request
        self._job = job
        self._case = case
        self._workers = workers
        self._graph: Any = None
        self._makers: dict[str, Maker | None] = {}  # of strings to feed
        self._refusals: tuple[type[BaseException], ...] = (
            tf.errors.OpError,
            ValueError,
            TypeError,
            KeyError,
            RuntimeError,
            MemoryError,
        )

    def result(self, style: str) -> CaseResult:
        """Return what became of the case; whatever TensorFlow refuses is a result.

        Args:
            style: how inputs are drawn; "" tries all ways.
        """
        found = CaseResult(name=self._case.name, style=style)
        try:
            self._graph = _imported(self._tf, Path(self._case.graph))
            for feed in self._job.feeds:
                if feed.dtype == "string":
                    tensor = self._graph.get_tensor_by_name(feed.tensor)
                    self._makers[feed.tensor] = maker_of(self._tf, tensor)
            with self._graph.as_default():
                variables = Variables(self._tf, self._graph)
            if not style:
                self._find_style(variables, found)
            if not found.error:
                self._invoke(variables, found)
        except self._refusals as error:
            found.error = one_line(error)
        return found

    def _find_style(self, variables: Variables, found: CaseResult) -> None:
        """Note how inputs must be drawn so that the graph runs, or why none will do."""
        for style in STYLES:
            # In a session of its own: a run changes the state of its session.
            with self._session() as session:
                variables.initialize(session, self._job.init, self._refusals)
                try:
                    self._step(session, 0, style)
                except self._tf.errors.DeadlineExceededError:
                    found.error = TOO_LONG
                    return  # other values would not help
                except self._refusals as error:
                    found.error = found.error or one_line(error)
                    continue
            found.style, found.error = style, ""
            return

    def _invoke(self, variables: Variables, found: CaseResult) -> None:
        with self._session() as session:
            found.filled = variables.initialize(session, self._job.init, self._refusals)
            for number in range(self._request.invocations):
                begin = time.perf_counter()
                values = self._step(session, number, found.style)
                found.seconds.append(time.perf_counter() - begin)
                found.digests.append([digest(value) for value in values])
            found.state = {n: digest(v) for n, v in variables.values(session)}
            self._trace(session, found)

    def _trace(self, session: Any, found: CaseResult) -> None:
        """Run once more, and note where and in which order the ops ran, and their memory."""
        v1 = self._tf.compat.v1
        metadata = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        number = self._request.invocations
        self._step(session, number, found.style, options=options, run_metadata=metadata)
        units = self._case.units
        seen = read_stats(metadata.step_stats, self._request.n_devices, workers=self._case.workers)
        found.devices = list(seen.devices)
        found.peaks = list(seen.peaks)
        found.transfers = sum(
            node.op == "_Recv" for graph in metadata.partition_graphs for node in graph.node
        )
        found.observed = observed_count(seen, units)
        found.misplaced = misplaced(seen, units)
        found.disordered = disordered(seen, units, frozenset(self._case.inner))
        found.traced = True

    def _step(self, session: Any, number: int, style: str, **options: Any) -> list[Any]:
        job, seed = self._job, self._request.seed + number
        feeds = {
            feed.tensor: value_of(feed, seed, style, self._makers.get(feed.tensor))
            for feed in job.feeds
        }
        fetches = [_fetchable(self._tf, self._graph, name) for name in job.fetches]
        tensors = [tensor for tensor in fetches if tensor is not None]
        found: dict[str, Any] = session.run(
            {"fetches": tensors, "targets": list(job.targets)}, feeds, **options
        )
        values: list[Any] = found["fetches"]
        return values

    @contextmanager
    def _session(self) -> Iterator[Any]:
        """Yield a session on the devices of the case."""
        v1, case = self._tf.compat.v1, self._case
        n_devices = 1 if case.workers else self._request.n_devices
        config = planned_config(self._tf, n_devices, grappler=case.grappler)
        config.operation_timeout_in_ms = LONGEST_RUN_MS
        if not case.units:
            config.inter_op_parallelism_threads = 1  # one device, which runs one op at a time
        target = self._workers.target if case.workers and self._workers is not None else ""
        if target:
            v1.Session.reset(target)  # variables of earlier sessions would still be there
        session = v1.Session(target, graph=self._graph, config=config)
        try:
            yield session
        finally:
            session.close()


def _imported(tf: Any, path: Path) -> Any:
    definition = tf.compat.v1.GraphDef.FromString(path.read_bytes())
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(definition, name="")
    return graph


def _fetchable(tf: Any, graph: Any, name: str) -> Any:
    """Return the tensor `name`, or None if it has no value that can be fetched."""
    node, _, slot = name.partition(":")
    outputs = graph.get_operation_by_name(node).outputs
    if int(slot) >= len(outputs):
        return None
    tensor = outputs[int(slot)]
    return None if tensor.dtype.base_dtype in (tf.resource, tf.variant) else tensor


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
