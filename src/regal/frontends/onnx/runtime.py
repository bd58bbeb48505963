"""Run a model with ONNX Runtime in a child process, within limits."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import regal
from regal.child import run_module

# A run may not take more memory than a machine of this kind has; the address space also
# holds what is only reserved.
MOST_MEMORY = 48 << 30
METER = "_heap_meter.so"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What a child is asked to do with one model file."""

    model: str  # path
    external_folder: str = ""  # where external data lies, if not beside the model
    file_order: bool = True
    level: str = "none"
    shapes: dict[str, list[int]] = field(default_factory=dict)  # of inputs
    seed: int = 0
    invocations: int = 1
    threads: int = 1  # within an operator
    style: str = ""  # of the inputs; "" tries all
    profile_prefix: str = ""
    optimized: str = ""  # save the optimized model here


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What happened. `digests` has one row per run, with one digest per output."""

    ran: bool = False
    reason: str = ""  # why it did not run
    style: str = ""
    digests: list[list[str]] = field(default_factory=list)
    heap_peak_bytes: int = -1  # above what was live before the run; -1: not measured
    run_ns: list[int] = field(default_factory=list)  # wall time of each run
    profile: str = ""  # path


def run_in_child(request: RunRequest, timeout_s: float, *, measure: bool = False) -> RunResult:
    """Return what a child process made of `request`; crashes and time-outs are results.

    Args:
        request: the model and how to run it.
        timeout_s: wall time after which the child is killed.
        measure: count the heap of the child.
    """
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        request_path, result_path = Path(folder, "request.json"), Path(folder, "result.json")
        request_path.write_text(json.dumps(asdict(request)))
        ended = run_module(
            "regal.frontends.onnx.child",
            [str(request_path), str(result_path)],
            timeout_s,
            preload=meter_path() if measure else None,
        )
        if result_path.exists():
            return RunResult(**json.loads(result_path.read_text()))
    last = ended.stderr.strip().splitlines()[-1:] if ended.end.startswith("ended") else []
    return RunResult(reason=": ".join([f"ONNX Runtime {ended.end}", *(s[:200] for s in last)]))


def meter_path() -> Path | None:
    """Return the heap meter, or None where it was not built."""
    for folder in regal.__path__:
        if (path := Path(folder, METER)).exists():
            return path
    return None
