"""The main jobs on the models that ship with the repository: `make demo`.

Each model is planned for one device, rewritten, and run in its real runtime before and after: the
memory figures are the runtime's own. Then the ONNX models are spread over two GPUs: running times
are predicted, the parts run in ONNX Runtime on this machine, and their outputs are compared.
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
    print("\nSpread over two GPUs (gpu-pcie-2), for running time:\n")
    for path in sorted(MODELS.glob("*.onnx")):
        is_good = spread(path) and is_good
    print(f"\nThe rewritten models are in {OUTPUT.name}/. Largest gain: {100 * best:.1f} %.")
    return 0 if is_good and best > 0 else 1


def spread(path: Path) -> bool:
    """Plan a model for two devices, run its parts; return whether all is well."""
    folder = OUTPUT / f"{path.stem}-on-two-devices"
    folder.mkdir(exist_ok=True)
    result = regal.schedule(path, folder / path.name, devices="2", force=True)
    before, after = result.before.time_ns, result.plan.time_ns
    bound = result.time_bound_ns
    is_verified = result.verification is not None and result.verification.outputs_equal
    print(
        f"{path.name:<34}{len(result.model.graph.ops):>5} ops "
        f"{before / 1e6:>8.3f} ms -> {after / 1e6:.3f} ms ({100 * (after / before - 1):+6.1f} %)"
        f"  predicted, at most {100 * (after / bound - 1):.1f} % above the optimum;"
        f" outputs {'equal' if is_verified else 'NOT VERIFIED'}; {result.seconds:.1f} s"
    )
    return result.is_good and is_verified


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
