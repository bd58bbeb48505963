"""What suites of studies may ask for: weights, seeds, drawn systems, policies, variants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from regal.data.systems import ROOMY, random_system
from regal.errors import UsageError
from regal.evaluation.cells import cells_of, problems_of
from regal.evaluation.graphs import loaded, sources_of
from regal.evaluation.methods import MethodEntry, found_in
from regal.evaluation.page import suite_and_rows
from regal.evaluation.prepare import SEED_DIGITS, prepared
from regal.evaluation.rows import all_rows, pack, packed, row_to_json
from regal.evaluation.run import Folders, run_suite
from regal.evaluation.suite import BudgetRule, GraphsRule, weights_of
from regal.evaluation.suite_file import suite_from_toml
from regal.evaluation.variants import VARIANTS
from regal.plan.schedule_problem import UNLIMITED
from regal.policy.choice import SHIPPED
from regal.search.devices.objectives import Weights, objective_of
from regal.search.types import Budget
from tests.evaluation.made import row, suite

if TYPE_CHECKING:
    from pathlib import Path

KEY = "torch/transformers/patchtst/inference-b1"
GRAPH = GraphsRule(keys=(KEY,))
STUDY = """
name = "mine"
about = "Mine."
objectives = ["time", "balanced 3:1"]
systems = ["2", "drawn"]
seeds = 4
groups = ["ops"]
within = [1, 5]
[primary]
method = "no-policy"
against = "brkga"
objective = "time"
budget = "100 evaluations"
[[secondary]]
method = "no-policy"
against = "brkga"
[[references]]
method = "brkga"
methods = ["no-policy"]
[[methods]]
name = "regal"
label = "no-policy"
[[methods]]
name = "brkga"
[[budgets]]
evaluations = 100
seeds = 2
[[graphs]]
splits = ["train"]
"""


def test_a_study_is_read() -> None:
    found = suite_from_toml(STUDY, "mine")
    assert found.primary is not None
    assert (found.primary.system, found.primary.budget) == ("all", "100 evaluations")
    assert [pair.against for pair in found.secondary] == ["brkga"]
    assert (found.groups, found.within, found.per_family) == (("ops",), (1.0, 5.0), True)
    assert (found.budgets[0].seeds, found.references[0].methods) == (2, ("no-policy",))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('budget = "100', 'budget = "300', "the budget '300 evaluations' of the primary compar"),
        ('objective = "time"', 'objective = "memory"', "the objective 'memory' of the primary"),
        ('against = "brkga"\nobj', 'against = "heft"\nobj', "the primary comparison names the m"),
        ('methods = ["no-policy"]', 'methods = ["x"]', "a reference names the method 'x', which"),
        ('groups = ["ops"]', 'groups = ["size"]', "unknown group 'size'; known: ops, devices"),
        ("balanced 3:1", "balanced 3:0", "objective 'balanced 3:0': give two whole numbers"),
        ("balanced 3:1", "balance", "unknown objective 'balance'"),
        ('splits = ["train"]', 'synthetic = "layered"', "synthetic graphs need a list of 'ops'"),
        ('splits = ["train"]', 'synthetic = "x"\nops = [9]', "unknown synthetic 'x'; known: er"),
    ],
)
def test_what_is_wrong_with_a_study_is_said_in_one_line(old: str, new: str, message: str) -> None:
    assert old in STUDY
    with pytest.raises(UsageError) as error:
        suite_from_toml(STUDY.replace(old, new, 1), "mine.toml")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_time_of_a_run_is_not_asked_for_on_seeds_that_it_does_not_have() -> None:
    timed = '[[budgets]]\nseconds_of = "brkga"\nevaluations = 100\nseeds = 3\n[[graphs]]'
    with pytest.raises(UsageError, match="which is not run for 3 seeds; add the budget"):
        suite_from_toml(STUDY.replace("[[graphs]]", timed), "mine")
    suite_from_toml(STUDY.replace("[[graphs]]", timed.replace("= 3", "= 2")), "mine")


def test_an_objective_may_bring_its_weights() -> None:
    assert weights_of("balanced 3:1", Weights()) == ("balanced", Weights(time=3, memory=1))
    assert weights_of("balanced", Weights(time=2)) == ("balanced", Weights(time=2))
    assert weights_of("time", Weights())[0] == "time"


def test_a_budget_may_be_for_the_first_seeds_alone() -> None:
    rules = (BudgetRule(evaluations=50), BudgetRule(evaluations=90, seeds=1))
    runs = suite("brkga", seeds=(0, 1, 2), budgets=rules)
    (problem,) = problems_of(runs, sources_of(runs))
    cells = [(cell.seed, cell.budget.evaluations) for cell in cells_of(runs, problem)]
    assert cells == [(0, 50), (0, 90), (1, 50), (2, 50)]


def test_the_drawn_system_is_that_of_the_graph_s_hash() -> None:
    runs = suite("brkga", graphs=(GRAPH,), systems=("drawn",))
    (problem,) = problems_of(runs, sources_of(runs))
    graph = loaded(problem.source).model.graph
    meant = random_system(int(problem.source.hash[:SEED_DIGITS], 16), graph, ROOMY)
    found = prepared(problem, is_tuning=False)
    assert found.n_devices == len(meant.devices)
    limits = [device.memory_bytes for device in meant.devices]
    is_limited = bool((found.numbers.capacity < UNLIMITED).any())
    assert is_limited == any(limit is not None for limit in limits)


def test_random_graphs_have_about_the_size_that_is_asked_for_and_the_side_of_their_family() -> None:
    rule = GraphsRule(synthetic="series-parallel", ops=(100, 700), count=2)
    sources = sources_of(suite("brkga", graphs=(rule,)))
    assert {source.split for source in sources} == {"test"}
    sizes = [len(loaded(source).model.graph.ops) for source in sources]
    assert [round(size / 100) for size in sizes] == [1, 1, 7, 7]
    assert len({source.hash for source in sources}) == 4
    with pytest.raises(UsageError, match="is for tuning"):
        sources_of(suite("brkga", graphs=(rule,), purpose="tuning"))


def test_a_policy_is_taken_from_the_first_folder_that_has_it(tmp_path: Path) -> None:
    entry = MethodEntry(name="regal-paper", label="x", policy="paper.onnx")
    assert found_in(entry, [tmp_path]) == entry
    with pytest.raises(UsageError, match=r"policy 'paper\.onnx' is in no folder of --policies"):
        entry.method()
    found = found_in(entry, [tmp_path, SHIPPED])
    assert found.file == SHIPPED / "paper.onnx"
    assert set(found.options) == {"policy", "sha256"}
    found.method()


def test_another_policy_of_the_same_name_is_another_run(tmp_path: Path) -> None:
    (tmp_path / "p.onnx").write_bytes(b"one")
    entry = MethodEntry(name="regal-paper", label="p", policy="p.onnx")
    runs = replace(suite("brkga"), methods=(found_in(entry, [tmp_path]),))
    (tmp_path / "p.onnx").write_bytes(b"two")
    again = replace(runs, methods=(found_in(entry, [tmp_path]),))
    (problem,) = problems_of(runs, sources_of(runs))
    assert cells_of(runs, problem)[0].id != cells_of(again, problem)[0].id


def test_runs_without_their_policy_fail_and_the_others_do_not(tmp_path: Path) -> None:
    paper = MethodEntry(name="regal-paper", label="p", policy="p.onnx")
    runs = suite("brkga")
    runs = replace(runs, methods=(*runs.methods, paper))
    found = run_suite(runs, tmp_path / "rows.jsonl", Folders(data=SHIPPED))
    assert [one.failure for one in found] == ["", "policy 'p.onnx' is in no folder of --policies"]


@pytest.mark.parametrize("objective", ["time", "memory"])
def test_variants_search_legally_within_their_budget_and_repeat_themselves(objective: str) -> None:
    runs = suite("brkga", graphs=(GRAPH,))
    (problem,) = problems_of(runs, sources_of(runs))
    numbers = prepared(problem, is_tuning=False).numbers
    goal = objective_of(objective, Weights(), before_time_ns=1, before_peak_bytes=1)
    values = {}
    for name, method in VARIANTS.items():
        first, again = (
            method(numbers, goal, Budget(evaluations=700), seed=1, threads=1) for _ in range(2)
        )
        assert 1 <= first.evaluations <= 700, name
        assert first.figures.time == again.figures.time, name
        values[name] = goal.value(first.figures.time, first.figures.most)
    assert len(set(values.values())) > 1 or objective == "memory"


def test_packed_rows_are_read_before_others_and_make_equal_bytes(tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    old, kept, new = row(id="1", value=3.0), row(id="2"), row(id="1", value=2.0)
    path.write_text("".join(map(row_to_json, [old, kept])))
    assert pack(path) == packed(path)
    assert not path.exists()
    first = packed(path).read_bytes()
    assert all_rows(path) == [old, kept]
    path.write_text(row_to_json(new))
    assert all_rows(path) == [new, kept]
    pack(path)
    assert packed(path).read_bytes() != first
    pack(path)
    assert all_rows(path) == [new, kept]


def test_a_run_with_a_packed_row_is_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    runs = suite("brkga")
    first = run_suite(runs, path, Folders(data=SHIPPED))
    pack(path)
    assert run_suite(runs, path, Folders(data=SHIPPED)) == first
    assert not path.exists()


def test_packed_rows_that_are_cut_off_are_one_line_of_error(tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl"
    path.write_text(row_to_json(row()))
    own = pack(path)
    own.write_bytes(own.read_bytes()[:-20])
    with pytest.raises(UsageError, match="cannot be unpacked"):
        all_rows(path)


def test_rows_of_seeds_that_a_budget_no_longer_has_are_not_in_the_tables(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(STUDY)
    asked = {
        "suite": "mine", "budget": "100 evaluations", "options": {"policy": "none"},
        "method": "brkga", "name": "brkga",
    }  # fmt: skip
    found = [row(seed=seed, **asked) for seed in range(4)]
    weighed = row(objective="balanced 3:1", weights={"time": 3.0, "memory": 1.0}, **asked)
    other = row(objective="balanced 3:1", weights={"time": 1.0, "memory": 1.0}, **asked)
    (tmp_path / "mine.jsonl").write_text("".join(map(row_to_json, [*found, weighed, other])))
    assert suite_and_rows(str(tmp_path / "mine.toml"), tmp_path)[1] == [*found[:2], weighed]
