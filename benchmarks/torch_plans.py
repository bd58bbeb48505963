"""Several plans of one PyTorch graph: what was predicted for each, and what it takes."""

from __future__ import annotations

import random
import resource
import statistics
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RUNS = 40  # of each plan, in turns
SECONDS = 90  # of the wall for all runs; 10 of each take place at any rate


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
    from regal.backends.torch.trial import drawn_inputs, keep_freed_memory
    from regal.frontends.torch.fx import graph_of
    from regal.fusion.check import check_fusion
    from regal.fusion.search import plan_fusion, unfused_plan
    from regal.search.types import Budget
    from regal.torch.fusing import Candidate, Workshop, compiled_candidate
    from regal.torch.measured import measured, problem_of
    from regal.torch.times import times_at

    keep_freed_memory()
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
    taken = runs_of(candidates, args)
    return [row | figures for row, figures in zip(rows, taken, strict=True)]


def runs_of(candidates: Sequence[Any], args: list[Any]) -> list[dict[str, Any]]:
    """Return what each plan takes, in turns of drawn order: medians of all runs and of each half.

    Each turn is at another depth of the stack, see `at_depth`.

    And how many pages a run gets anew from the system, in the median.
    """
    import torch

    from regal.backends.torch.executor import boxed
    from regal.backends.torch.trial import at_depth

    runs = [boxed(each.built.module) for each in candidates]
    taken: list[list[tuple[int, int]]] = [[] for _ in runs]
    order = list(range(len(runs)))
    draw = random.Random(1)
    stop = time.monotonic() + SECONDS
    with torch.no_grad():
        for turn in range(RUNS):
            if turn >= 10 and time.monotonic() > stop:
                break
            draw.shuffle(order)
            for i in order:
                taken[i].append(at_depth(turn, partial(timed, runs[i], args)))
    return [
        {
            "ms": statistics.median(ns for ns, _ in each) / 1e6,
            "halves_ms": [
                statistics.median(ns for ns, _ in each[half::2]) / 1e6 for half in (0, 1)
            ],
            "runs": len(each),
            "new_pages": statistics.median(pages for _, pages in each),
        }
        for each in taken
    ]


def timed(run: Callable[[list[Any]], Any], args: list[Any]) -> tuple[int, int]:
    """Return the time in ns and the new pages of the second of two runs."""
    from regal.backends.torch.trial import clock_ns

    run(list(args))  # memory of the others leaves the caches
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    started = clock_ns()
    run(list(args))
    took = clock_ns() - started
    return took, resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
