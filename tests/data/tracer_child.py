"""Trace one item twice, in a process of its own: frameworks do not bear each other.

Usage: python -m tests.data.tracer_child FRAMEWORK SOURCE ARCHITECTURE MODE; prints one JSON object.
"""

import json
import sys

from regal.cost.work import work_of
from regal.data.pack import packed
from regal.data.tracers import tracer_of
from regal.graph.check import require_valid_graph
from regal.graph.types import Role


def main(framework: str, source: str, architecture: str, mode: str) -> None:
    tracer = tracer_of(framework, source)
    items = tracer.items()
    (item,) = [i for i in items if (i.architecture, i.mode) == (architecture, mode)]
    graph = require_valid_graph(tracer.trace(item))
    document = {
        "items": len(items),
        "keys": len({i.key for i in items}),
        "sources": sorted({f"{i.framework}/{i.source}" for i in items}),
        "modes": sorted({i.mode for i in items}),
        "is_repeatable": packed(graph) == packed(tracer.trace(item)),
        "framework": graph.framework,
        "ops": len(graph.ops),
        "flops": sum(op.flops for op in graph.ops),
        "unknown": [
            op.kind for op in graph.ops if not work_of(op, graph.tensors, graph.framework).is_known
        ],
        "has_state": any(tensor.role is Role.STATE for tensor in graph.tensors),
        "version": tracer.version(),
    }
    print(json.dumps(document))


if __name__ == "__main__":
    main(*sys.argv[1:])
