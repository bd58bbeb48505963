"""The stories of a result: what traces and pages are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.cost.types import FORBIDDEN
from regal.report.build import story_of_plans, story_of_schedules
from regal.result import Result

if TYPE_CHECKING:
    from regal.report.story import Story
    from regal.schedule_result import ScheduleResult


def stories_of(result: Result | ScheduleResult) -> tuple[Story, ...]:
    """Return one story per entry of the model: the plan before and after.

    Raises:
        PlanError: the buffers of a plan do not reach its peaks.
    """
    if isinstance(result, Result):
        return _stories_on_one_device(result)
    return tuple(
        story_of_schedules(graph, result.plan.system, before, after, cost)
        for graph, before, after, cost in zip(
            result.model.entries, result.before.plans, result.plan.plans, result.costs, strict=True
        )
    )


def _stories_on_one_device(result: Result) -> tuple[Story, ...]:
    device = result.system.devices[0]
    stories = []
    for graph, before, after, cost in zip(
        result.model.entries, result.before.plans, result.plan.plans, result.costs, strict=True
    ):
        times = [row[0] for row in cost.op_ns]
        is_known = FORBIDDEN not in times
        stories.append(
            story_of_plans(
                graph,
                before,
                after,
                op_ns=times if is_known else (),
                sources=cost.sources if is_known else (),
                device=device.name,
                memory_bytes=result.capacity,
            )
        )
    return tuple(stories)
