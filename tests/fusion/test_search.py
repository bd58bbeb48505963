"""Searches: never worse than what they start from, equal for any number of threads."""

import json
import re
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from regal.devices.presets import system_named
from regal.errors import ModelError, PlanError, UsageError
from regal.fusion.analytic import fusion_problem
from regal.fusion.check import check_fusion
from regal.fusion.devices import METHODS as DEVICE_METHODS
from regal.fusion.devices import plan_fusion_on_devices
from regal.fusion.file import fusion_plan_from_json, fusion_plan_to_json
from regal.fusion.search import METHODS, plan_fusion, unfused_plan
from regal.fusion.types import FusionPlan, FusionProblem, FusionTransfer
from regal.graph.builder import GraphBuilder
from regal.graph.types import Graph, Op, Role, Tensor
from regal.search.types import Budget
from tests.fusion.problems import random_problem


def residual_net(blocks: int = 3, channels: int = 32) -> Graph:
    """Return conv, batch norm, relu blocks with additions around them, as PyTorch names them."""
    tensors: list[Tensor] = []
    ops: list[Op] = []

    def tensor(shape: tuple[int, ...], role: Role) -> int:
        size = 4
        for axis in shape:
            size *= axis
        index = len(tensors)
        tensors.append(
            Tensor(
                name=f"t{index}", shape=shape, dtype="float32", bytes=size, role=role, storage=index
            )
        )
        return index

    def op(kind: str, inputs: list[int], shape: tuple[int, ...], role: Role) -> int:
        out = tensor(shape, role)
        name = f"{len(ops)}:{kind}"
        ops.append(Op(name=name, kind=kind, inputs=tuple(inputs), outputs=(out,)))
        return out

    image = (1, channels, 28, 28)
    x = first = tensor((1, channels, 28, 28), Role.INPUT)
    for _ in range(blocks):
        weight = tensor((channels, channels, 3, 3), Role.PARAMETER)
        y = op("aten.convolution.default", [x, weight], image, Role.ACTIVATION)
        y = op("aten.relu.default", [y], image, Role.ACTIVATION)
        x = op("aten.add.Tensor", [y, x], image, Role.ACTIVATION)
    x = op("aten.sigmoid.default", [x], image, Role.OUTPUT)
    return Graph(
        name="residual",
        framework="torch",
        ops=tuple(ops),
        tensors=tuple(tensors),
        inputs=(first,),
        outputs=(x,),
    )


def residual_problem(devices: str = "cpu") -> FusionProblem:
    return fusion_problem(residual_net(), system_named(devices))


def test_a_residual_net_is_laid_out_and_fused_behind_its_convolutions() -> None:
    outcome = plan_fusion(residual_problem(), "time", Budget(evaluations=500))
    assert (0, 1, 2) in outcome.plan.groups
    assert [outcome.plan.layouts[conv] for conv in (0, 3, 6)] == [1, 1, 1]
    # The input and the output are contiguous for the caller: two copies.
    assert sum(kernel.is_copy for kernel in outcome.plan.kernels) == 2
    assert outcome.figures.time_bound_ns <= outcome.figures.time_ns < outcome.before.time_ns


@pytest.mark.parametrize("layouts", [(1, -1), (-1, 1)])
def test_an_output_that_is_returned_twice_has_the_layout_that_is_asked_for(
    layouts: tuple[int, int],
) -> None:
    problem = residual_problem()
    graph = replace(problem.graph, outputs=problem.graph.outputs * 2)
    twice = replace(problem, graph=graph, output_layouts=layouts)
    outcome = plan_fusion(twice, "time", Budget(evaluations=50), method="heuristic")
    assert sum(kernel.is_copy for kernel in unfused_plan(twice).kernels) == 1
    assert outcome.figures.time_ns < outcome.before.time_ns
    both = replace(twice, output_layouts=(1, 0))
    with pytest.raises(ModelError, match="is returned in both layouts; ask for one"):
        plan_fusion(both, "time", Budget(evaluations=50))


@pytest.mark.parametrize("objective", ["time", "memory", "balanced"])
@pytest.mark.parametrize("method", sorted(METHODS))
def test_no_method_is_worse_than_no_fusion(method: str, objective: str) -> None:
    rng = Random(7)
    for _ in range(4):
        problem = random_problem(rng, 12)
        outcome = plan_fusion(problem, objective, Budget(evaluations=300), method=method)
        assert outcome.evaluations <= 300 + 2
        if method == "heuristic" and objective != "time":
            continue  # it saves time alone
        before = check_fusion(problem, unfused_plan(problem))
        assert outcome.value <= outcome.objective.value(before.time_ns, before.peak)


def test_the_same_seed_gives_the_same_plan_for_any_number_of_threads() -> None:
    problem = random_problem(Random(5), 30)
    budget = Budget(evaluations=1000)
    one = plan_fusion(problem, "balanced", budget, seed=3)
    many = plan_fusion(problem, "balanced", budget, seed=3, threads=4)
    assert one.plan == many.plan
    assert one.evaluations == many.evaluations


def test_a_capacity_comes_before_the_objective() -> None:
    problem = residual_problem()
    least = plan_fusion(problem, "memory", Budget(evaluations=300)).figures.peak
    outcome = plan_fusion(problem, "time", Budget(evaluations=300), capacity=least)
    assert outcome.figures.overflow_bytes == 0


def test_wrong_use_is_named() -> None:
    with pytest.raises(UsageError, match="unknown method 'best'; known: joint"):
        plan_fusion(residual_problem(), method="best")
    with pytest.raises(UsageError, match="has 2 devices; plan_fusion takes one"):
        plan_fusion(residual_problem("cpu:2"))
    with pytest.raises(UsageError, match="the problem has 1 devices"):
        plan_fusion_on_devices(residual_problem(), system_named("cpu:2"))


