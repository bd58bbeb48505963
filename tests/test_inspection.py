from dataclasses import replace

import pytest

from regal.cli.main import main
from regal.graph.builder import GraphBuilder
from regal.graph.types import LoadedModel
from regal.inspection import inspect_graph
from regal.pipeline import plan_before
from tests.corpus import corpus_file
from tests.graphs import random_graph
from tests.search.test_planner import with_wide_body


@pytest.mark.parametrize("by_runtime", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_the_live_tensors_and_the_workspace_add_up_to_the_peak(
    seed: int, *, by_runtime: bool
) -> None:
    graph = replace(random_graph(seed, 8), in_place_by_runtime=by_runtime)
    model = LoadedModel(framework="graph", entries=(graph,), source=None)
    plan = plan_before(model).plans[0]
    found = inspect_graph(graph, plan)
    live = sum(tensor.bytes for tensor in found.live_at_peak)
    assert live + found.workspace_at_peak == plan.peak_bytes == max(found.bytes_at_step)


def test_a_pair_that_the_runtime_joins_is_one_live_tensor() -> None:
    g = GraphBuilder("relu")
    y = g.op("Relu", [g.input("x", 8)], [8], in_place=[(0, 0)], name="relu")
    graph = g.build(outputs=y, in_place_by_runtime=True)
    plan = plan_before(LoadedModel(framework="graph", entries=(graph,), source=None)).plans[0]
    found = inspect_graph(graph, plan)
    assert [(tensor.name, tensor.bytes) for tensor in found.live_at_peak] == [("relu.0", 8)]


def test_a_body_in_a_bad_order_is_not_called_optimal() -> None:
    graph = with_wide_body()
    plan = plan_before(LoadedModel(framework="graph", entries=(graph,), source=None)).plans[0]
    found = inspect_graph(graph, plan)
    assert plan.peak_bytes == 224
    assert found.peak_bound <= 132
    assert "not ruled out" in found.advice[0]


def test_the_work_is_that_of_the_ops_in_any_order() -> None:
    g = GraphBuilder("two")
    y = g.op("pointwise", [g.input("x", 8)], [4], name="a")
    graph = g.build(outputs=g.op("magic", y, [2], name="b"))
    plan = plan_before(LoadedModel(framework="graph", entries=(graph,), source=None)).plans[0]
    found = inspect_graph(graph, plan)
    assert (found.moved_bytes, found.uncounted_ops) == (8 + 4 + 4 + 2, 2)


@pytest.mark.corpus
def test_every_task_graph_of_the_corpus_is_inspected_or_refused_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = corpus_file("sched/piper_gnmt.json").parent
    refused = []
    for path in sorted(folder.iterdir()):
        code = main(["inspect", str(path)])
        out, err = capsys.readouterr()
        assert out.count("work  ") == out.count("model  ")
        assert (code, bool(out)) in ((0, True), (2, False)), path.name
        if code == 2:
            assert err.startswith("regal: error: ")
            assert err.count("\n") == 1
            refused.append(path.name)
    experts = [name for name in refused if "expert" in name]
    assert sorted(refused) == sorted([*experts, *(path.name for path in folder.glob("*.csv"))])
    assert len(experts) == 2
