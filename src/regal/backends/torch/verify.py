"""Have PyTorch run the original and the new program: equal outputs, measured memory."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import regal
from regal.backends.types import RuntimeCheck, Verification
from regal.child import run_module

if TYPE_CHECKING:
    from collections.abc import Mapping

METER = "_heap_meter.so"
# What the allocator's own bookkeeping takes differs from run to run.
NOISE_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRequest:
    """What a child is asked to do with one .pt2 file."""

    model: str
    seed: int
    invocations: int
    shapes: dict[str, list[int]] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """What happened: one row of digests per invocation, and the most memory one took."""

    ran: bool = False
    reason: str = ""
    digests: list[list[str]] = field(default_factory=list)
    peak_bytes: int = -1  # of live tensors
    heap_peak_bytes: int = -1  # of all that was allocated; -1: not measured


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
    """Return PyTorch's verdict: outputs and state bit for bit, after every invocation.

    `peak_bytes` counts live tensors made by a run, `heap_peak_bytes` everything that was
    allocated, what kernels need for themselves included.

    Args:
        original: the file that was planned.
        optimized: the file that was written.
        seed: of the inputs.
        invocations: runs, each on other inputs; state goes from one to the next.
        timeout_s: wall time for each of two child processes.
        shapes: input -> sizes, as for loading.
        dims: symbol -> size, as for loading.
    """
    from importlib.metadata import version

    request = ProgramRequest(
        model=str(original),
        seed=seed,
        invocations=invocations,
        shapes={name: list(shape) for name, shape in (shapes or {}).items()},
        dims=dict(dims or {}),
    )
    before = run_program(request, timeout_s)
    if not before.ran:
        return Verification(checks=(), skipped=before.reason)
    after = run_program(ProgramRequest(**{**asdict(request), "model": str(optimized)}), timeout_s)
    equal = after.ran and before.digests == after.digests
    detail = "" if equal else after.reason or _first_difference(before, after)
    check = RuntimeCheck(
        runtime=f"torch {version('torch')}",
        outputs_equal=equal,
        before=_figures(before),
        after=_figures(after),
        invocations=invocations,
        detail=detail,
        noise_bytes=NOISE_BYTES,
    )
    return Verification(checks=(check,))


def run_program(request: ProgramRequest, timeout_s: float) -> ProgramRun:
    """Return what a child process made of a program; crashes and time-outs are results."""
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        result = Path(folder, "result.json")
        ended = run_module(
            "regal.backends.torch.child",
            [str(result)],
            timeout_s,
            stdin=json.dumps(asdict(request)),
            preload=_meter(),
        )
        if result.exists():
            return ProgramRun(**json.loads(result.read_bytes()))
    last = ended.stderr.strip().splitlines()[-1:] if ended.end.startswith("ended") else []
    return ProgramRun(reason=": ".join([f"PyTorch {ended.end}", *(s[:200] for s in last)]))


def _first_difference(before: ProgramRun, after: ProgramRun) -> str:
    for run, (left, right) in enumerate(zip(before.digests, after.digests, strict=False)):
        for output, (a, b) in enumerate(zip(left, right, strict=False)):
            if a != b:
                return f"output {output} of run {run} differs"
    return "the numbers of outputs differ"


def _figures(run: ProgramRun) -> dict[str, int]:
    found = {"peak_bytes": run.peak_bytes, "heap_peak_bytes": run.heap_peak_bytes}
    return {name: size for name, size in found.items() if size >= 0}


def _meter() -> Path | None:
    for folder in regal.__path__:
        if (path := Path(folder, METER)).exists():
            return path
    return None
