"""The set that ships: what the data card promises holds for the files beside it."""

from collections import Counter
from pathlib import Path

import pytest

from regal.data import load_graph, load_index
from regal.data.build import FEWEST_OPS, MOST_OPS
from regal.data.card import card_text
from regal.data.entries import ARCHIVE, SHIPPED, Entry, load_about, load_left_out
from regal.data.items import MODES, SYNTHETIC
from regal.data.split import SIDES, TRAIN
from regal.data.structure import structure_hash
from regal.data.summary import architecture_of
from regal.data.synthetic import FAMILIES
from regal.graph.check import require_valid_graph
from regal.graph.file import model_from_json, model_to_json
from regal.graph.types import LoadedModel

CARD = Path(__file__).parents[2] / "docs" / "data_card.md"
MOST_BYTES = 30_000_000
STEP = 25  # of the graphs that are loaded, one in so many


@pytest.fixture(scope="module")
def real() -> list[Entry]:
    return [entry for entry in load_index() if entry.source != SYNTHETIC]


def test_there_are_as_many_graphs_as_promised(real: list[Entry]) -> None:
    assert len({entry.structure for entry in real}) == len(real) >= 1000
    assert len({architecture_of(entry) for entry in real}) >= 300
    assert len({entry.family for entry in real}) >= 40
    assert len({entry.framework for entry in real}) >= 4
    assert {entry.mode for entry in real} == set(MODES)
    assert all(FEWEST_OPS <= entry.ops <= MOST_OPS for entry in load_index())
    assert (SHIPPED / ARCHIVE).stat().st_size <= MOST_BYTES


def test_every_side_has_enough_to_train_choose_and_judge(real: list[Entry]) -> None:
    sides = Counter(entry.split for entry in real)
    assert sides[TRAIN] >= len(real) / 3
    assert all(sides[side] >= 50 for side in SIDES)
    assert Counter(entry.mode for entry in real if entry.framework == "tensorflow")["training"] > 20


def test_all_seven_synthetic_families_are_there() -> None:
    assert {e.family for e in load_index() if e.source == SYNTHETIC} == set(FAMILIES)


def test_graphs_are_what_the_index_says_and_survive_as_graph_files() -> None:
    for entry in load_index()[::STEP]:
        graph = require_valid_graph(load_graph(entry))
        assert (graph.name, graph.framework) == (entry.key, entry.framework)
        assert (len(graph.ops), len(graph.tensors)) == (entry.ops, entry.tensors)
        assert structure_hash(graph) == entry.structure
        text = model_to_json(LoadedModel(framework="graph", entries=(graph,), source=None))
        assert model_from_json(text.encode()).graph == graph


def test_the_data_card_is_that_of_the_set() -> None:
    text = card_text(load_index(SHIPPED), load_left_out(SHIPPED), load_about(SHIPPED))
    assert CARD.read_text() == text, "run python tools/data_card.py"
