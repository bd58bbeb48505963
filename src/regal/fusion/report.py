"""What a fusion plan does, in lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.fusion.check import Judge
from regal.fusion.file import LAYOUTS
from regal.fusion.types import Kernel

if TYPE_CHECKING:
    from regal.fusion.search import FusionOutcome
    from regal.fusion.types import FusionProblem

MOST_KERNELS = 10  # that are listed


def fusion_report(problem: FusionProblem, outcome: FusionOutcome) -> str:
    """Return what the plan reaches, and the kernels that save most time.

    A kernel saves against its ops alone, in its layout; copies are listed apart.
    """
    before, after, plan = outcome.before, outcome.figures, outcome.plan
    names = [op.name for op in problem.graph.ops]
    judge = Judge(problem, plan)
    fused = [kernel for kernel in plan.kernels if len(kernel.ops) > 1]
    copies = [kernel for kernel in plan.kernels if kernel.is_copy]
    last = sum(layout == 1 for layout in plan.layouts.values())
    saved = {kernel: _saved_ns(judge, kernel) for kernel in fused}
    lines = [
        f"time     {before.time_ns:,} ns -> {after.time_ns:,} ns"
        f" ({_change(before.time_ns, after.time_ns)}; no plan is below {after.time_bound_ns:,} ns)",
        f"peak     {before.peak:,} B -> {after.peak:,} B ({_change(before.peak, after.peak)})",
        f"kernels  {len(names)} ops -> {len(plan.kernels)} kernels, {len(fused)} of several ops,"
        f" {len(copies)} layout copies; {last} ops with the channels last",
    ]
    for kernel in sorted(fused, key=lambda kernel: -saved[kernel])[:MOST_KERNELS]:
        ops = " + ".join(names[op] for op in kernel.ops)
        lines.append(f"  saves {saved[kernel]:,} ns, {LAYOUTS[kernel.layout]}: {ops}")
    for kernel in copies[:MOST_KERNELS]:
        name = problem.graph.tensors[kernel.tensor].name
        lines.append(
            f"  copy of '{name}' to {LAYOUTS[kernel.layout]}: {judge.kernel_ns(kernel):,} ns"
        )
    return "\n".join(lines)


def _saved_ns(judge: Judge, kernel: Kernel) -> int:
    alone = (
        judge.kernel_ns(Kernel(ops=(op,), layout=kernel.layout, device=kernel.device))
        for op in kernel.ops
    )
    return sum(alone) - judge.kernel_ns(kernel)


def _change(before: int, after: int) -> str:
    return f"{100 * (after / before - 1):+.1f} %" if before else "as before"
