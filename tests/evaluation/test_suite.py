"""Suites: what ships can be read, what is wrong is one line, what is held out is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regal.data.entries import load_index
from regal.errors import UsageError
from regal.evaluation.cells import cells_of, problems_of
from regal.evaluation.graphs import HELD_OUT, sources_of
from regal.evaluation.suite import TUNING, GraphsRule
from regal.evaluation.suite_file import suite_from_toml, suite_named, suite_names
from tests.evaluation.made import suite

GOOD = """
name = "mine"
about = "Mine."
objectives = ["time"]
systems = ["2"]
[[references]]
method = "brkga"
[[methods]]
name = "regal"
[[methods]]
name = "brkga"
[[budgets]]
evaluations = 100
[[graphs]]
splits = ["train"]
"""


@pytest.mark.parametrize("name", suite_names())
def test_a_suite_that_ships_can_be_read(name: str) -> None:
    found = suite_named(name)
    assert found.name == name
    assert found.about


def test_the_shipped_suites_cover_what_the_documents_promise() -> None:
    assert set(suite_names()) >= {"sanity", "smoke", "devices", "baselines"}
    assert {method.name for method in suite_named("devices").methods} >= {
        "regal", "brkga", "brkga-tuned",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("splits", "split", "unknown key 'split'"),
        ('"train"', '"trian"', "unknown split 'trian'"),
        ('"time"', '"speed"', "unknown objective 'speed'"),
        ('name = "regal"', 'name = "reagl"', "unknown method 'reagl'"),
        ('name = "regal"', 'name = "regal"\npolicy = "x"', "policy 'x' is neither a file nor"),
        ('method = "brkga"', 'method = "heft"\nx = 1', "unknown key 'x'"),
        ('method = "brkga"', 'method = "heft"', "the reference 'heft' is not run"),
        ('method = "brkga"', 'method = "brkga"\nevaluations = 99', "needs 'brkga' with 99"),
        ("evaluations = 100", "evaluations = 100\nseconds = 2", "give 'evaluations', or"),
        ("evaluations = 100", "evaluations = 0", "expected a whole number from 1"),
        ('name = "brkga"', 'name = "brkga"\nlabel = "regal"', "two methods are called 'regal'"),
        ('"mine"', '"../mine"', "it names files: a-z"),
        ('systems = ["2"]', "", "'systems' is missing"),
        ('systems = ["2"]', 'systems = ["2", "2"]', "the system '2' is there twice"),
        ('["time"]', '["time", "time"]', "the objective 'time' is there twice"),
        ("[[graphs]]", "[[budgets]]\nevaluations = 100\n[[graphs]]", "two budgets are '100 ev"),
        ("[[graphs]]", "[[budgets]]\nseconds = -1\n[[graphs]]", "not a number of seconds"),
        ('splits = ["train"]', "", "give one of 'splits'"),
        ('splits = ["train"]', 'planted = "time"', "need lists of 'ops'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(old: str, new: str, message: str) -> None:
    assert suite_from_toml(GOOD, "s.toml").name == "mine"
    with pytest.raises(UsageError, match=r"suite 's\.toml'|unknown|neither") as error:
        suite_from_toml(GOOD.replace(old, new, 1), "s.toml")
    assert message in str(error.value)


def test_an_unknown_suite_names_those_that_ship() -> None:
    with pytest.raises(UsageError, match=r"unknown suite 'nothing'; .*sanity"):
        suite_named("nothing")


@pytest.mark.parametrize("split", HELD_OUT)
def test_a_suite_for_tuning_may_not_look_at_what_is_held_out(split: str) -> None:
    looks = suite("brkga", purpose=TUNING, graphs=(GraphsRule(splits=("train", split)),))
    with pytest.raises(UsageError, match=f"is in the split '{split}'; tune on train and valid"):
        sources_of(looks)
    assert sources_of(replace(looks, purpose="report"))


def test_rules_choose_graphs_by_split_family_framework_and_size() -> None:
    rule = GraphsRule(splits=("valid",), frameworks=("torch",), fewest_ops=100, most_ops=400)
    sources = sources_of(suite("brkga", graphs=(rule,)))
    meant = {
        entry.key
        for entry in load_index()
        if entry.split == "valid" and entry.framework == "torch" and 100 <= entry.ops <= 400
    }
    assert {source.key for source in sources} == meant
    one = sources_of(suite("brkga", graphs=(replace(rule, most_per_family=1),)))
    assert len(one) == len({source.family for source in sources})


@pytest.mark.parametrize(
    "change",
    [
        {"keys": ("jax/flax/wavenet-1x6/inference-b1", "nosuch")},
        {"families": ("wavenet", "nosuch")},
        {"frameworks": ("jax", "nosuch")},
        {"modes": ("joint", "nosuch")},
    ],
)
def test_a_name_that_no_graph_has_is_an_error_beside_others_that_are_there(
    change: dict[str, Any],
) -> None:
    rule = GraphsRule(**{"splits": ("test",), **change})
    with pytest.raises(UsageError, match=r"graphs 0: no graph of the data set has the .* 'nosuch'"):
        sources_of(suite("brkga", graphs=(rule,)))


def test_a_file_that_is_missing_is_named() -> None:
    asks = suite("brkga", graphs=(GraphsRule(files=("none.onnx",)),))
    with pytest.raises(UsageError, match=r"graph file 'none\.onnx' does not exist"):
        sources_of(asks, files=(Path(__file__).parent,))


def test_each_run_has_an_id_of_its_own_that_the_program_does_not_change() -> None:
    runs = suite("regal", "brkga", objectives=("time",), seeds=(0, 1))
    cells = [c for p in problems_of(runs, sources_of(runs)) for c in cells_of(runs, p)]
    assert len({cell.id for cell in cells}) == len(cells) == 4
    again = [c for p in problems_of(runs, sources_of(runs)) for c in cells_of(runs, p)]
    assert [cell.id for cell in cells] == [cell.id for cell in again]
    other = replace(runs, threads=2)
    assert not {cell.id for cell in cells} & {
        c.id for p in problems_of(other, sources_of(other)) for c in cells_of(other, p)
    }
