"""Choose, among the ways to write a plan, the one that TFLM needs least memory for.

A plan speaks of the tensors of graphs. The runtime adds what only it knows: unused tensors,
bodies that several ops run, scratch of kernels. So the written file is judged by a replica of
TFLM's planner, then by TFLM itself where it is installed, and never gets worse than the
original.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.backends.tflite.apply import planned_bytes, reordered_bytes
from regal.backends.tflite.measure import LITERT, TFLM, Run, run_model
from regal.backends.tflite.offsets import arena_offsets, operator_orders, placed_subgraphs
from regal.backends.tflite.tflm_planner import head_bytes
from regal.backends.types import AppliedModel
from regal.errors import BackendError
from regal.frontends.tflite import source_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.frontends.tflite import TfliteSource
    from regal.graph.types import LoadedModel
    from regal.plan.types import ModelPlan


# The replica of TFLM's planner takes quadratic time: seconds for this many tensors. Beyond, the
# plan is tried first, and the runtime alone judges.
_MOST_PREDICTED = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """One way to write the model, and the head that TFLM is expected to report for it."""

    note: str
    data: bytes
    head_bytes: int


def refine(model: LoadedModel, plan: ModelPlan, *, timeout_s: float = 20.0) -> AppliedModel:
    """Return the model in the form that needs least memory: planned, reordered, or as it is.

    Like `apply`, but it may leave out what does not help, and runs the models to be sure that
    neither TFLM's head nor its total grows (LiteRT's span, where only LiteRT can run it).

    Args:
        model: the loaded model.
        plan: a checked plan of it.
        timeout_s: for each run in a child process.
    """
    source = source_of(model)
    original, *others = _candidates(source, model, plan)
    # On equal heads the one that changes least: what is left free, the runtime can still use.
    ranked = sorted([original, *others], key=lambda c: c.head_bytes)
    if sum(len(s.tensors) for s in source.file.subgraphs) > _MOST_PREDICTED:
        ranked = [*reversed(others), original]
    if source.shapes.resized:
        ranked = [next(c for c in others), original]
    if ranked[0] is original:
        return AppliedModel(files={"": original.data}, notes=(original.note,))
    # The likely winner and the original run side by side.
    with ThreadPoolExecutor(2) as pool:
        before_run = pool.submit(_measured, source, original.data, timeout_s)
        first_run = pool.submit(_measured, source, ranked[0].data, timeout_s)
        before, first = before_run.result(), first_run.result()
    for candidate in ranked:
        if candidate is original:
            break
        after = first if candidate is ranked[0] else _measured(source, candidate.data, timeout_s)
        if not _is_worse(before, after):
            return AppliedModel(files={"": candidate.data}, notes=(candidate.note,))
    return AppliedModel(files={"": original.data}, notes=(original.note,))


def _candidates(source: TfliteSource, model: LoadedModel, plan: ModelPlan) -> list[_Candidate]:
    """Return the original first, then from the smallest to the largest change."""
    placed = placed_subgraphs(model, plan)
    orders = operator_orders(placed)
    is_large = sum(len(s.tensors) for s in source.file.subgraphs) > _MOST_PREDICTED

    def predicted(orders: Mapping[int, Sequence[int]], offsets: Sequence[int] | None) -> int:
        return 0 if is_large else head_bytes(source, orders, offsets)

    found = [
        _Candidate(
            note="the file is kept as it is: no plan needs less memory in the runtime",
            data=source.file.data,
            head_bytes=predicted({}, source.offline_plan()),
        )
    ]
    reordered = reordered_bytes(source, orders)
    changed = "" if reordered == source.file.data else "operators reordered; "
    found.append(
        _Candidate(
            note="operators reordered; the runtime's own memory plan is as good for this order",
            data=reordered,
            head_bytes=predicted(orders, None),
        )
    )
    if source.shapes.resized:
        return found
    for with_bodies in (False, True):
        offsets = arena_offsets(source, placed, with_bodies=with_bodies)
        try:
            data = planned_bytes(source, orders, offsets)
        except BackendError:
            continue
        found.append(
            _Candidate(
                note=f"{changed}memory plan written as OfflineMemoryAllocation",
                data=data,
                head_bytes=predicted(orders, offsets),
            )
        )
    return found


def _measured(source: TfliteSource, data: bytes, timeout_s: float) -> Run:
    """Return what TFLM reports; where it cannot run the model, what LiteRT reports."""
    run = Run(runtime=TFLM, error="resized")
    if not source.shapes.resized:
        run = run_model(source, data, TFLM, seed=0, invocations=0, timeout_s=timeout_s)
    if run.error:
        run = run_model(source, data, LITERT, seed=0, invocations=1, timeout_s=timeout_s)
    return run


def _is_worse(before: Run, after: Run) -> bool:
    """Return whether a run needs more of anything, or fails where the original did not."""
    if before.error:  # no runtime here runs the original: nothing to compare
        return False
    if after.error or after.runtime != before.runtime:
        return True
    return any(after.numbers.get(what, size) > size for what, size in before.numbers.items())
