"""The main job on the models that ship with the repository: `make demo`.

Each model is planned, rewritten, and run in its real runtime before and after: the memory figures
in the last column are the runtime's own.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import regal

if TYPE_CHECKING:
    from regal.result import Result

MODELS = Path(__file__).parent / "models"
OUTPUT = Path(__file__).parents[1] / "demo-output"
FIGURE = {"head_bytes": "TFLM arena head", "heap_peak_bytes": "ONNX Runtime heap peak"}


def main() -> int:
    """Optimize every shipped model; return 1 if one fails or none gains."""
    OUTPUT.mkdir(exist_ok=True)
    best = 0.0
    is_good = True
    for path in sorted((*MODELS.glob("*.tflite"), *MODELS.glob("*.onnx"))):
        started = time.perf_counter()
        result = regal.optimize(path, OUTPUT / path.name, force=True)
        seconds = time.perf_counter() - started
        before, after, figure = measured(result)
        gain = 1 - after / before if before else 0.0
        best = max(best, gain)
        is_good = is_good and result.is_good and result.verification is not None
        proof = "proven optimal" if result.is_order_optimal else "best found"
        print(
            f"{path.name:<34}{len(result.model.graph.ops):>5} ops "
            f"{before:>10,} B -> {after:>10,} B ({0.0 - 100 * gain:+6.1f} %)  {figure}; {proof};"
            f" outputs {'equal' if is_equal(result) else 'NOT VERIFIED'}; {seconds:.1f} s"
        )
    print(f"\nThe rewritten models are in {OUTPUT.name}/. Largest gain: {100 * best:.1f} %.")
    return 0 if is_good and best > 0 else 1


def measured(result: Result) -> tuple[int, int, str]:
    """Return what the runtime measured before and after, and what that figure is."""
    for check in result.verification.checks if result.verification else ():
        for name, text in FIGURE.items():
            if name in check.before and name in check.after:
                return check.before[name], check.after[name], text
    before = result.before.arena_bytes
    return before, result.arena_bytes, "planned arena"


def is_equal(result: Result) -> bool:
    """Return whether the runtime saw equal outputs."""
    return result.verification is not None and result.verification.outputs_equal


if __name__ == "__main__":
    sys.exit(main())
