"""`regal validate`: execute diverse plans for real, and compare with what was predicted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from regal.cost.roofline import graph_cost
from regal.errors import BackendError, UsageError
from regal.frontends import load
from regal.profiling.profile import profile_loaded
from regal.profiling.types import ProfileOptions
from regal.scheduling import system_for
from regal.validation.agreement import Agreement, agreement
from regal.validation.executors import ExecutorOptions, order_executor
from regal.validation.plans import order_plans
from regal.validation.schedule_executor import ScheduleExecutor
from regal.validation.schedule_plans import schedule_plans
from regal.validation.types import Measured, Trial, Validation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from regal.cost.profile import OpTimes
    from regal.cost.types import GraphCost
    from regal.devices.types import System
    from regal.graph.types import LoadedModel
    from regal.plan.schedule import ModelSchedule
    from regal.plan.types import ModelPlan
    from regal.validation.types import Executor

Plan = TypeVar("Plan")
MOST_PLANS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationOptions:
    """What to execute, and what to predict with."""

    plans: int = 8
    repeats: int = 4  # of the first plan, beside its own trial
    seed: int = 0
    devices: str = "1"  # what is predicted for, as for `regal.optimize`
    profile: OpTimes | None = None  # measured op times; else the roofline
    executor: ExecutorOptions = field(default_factory=ExecutorOptions)

    def __post_init__(self) -> None:
        if not 1 <= self.plans <= MOST_PLANS or not 1 <= self.repeats <= MOST_PLANS:
            raise UsageError(
                f"validate: {self.plans} plans, the first one repeated {self.repeats} times;"
                f" give 1 to {MOST_PLANS} of each"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted(Generic[Plan]):
    """A plan with what is predicted of it."""

    name: str
    plan: Plan
    time_ns: int
    peak_bytes: int


class Runs(NamedTuple):
    """Trials, and the first plan again and again."""

    trials: tuple[Trial, ...]
    repeated: tuple[Measured, ...]


def validate_model(
    path: Path,
    options: ValidationOptions | None = None,
    *,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> Validation:
    """Return how well predictions agree with real runs of a model's plans.

    On one device ops run one after another, so every order has the same predicted time: what
    can be ranked there is memory, and the times of the ops among themselves. On several devices
    CPU threads stand in for them: predict with devices like these ("cpu:2") and a profile.

    Raises:
        UsageError: nothing here executes this kind of model.
        ModelError: the file is broken or not supported.
    """
    options = options or ValidationOptions()
    model = load(path, shapes, dims)
    system = system_for(model, options.devices)
    costs = tuple(graph_cost(graph, system, options.profile) for graph in model.entries)
    if len(system.devices) > 1:
        several = ScheduleExecutor(model, path, options.executor, shapes or {}, dims or {})
        name, runs = several.name, _executed_schedules(model, system, costs, several, options)
    else:
        one = order_executor(model, options.executor)
        name, runs = one.name, _executed_orders(model, costs[0], one, options)
    ops, notes = _op_agreement(model, costs[0], options, path.name)
    return Validation(
        model=str(path),
        framework=model.framework,
        system=system.name,
        executor=name,
        trials=runs.trials,
        repeated=runs.repeated,
        time=time_agreement(runs),
        memory=memory_agreement(runs),
        ops=ops,
        sources=costs[0].coverage,
        notes=notes,
    )


def _executed_orders(
    model: LoadedModel, cost: GraphCost, executor: Executor[ModelPlan], options: ValidationOptions
) -> Runs:
    total_ns = sum(row[0] for row in cost.op_ns)
    plans = [
        Predicted(name=name, plan=plan, time_ns=total_ns, peak_bytes=executor.planned_bytes(plan))
        for name, plan in order_plans(model, options.plans, options.seed)
    ]
    return executed(plans, executor, options.repeats)


def _executed_schedules(
    model: LoadedModel,
    system: System,
    costs: Sequence[GraphCost],
    executor: Executor[ModelSchedule],
    options: ValidationOptions,
) -> Runs:
    plans = [
        Predicted(
            name=name,
            plan=plan,
            time_ns=plan.plans[0].figures.time_ns,
            peak_bytes=executor.planned_bytes(plan),
        )
        for name, plan in schedule_plans(model, system, costs, options.plans, options.seed)
    ]
    return executed(plans, executor, options.repeats)


def executed(plans: Sequence[Predicted[Plan]], executor: Executor[Plan], repeats: int) -> Runs:
    """Return the trials of all plans, and `repeats` more runs of the first one that succeeds.

    The repetitions lie between the other runs, so that they see the same drift of the machine.
    """
    trials: list[Trial] = []
    repeated: list[Measured] = []
    first: Predicted[Plan] | None = None
    share = repeats / max(len(plans) - 1, 1)
    for number, plan in enumerate(plans):
        measured = executor.run(plan.plan)
        trials.append(
            Trial(
                plan=plan.name,
                time_ns=plan.time_ns,
                peak_bytes=plan.peak_bytes,
                measured=measured,
            )
        )
        if first is None:
            first = plan if not measured.failure else None
        due = repeats if number == len(plans) - 1 else round(share * number)
        while first is not None and len(repeated) < due:
            repeated.append(executor.run(first.plan))
    return Runs(tuple(trials), tuple(repeated))


def time_agreement(runs: Runs) -> Agreement | None:
    """Return how predicted and measured times agree; None where none was measured."""
    pairs = [(t.time_ns, t.measured.time_ns) for t in runs.trials if t.measured.time_ns]
    return _agreement(pairs, [m.time_ns for m in runs.repeated])


def memory_agreement(runs: Runs) -> Agreement | None:
    """Return how predicted and measured peaks agree; None where none was measured."""
    pairs = [
        (t.peak_bytes, t.measured.peak_bytes)
        for t in runs.trials
        if t.measured.peak_bytes is not None
    ]
    return _agreement(pairs, [m.peak_bytes for m in runs.repeated])


def _agreement(
    pairs: Sequence[tuple[int, int | None]], repeated: Sequence[int | None]
) -> Agreement | None:
    known = [(predicted, measured) for predicted, measured in pairs if measured is not None]
    if not known:
        return None
    again = [value for value in repeated if value is not None]
    return agreement([p for p, _ in known], [m for _, m in known], [known[0][1], *again])


def _op_agreement(
    model: LoadedModel, cost: GraphCost, options: ValidationOptions, name: str
) -> tuple[Agreement | None, tuple[str, ...]]:
    """Return how the times of the ops agree with the runtime's profiler, or why they do not."""
    asked = ProfileOptions(
        runs=2 * options.executor.invocations,
        seed=options.executor.seed,
        timeout_s=options.executor.timeout_s,
    )
    try:
        profile = profile_loaded(model, asked, name)
    except BackendError as error:
        return None, (f"ops are not compared: {error}",)
    pairs = [
        (row[0], measured["cpu"])
        for row, op in zip(cost.op_ns, model.graph.ops, strict=True)
        if (measured := profile.times_of(op, model.graph))
    ]
    return _agreement(pairs, ()), ()
