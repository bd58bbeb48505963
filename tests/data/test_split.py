"""No structure, architecture or family on two sides: the rule, and the set that ships."""

from dataclasses import replace

from regal.data.assemble import MOST_SIMILAR
from regal.data.entries import SHIPPED, Entry, load_graph, load_index
from regal.data.items import Item, breadth_first
from regal.data.similarity import Surroundings, near_copies, surroundings_of
from regal.data.split import (
    SIDES,
    TEST_FAMILIES,
    TRAIN,
    TRANSFER,
    VALID,
    VALID_FAMILIES,
    leaks,
    side_of,
)


def row(**changes: str) -> Entry:
    base = Entry(
        key="k", family="resnet", framework="torch", source="timm", architecture="resnet50",
        mode="inference", batch=1, split="train", ops=1, tensors=1, structure="s1", sha256="",
        offset=0, bytes=0,
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def test_a_family_is_on_one_side_and_the_held_out_framework_never_in_training() -> None:
    assert side_of("resnet", "torch") == side_of("resnet", "onnx") == "train"
    assert side_of("resnet", "jax") == "transfer"
    assert side_of("nasnet", "torch") == side_of("nasnet", "jax") == "test"
    assert side_of("gpt", "torch") == "valid"
    assert side_of("gpt", "jax") == "transfer"


def test_no_family_is_held_out_twice() -> None:
    assert not TEST_FAMILIES & VALID_FAMILIES


def test_rows_that_share_nothing_do_not_leak() -> None:
    other = row(split="test", structure="s2", family="nasnet", architecture="nasnet")
    assert leaks([row(), other]) == []


def test_each_leak_is_named() -> None:
    twin = row(split="test", family="nasnet", architecture="nasnet")
    assert leaks([row(), twin]) == ["structure 's1' is on 2 sides: test, train"]
    same = row(split="test", structure="s2", family="nasnet")
    assert leaks([row(), same]) == ["architecture 'torch/timm/resnet50' is on 2 sides: test, train"]
    kin = row(split="valid", structure="s2", architecture="resnet51")
    assert leaks([row(), kin]) == ["family 'resnet' is on 2 sides: train, valid"]
    jax = row(structure="s2", framework="jax", architecture="r", family="new")
    assert leaks([row(), jax]) == ["held-out framework 'jax' is on 2 sides: test, train"]
    stray = row(split="transfer", structure="s2", architecture="r", framework="onnx")
    assert leaks([row(), stray]) == ["framework in transfer 'onnx' is on 2 sides: train, transfer"]


def test_a_family_of_transfer_may_be_known_in_training() -> None:
    jax = row(split="transfer", structure="s2", framework="jax", architecture="r")
    assert leaks([row(), jax]) == []


def test_items_take_turns_by_mode_then_family() -> None:
    def item(family: str, name: str, mode: str) -> Item:
        return Item(framework="torch", source="s", family=family, architecture=name, mode=mode)

    given = [item(f, n, m) for f, n in (("a", "1"), ("a", "2"), ("b", "3")) for m in
             ("training", "inference")]  # fmt: skip
    order = [(i.mode, i.architecture) for i in breadth_first(given)]
    assert order == [
        ("inference", "1"), ("inference", "3"), ("inference", "2"),
        ("training", "1"), ("training", "3"), ("training", "2"),
    ]  # fmt: skip


def test_the_set_that_ships_does_not_leak() -> None:
    entries = load_index(SHIPPED)
    assert leaks(entries) == []
    assert {entry.split for entry in entries} == set(SIDES)
    assert all(entry.split == side_of(entry.family, entry.framework) for entry in entries)
    assert len({entry.structure for entry in entries}) == len(entries)
    known = {entry.family for entry in entries if entry.split in (TRAIN, VALID)}
    assert {entry.family for entry in entries if entry.split == TRANSFER} <= known


def test_no_held_out_graph_that_ships_is_nearly_one_of_training() -> None:
    # The frameworks whose graphs are few enough to compare here.
    sides: dict[bool, list[Surroundings]] = {True: [], False: []}
    for entry in load_index(SHIPPED):
        if entry.framework in ("onnx", "tflite", "tensorflow", "graph") and entry.ops < 1000:
            graph = load_graph(entry, SHIPPED)
            found = surroundings_of(graph, entry.key, (entry.framework, entry.mode))
            sides[entry.split == TRAIN].append(found)
    assert min(map(len, sides.values())) > 50
    assert near_copies(sides[False], sides[True], MOST_SIMILAR) == {}
