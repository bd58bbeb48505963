"""Policies of fusion and layout keys: what they see, what they propose, what the search does."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from regal import _native
from regal.devices.presets import system_named
from regal.errors import UsageError
from regal.fusion.analytic import fusion_problem
from regal.fusion.devices import plan_fusion_on_devices
from regal.fusion.numbers import fusion_numbers
from regal.fusion.policy import (
    fusion_inputs,
    fusion_node_names,
    fusion_prior_logits,
    keyed_ops,
    network_action,
    proposal_of_action,
    require_fusion_policy,
)
from regal.fusion.search import plan_fusion
from regal.policy.bins import MEAN_BINS, expected
from regal.policy.choice import SHIPPED
from regal.policy.model import FORMAT, FUSION, METADATA, PolicyNetwork, feature_names
from regal.search.types import Budget
from tests.fusion.problems import TOO_WIDE, WIDE, quads_optimum, quads_problem
from tests.fusion.test_search import residual_net
from tests.policy.problems import TIME

GOLDEN = [306, 309, 310, 301]  # ns, of the search as it was before there were policies
WIDTHS = (WIDE, TOO_WIDE, WIDE, WIDE, TOO_WIDE, WIDE)
NAMES = fusion_node_names()
LOGITS = len(fusion_prior_logits())


def column(values: np.ndarray, name: str) -> list[float]:
    return [float(value) for value in values[:, NAMES.index(name)]]


def policy_file(path: Path, weights: np.ndarray, kind: str = FUSION) -> Path:
    """Write a network whose logits are the prior, and `weights` times the features of fusion."""
    tables = {"weights": weights, "prior": fusion_prior_logits()}
    shape: list[str | int | None] = ["ops", LOGITS]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["nodes", "weights"], ["product"]),
            helper.make_node("Add", ["product", "prior"], ["fusion"]),
            helper.make_node("Identity", ["fusion"], ["layout"]),
        ],
        "line",
        [helper.make_tensor_value_info("nodes", TensorProto.FLOAT, ["ops", len(NAMES)])],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("fusion", "layout")],
        [numpy_helper.from_array(table, name) for name, table in tables.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    about = {"format": FORMAT, "kind": kind, "features": feature_names(kind)}
    helper.set_model_props(model, {METADATA: json.dumps(about)})
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path


def inner_pairs_off() -> np.ndarray:
    """Return weights that keep ops apart that greedy fusion merges, where the outer pairs pay.

    Keys of what greedy fusion leaves alone stay about neutral.
    """
    weights = np.zeros((len(NAMES), LOGITS), dtype=np.float32)
    weights[NAMES.index("is_merged"), 0] = 60.0
    weights[NAMES.index("has_fusion_key"), MEAN_BINS // 2] = 20.0
    weights[NAMES.index("has_fusion_key"), MEAN_BINS] = 60.0
    return weights


def test_ops_with_keys_are_those_that_have_genes() -> None:
    for problem in (
        quads_problem(WIDTHS),
        fusion_problem(residual_net(), system_named("cpu")),
    ):
        native = fusion_numbers(problem)
        genes = _native.fusion_genes(native)
        fusion, layout = keyed_ops(fusion_inputs(problem, native, TIME))
        assert len(fusion) == genes.layout
        assert len(layout) == genes.priority - genes.layout
        assert sorted({producer for producer, _ in problem.pairs}) == fusion.tolist()


def test_features_say_what_neutral_keys_do_and_what_else_would_cost() -> None:
    problem = quads_problem((WIDE, TOO_WIDE))
    nodes = fusion_inputs(problem, fusion_numbers(problem), TIME).nodes
    assert nodes.shape == (8, len(NAMES))
    assert np.isfinite(nodes).all()
    # Chains a b c d: only b and c are merged, and save 13 of their 20 ns.
    assert column(nodes, "is_merged") == [0, 1, 0, 0, 0, 1, 0, 0]
    assert column(nodes, "has_fusion_key") == [1, 1, 1, 0, 1, 1, 1, 0]
    saves = pytest.approx([0, 0.65, 0.65, 0, 0, 0.65, 0.65, 0])
    assert column(nodes, "kernel_saves") == saves
    assert column(nodes, "pair_saves") == pytest.approx([0.4, 0.65, 0.4, 0, 0.3, 0.65, 0.3, 0])
    assert column(nodes, "escapes") == [1, 0, 1, 1, 1, 0, 1, 1]


def test_anchors_and_layouts_are_features() -> None:
    problem = fusion_problem(residual_net(), system_named("cpu"))
    nodes = fusion_inputs(problem, fusion_numbers(problem), TIME).nodes
    anchors = [float(op in problem.anchors) for op in range(len(problem.graph.ops))]
    assert column(nodes, "is_anchor") == anchors == column(nodes, "has_layout_key")
    gains = np.array(column(nodes, "layout_gain"))
    (contiguous, last), *_ = problem.alone_ns[min(problem.anchors)]
    wanted = (contiguous - last) / (contiguous + last)
    assert gains[min(problem.anchors)] == pytest.approx(wanted)


def test_a_policy_that_has_learned_nothing_is_a_search_without_one(tmp_path: Path) -> None:
    mean, spread, bias = expected(fusion_prior_logits()[None])
    assert mean[0] == pytest.approx(0.5, abs=1e-6)
    assert spread[0] == pytest.approx(1 / 3, abs=1e-4)
    assert bias[0] == pytest.approx(0.7, abs=1e-6)
    nothing = policy_file(tmp_path / "zero.onnx", np.zeros((len(NAMES), LOGITS), np.float32))
    problem = fusion_problem(residual_net(), system_named("cpu"))
    for objective in ("time", "memory", "balanced"):
        plans = [
            plan_fusion(problem, objective, Budget(evaluations=300), policy=policy).plan
            for policy in ("none", "untrained", str(nothing))
        ]
        assert plans[0] == plans[1] == plans[2]


def test_without_a_policy_the_search_finds_what_it_always_has_found() -> None:
    problem = quads_problem(WIDTHS * 2)
    budget = Budget(evaluations=120)
    times = [plan_fusion(problem, "time", budget, seed=s).figures.time_ns for s in range(4)]
    assert times == GOLDEN
    assert times == [
        plan_fusion(problem, "time", budget, seed=s, policy="none").figures.time_ns
        for s in range(4)
    ]


def test_keys_that_a_policy_proposes_are_the_ones_that_are_tried(tmp_path: Path) -> None:
    problem = quads_problem((WIDE,) * 8)
    budget = Budget(evaluations=20)
    alone = plan_fusion(problem, "time", budget)
    assert alone.figures.time_ns > quads_optimum((WIDE,) * 8)
    path = policy_file(tmp_path / "off.onnx", inner_pairs_off())
    guided = [plan_fusion(problem, "time", budget, policy=str(path), threads=t) for t in (1, 3)]
    assert guided[0].figures.time_ns == quads_optimum((WIDE,) * 8)
    assert guided[0].plan == guided[1].plan


def test_the_action_of_a_network_has_a_row_per_gene(tmp_path: Path) -> None:
    problem = quads_problem((WIDE, TOO_WIDE))
    path = policy_file(tmp_path / "off.onnx", inner_pairs_off())
    inputs = fusion_inputs(problem, fusion_numbers(problem), TIME)
    action = network_action(PolicyNetwork(path.read_bytes(), "off"), inputs)
    low, usual = 0.5 / MEAN_BINS, (MEAN_BINS // 2 + 0.5) / MEAN_BINS
    wanted = [usual, low, usual, usual, low, usual]  # a, b and c of both quads
    assert action[:, 0] == pytest.approx(wanted, abs=1e-3)
    proposal = proposal_of_action(action)
    assert proposal is not None
    share = proposal.alpha / (proposal.alpha + proposal.beta)
    assert share == pytest.approx(wanted, abs=1e-3)


def test_a_policy_guides_the_search_on_several_devices_too(tmp_path: Path) -> None:
    system = system_named("gpu-pcie-2")
    problem = fusion_problem(residual_net(), system)
    path = policy_file(tmp_path / "off.onnx", inner_pairs_off())
    budget = Budget(evaluations=200)
    plans = [
        plan_fusion_on_devices(problem, system, "time", budget, policy=str(path), threads=threads)
        for threads in (1, 2)
    ]
    assert plans[0].plan == plans[1].plan
    none = plan_fusion_on_devices(problem, system, "time", budget, policy="none")
    assert none.plan == plan_fusion_on_devices(problem, system, "time", budget).plan


def test_a_wrong_policy_is_told_in_one_line(tmp_path: Path) -> None:
    problem = quads_problem((WIDE,))
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no network")
    for policy, message in (
        ("nowhere.onnx", "is neither a file nor one of none, untrained, default"),
        (str(broken), "is not an ONNX file that runs"),
        (str(SHIPPED / "paper.onnx"), "is of kind 'paper'; this method needs 'fusion'"),
    ):
        with pytest.raises(UsageError, match=message) as error:
            plan_fusion(problem, "time", Budget(evaluations=10), policy=policy)
        assert "\n" not in str(error.value)


def test_a_proposal_of_the_wrong_size_is_refused() -> None:
    native = fusion_numbers(quads_problem((WIDE,)))
    genes = _native.fusion_genes(native)
    base = np.full(genes.size, 1 << 31, dtype=np.uint32)
    for alpha, beta in ((1, 1), (3, 0)):
        with pytest.raises(ValueError, match="a proposal has"):
            _native.fusion_brkga(
                problem=native,
                per_ns=1.0,
                per_byte=0.0,
                capacity=2**63 - 1,
                population=4,
                elites=1,
                mutants=1,
                elite_bias=0.7,
                seed=0,
                threads=1,
                evaluations=5,
                seconds=1.0,
                stop_value=0.0,
                searched=np.arange(3),
                base=base,
                given=base[None],
                cancel=_native.Cancel(),
                alpha=np.ones(alpha),
                beta=np.ones(beta),
                gene_bias=np.empty(0),
            )


def test_no_policy_of_fusion_ships() -> None:
    with pytest.raises(UsageError, match="none of fusion ships"):
        require_fusion_policy("default")
