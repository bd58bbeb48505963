"""Child process: TensorFlow runs a graph, with and without its trace, and reports times.

Usage: python -m regal.profiling.tensorflow_child REQUEST.json RESULT.json
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regal.backends.tensorflow.contents import maker_of
from regal.backends.tensorflow.feeds import STYLES, value_of
from regal.backends.tensorflow.request import Feed
from regal.backends.tensorflow.runner import import_tensorflow, one_line
from regal.backends.tensorflow.session import planned_config
from regal.backends.tensorflow.variables import Variables
from regal.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping


def main() -> None:
    """Write {"nodes": [{node: ns} per run], "run_ns": [...]} or {"error": ...}."""
    request_path, result_path = (Path(argument).resolve() for argument in sys.argv[1:])
    request = json.loads(request_path.read_text())
    # A graph may save checkpoints to where it runs: not to where the user is.
    os.chdir(request_path.parent)
    tf = import_tensorflow()
    refusals = (tf.errors.OpError, ValueError, TypeError, KeyError, RuntimeError, MemoryError)
    result: dict[str, Any] = {}
    for style in STYLES:
        try:
            result = _Measurement(tf, request, style).result(refusals)
        except refusals as error:
            result = result or {"error": one_line(error)}
            continue
        break
    write_atomically(result_path, json.dumps(result).encode())
    # TensorFlow may crash while it is torn down; the result is safe by now.
    sys.stdout.flush()
    os._exit(0)


class _Measurement:
    """One graph with inputs of one style."""

    def __init__(self, tf: Any, request: Mapping[str, Any], style: str) -> None:
        self._tf = tf
        self._request = request
        self._style = style
        self._feeds = [Feed(**{**row, "shape": tuple(row["shape"])}) for row in request["feeds"]]
        self._graph = tf.Graph()
        definition = tf.compat.v1.GraphDef.FromString(Path(request["graph"]).read_bytes())
        with self._graph.as_default():
            tf.import_graph_def(definition, name="")
            self._variables = Variables(tf, self._graph)
        tensors = [self._fetchable(name) for name in request["fetches"]]
        self._fetches = {
            "fetches": [tensor for tensor in tensors if tensor is not None],
            "targets": list(request["targets"]),
        }

    def result(self, refusals: tuple[type[BaseException], ...]) -> dict[str, Any]:
        """Return the times of all runs; those with and without the trace take turns."""
        v1 = self._tf.compat.v1
        config = planned_config(self._tf, 1)
        config.intra_op_parallelism_threads = self._request["threads"]
        nodes, times = [], []
        with closing(v1.Session(graph=self._graph, config=config)) as session:
            self._variables.initialize(session, self._request["init"], refusals)
            # Session.run looks at every fetch each time; a callable does so once.
            tensors = [self._graph.get_tensor_by_name(feed.tensor) for feed in self._feeds]
            step = session.make_callable(self._fetches, feed_list=tensors)
            feeds = self._values()
            values = list(feeds.values())
            for _ in range(self._request["invocations"]):
                start = time.perf_counter_ns()
                step(*values)
                times.append(time.perf_counter_ns() - start)
                metadata = v1.RunMetadata()
                options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
                session.run(self._fetches, feeds, options=options, run_metadata=metadata)
                nodes.append(node_times(metadata.step_stats))
        return {"nodes": nodes, "run_ns": times}

    def _values(self) -> dict[str, Any]:
        """Return the inputs, the same for all runs: what they decide must not change."""
        seed = self._request["seed"]
        tensor_of = self._graph.get_tensor_by_name
        return {
            feed.tensor: value_of(
                feed, seed, self._style, maker_of(self._tf, tensor_of(feed.tensor))
            )
            for feed in self._feeds
        }

    def _fetchable(self, name: str) -> Any:
        node, _, slot = name.partition(":")
        outputs = self._graph.get_operation_by_name(node).outputs
        if int(slot) >= len(outputs):
            return None
        has_value = outputs[int(slot)].dtype.base_dtype not in (
            self._tf.resource,
            self._tf.variant,
        )
        return outputs[int(slot)] if has_value else None


def node_times(stats: Any) -> dict[str, int]:
    """Return node -> ns in its kernel, over all its executions in one run (StepStats)."""
    found: dict[str, int] = {}
    for device in stats.dev_stats:
        for node in device.node_stats:
            ns = node.op_end_rel_nanos - node.op_start_rel_nanos
            if not node.op_end_rel_nanos:
                ns = 1000 * (node.op_end_rel_micros - node.op_start_rel_micros)
            found[node.node_name] = found.get(node.node_name, 0) + max(ns, 0)
    return found


if __name__ == "__main__":
    main()
