"""Several plans of one PyTorch graph: what was predicted for each, and what it takes."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any


def measured_plans(model: Any, inputs: tuple[Any, ...], most: int = 14) -> list[dict[str, Any]]:
    """Return plans that differ, from no fusion at all to the best that is found.

    Args:
        model: without gradients.
        inputs: of it.
        most: plans.
    """
    import torch
    from torch._dynamo.backends.common import aot_autograd
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    from regal.backends.torch.executor import boxed, callable_of

    plans: list[dict[str, Any]] = []

    def compiled(module: Any, _: Any) -> Any:
        if not plans:
            with unset_fake_temporarily(), torch.no_grad():
                plans.extend(plans_of(module, most))
        return callable_of(boxed(module))

    backend = aot_autograd(fw_compiler=compiled, inference_compiler=compiled)
    with torch.no_grad():
        torch.compile(model, backend=backend)(*inputs)
    return plans


def plans_of(module: Any, most: int) -> list[dict[str, Any]]:
    """Return the plans of one graph."""
    from regal.backends.torch.fuse import Wishes
    from regal.backends.torch.trial import drawn_inputs
    from regal.frontends.torch.fx import graph_of
    from regal.fusion.check import check_fusion
    from regal.fusion.search import plan_fusion, unfused_plan
    from regal.search.types import Budget
    from regal.torch.fusing import Candidate, Workshop, compiled_candidate, measured_runs
    from regal.torch.measured import measured, problem_of
    from regal.torch.times import times_at

    graph = graph_of(module, "inference")
    args = drawn_inputs(module)
    workshop = Workshop(times_at(None))
    workshop.times.allow(60)
    found = measured(module, graph, Wishes(), args, workshop.times)
    problem = problem_of(module, graph, found)
    tried: dict[str, Any] = {"no fusion": unfused_plan(problem)}
    for method in ("fusion-only", "layout-only", "sequential", "joint"):
        made = plan_fusion(
            problem, "time", Budget(evaluations=3000, seconds=5), method=method, in_place=False
        )
        tried[method] = made.plan
    # The best plans of wrong problems: of all qualities, and all different.
    draw = random.Random(0)
    for number in range(2 * most):
        spread = draw.choice((0.3, 1.0, 2.0))
        wrong = replace(
            problem,
            alone_ns=tuple(
                tuple(tuple(1 + int(ns * draw.lognormvariate(0, spread)) for ns in pair)
                      for pair in row)
                for row in problem.alone_ns
            ),
        )  # fmt: skip
        made = plan_fusion(
            wrong, "time", Budget(evaluations=30, seconds=5), method="joint", in_place=False
        )
        tried[f"drawn {number}"] = made.plan
    rows: list[dict[str, Any]] = []
    seen: set[tuple[tuple[tuple[int, ...], int], ...]] = set()
    candidates: list[Candidate] = []
    for name, plan in tried.items():
        key = tuple(sorted((kernel.ops, kernel.layout) for kernel in plan.kernels if kernel.ops))
        if key in seen or len(candidates) >= most:
            continue
        seen.add(key)
        deadline = time.monotonic() + 120
        candidate = compiled_candidate(
            name, plan.kernels, module, graph, found, args, workshop, deadline, keep_slow=True
        )
        if candidate is None:
            continue
        candidates.append(candidate)
        rows.append({"plan": name, "predicted_ms": check_fusion(problem, plan).time_ns / 1e6})
    ns = measured_runs(module, candidates, args)
    return [{**row, "ms": ns[row["plan"]] / 1e6} for row in rows]
