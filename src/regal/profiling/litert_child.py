"""Child process: LiteRT runs a model, with and without its profiler, and reports times.

Usage: python -m regal.profiling.litert_child REQUEST.json RESULT.json
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from regal.backends.tflite.inputs import InputSpec, values_of
from regal.files import write_atomically
from regal.profiling.litert_api import CompiledModel, LiteRtError


def main() -> None:
    """Write {"ops": [[[subgraph, op, us], ...] per run], "run_ns": [...]} or {"error": ...}."""
    request = json.loads(Path(sys.argv[1]).read_text())
    try:
        result = _measured(request)
    except (LiteRtError, OSError) as error:
        result = {"error": str(error)}
    write_atomically(Path(sys.argv[2]), json.dumps(result).encode())
    # LiteRT may crash while it is torn down; the result is safe by now.
    os._exit(0)


def _measured(request: dict[str, Any]) -> dict[str, Any]:
    specs = {
        int(tensor): InputSpec(**{**spec, "shape": tuple(spec["shape"])})
        for tensor, spec in request["inputs"].items()
    }
    plain, profiled = (
        CompiledModel(request["model"], request["signature"], request["threads"], profiled=flag)
        for flag in (False, True)
    )
    ops, times = [], []
    tensors = plain.input_tensors()
    # The same inputs for all runs: what they decide must not change.
    values = [
        values_of(specs[tensor], request["seed"], 0, 0, position).tobytes()
        for position, tensor in enumerate(tensors)
    ]
    # Run in turn: what else the machine does then meets both alike.
    for _ in range(request["invocations"]):
        for model in (plain, profiled):
            model.set_inputs(values)
            start = time.perf_counter_ns()
            model.run()
            elapsed = time.perf_counter_ns() - start
            if model is profiled:
                ops.append(model.op_events())
            else:
                times.append(elapsed)
    return {"ops": ops, "run_ns": times}


if __name__ == "__main__":
    main()
