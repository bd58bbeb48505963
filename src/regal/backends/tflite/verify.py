"""Prove that a rewritten .tflite file computes what the original computes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from regal.backends.tflite.measure import LITERT, TFLM, Run, run_model, runtime_name
from regal.backends.types import RuntimeCheck, Verification
from regal.errors import ModelError
from regal.frontends.tflite import load, source_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NAMES = {TFLM: "TFLM", LITERT: "LiteRT"}


def verify(
    original: Path,
    optimized: Path,
    *,
    seed: int,
    invocations: int = 20,
    timeout_s: float = 60,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Verification:
    """Return what TFLM and LiteRT say about two files: outputs equal bit for bit, and memory.

    Each file runs in a child process per runtime, several times in a row, on equal seeded
    inputs; state is carried over. TFLM runs the main graph; LiteRT every signature.

    Raises:
        ModelError: one of the files cannot be read.
    """
    model = load(original, shapes or {}, dims or {})
    source = source_of(model)
    try:
        new = optimized.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read '{optimized}': {error.strerror or error}") from error
    checks, reasons = [], []
    for runtime in (TFLM, LITERT):
        if runtime == TFLM and source.shapes.resized:
            reasons.append("TFLM: it cannot resize inputs")
            continue

        def run(data: bytes, runtime: str = runtime) -> Run:
            return run_model(
                source, data, runtime, seed=seed, invocations=invocations, timeout_s=timeout_s
            )

        with ThreadPoolExecutor(2) as pool:
            before, after = pool.map(run, (source.file.data, new))
        if before.error:
            reasons.append(f"{_NAMES[runtime]}: {before.error}")
        else:
            checks.append(compare_runs(runtime_name(runtime), before, after))
    return Verification(checks=tuple(checks), skipped="; ".join(reasons))


def compare_runs(runtime: str, before: Run, after: Run) -> RuntimeCheck:
    """Return the verdict on two runs; `detail` names the first output that differs."""
    detail = after.error and f"the new model fails: {after.error}"
    if not detail and before.digests != after.digests:
        detail = _first_difference(before, after)
    elif not detail and len(before.digests) > 1 and len(set(before.digests)) == 1:
        detail = "equal, but no output changed from one invocation to the next: a weak check"
    return RuntimeCheck(
        runtime=runtime,
        outputs_equal=not after.error and before.digests == after.digests,
        before=before.numbers,
        after=after.numbers,
        invocations=len(before.digests),
        detail=detail,
    )


def _first_difference(before: Run, after: Run) -> str:
    if len(before.digests) != len(after.digests):
        return f"{len(before.digests)} invocations against {len(after.digests)}"
    for invocation, (a, b) in enumerate(zip(before.digests, after.digests, strict=True)):
        if len(a) != len(b):
            return f"{len(a)} outputs against {len(b)}"
        for output, (x, y) in enumerate(zip(a, b, strict=True)):
            if x != y:
                return f"output {output} differs in invocation {invocation}"
    return ""