@pytest.mark.parametrize("objective", ["time", "memory", "balanced"])
def test_plans_on_two_devices_pass_the_checker_of_schedules(objective: str) -> None:
    system = system_named("cpu:2")
    values = {}
    for method in DEVICE_METHODS:
        outcome = plan_fusion_on_devices(
            residual_problem("cpu:2"), system, objective, Budget(evaluations=200), method=method
        )
        values[method] = outcome.value
        assert len(outcome.plan.kernels) == len(outcome.kernels.graph.ops)
    assert min(values.values()) == values["joint"]


def test_random_plans_on_two_devices_equal_their_graphs_of_kernels() -> None:
    rng, system = Random(11), system_named("gpu-pcie-2")
    for _ in range(25):
        one = random_problem(rng, 10)
        count = len(one.graph.tensors)
        problem = replace(
            one,
            n_devices=2,
            alone_ns=tuple(row * 2 for row in one.alone_ns),
            work_ns=tuple(row * 2 for row in one.work_ns),
            launch_ns=one.launch_ns * 2,
            read_ns=tuple(one.read_ns[t] * 2 for t in range(count)),
            write_ns=tuple(one.write_ns[t] * 2 for t in range(count)),
            convert_ns=tuple(one.convert_ns[t] * 2 for t in range(count)),
        )
        outcome = plan_fusion_on_devices(problem, system, "balanced", Budget(evaluations=60))
        assert outcome.schedule.figures.time_ns > 0


def looped_problem() -> FusionProblem:
    """Return x -> relu -> loop -> relu on two devices; the loop's body holds 4,096 bytes."""
    body = GraphBuilder("body")
    (wide,) = body.op("Relu", [body.input("i", 64)], [4096])
    (narrow,) = body.op("Relu", [wide], [64])
    inside = body.build(outputs=[narrow])
    g = GraphBuilder("looped")
    (made,) = g.op("Relu", [g.input("x", 64)], [64])
    (turned,) = g.op("Loop", [made], [64], subgraphs=[inside])
    (last,) = g.op("Relu", [turned], [64])
    return fusion_problem(g.build(outputs=[last]), system_named("cpu:2"))


@pytest.mark.parametrize("method", DEVICE_METHODS)
def test_bodies_of_ops_are_planned_on_several_devices(method: str) -> None:
    outcome = plan_fusion_on_devices(
        looped_problem(), system_named("cpu:2"), "memory", Budget(evaluations=60), method=method
    )
    assert [len(bodies) for bodies in outcome.schedule.bodies.values()] == [1]
    assert outcome.schedule.figures.peak == outcome.before_peak_bytes >= 4096


def saved_plan() -> tuple[FusionProblem, FusionPlan, dict[str, Any]]:
    problem = residual_problem()
    outcome = plan_fusion(problem, "time", Budget(evaluations=50), method="heuristic")
    text = fusion_plan_to_json(
        problem.graph,
        outcome.plan,
        method=outcome.method,
        seed=outcome.seed,
        evaluations=outcome.evaluations,
        time_ns=outcome.figures.time_ns,
        peak_bytes=outcome.figures.peak_bytes,
    )
    return problem, outcome.plan, json.loads(text)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"ops": ["8:nope"]}, "plan names op '8:nope', which the model does not have"),
        ({"ops": []}, "plan has a kernel without ops that copies nothing"),
        ({"device": "gpu9"}, "plan holds 'gpu9', expected one of cpu0"),
        ({"layout": "nhwc"}, "plan holds 'nhwc', expected one of contiguous, channels_last"),
    ],
)
def test_a_kernel_of_a_plan_file_names_what_exists(row: dict[str, Any], message: str) -> None:
    problem, plan, document = saved_plan()
    number = next(k for k, kernel in enumerate(plan.kernels) if kernel.ops)
    document["kernels"][number] |= row
    with pytest.raises(PlanError, match=f"^{re.escape(message)}$"):
        fusion_plan_from_json(json.dumps(document).encode(), problem.graph)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "'p' is not a JSON file: "),
        (b"[]", "'p' has schema None; a plan file has 'regal.fusion-plan/1'"),
        (b'{"schema": "regal.plan/1"}', "'p' has schema 'regal.plan/1'; a plan file has"),
    ],
)
def test_a_file_that_is_no_fusion_plan_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(PlanError, match=f"^{re.escape(message)}"):
        fusion_plan_from_json(data, residual_net(), "p")


def test_a_plan_with_transfers_is_not_judged_on_one_device() -> None:
    problem, plan, _ = saved_plan()
    sent = FusionTransfer(tensor=0, layout=0, source=0, target=1)
    with pytest.raises(PlanError, match="sends tensor 0 to another device; it is judged on one"):
        check_fusion(problem, replace(plan, transfers=(sent,)))


def test_a_plan_file_says_what_it_was_told() -> None:
    problem = residual_problem()
    outcome = plan_fusion(problem, "time", Budget(evaluations=200))
    text = fusion_plan_to_json(
        problem.graph,
        outcome.plan,
        method=outcome.method,
        seed=outcome.seed,
        evaluations=outcome.evaluations,
        time_ns=outcome.figures.time_ns,
        peak_bytes=outcome.figures.peak_bytes,
    )
    assert fusion_plan_from_json(text.encode(), problem.graph) == outcome.plan
    other = residual_problem().graph
    bent = text.replace('"channels_last"', '"contiguous"', 1)
    with pytest.raises(PlanError, match="'layouts' disagrees with 'kernels'"):
        fusion_plan_from_json(bent.encode(), other)
    with pytest.raises(PlanError, match="another graph"):
        fusion_plan_from_json(text.encode(), residual_net(blocks=2))
