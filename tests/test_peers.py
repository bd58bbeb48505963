"""The peers of the benchmark follow their rules, and its checkers find illegal answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.peer_boxes import Boxes, boxes_of_file, overlap
from benchmarks.peer_offsets import (
    PLANNERS,
    Limits,
    Skipped,
    litert_rule,
    minimalloc,
    tflm_rule,
)
from benchmarks.peer_orders import ORDERERS, OrderCase, inductor_bfs, peak_by_definition

from regal import _native
from regal.frontends import load
from regal.plan.problem import order_problem

LIMITS = Limits(seconds=2.0, vela_iterations=500, minimalloc=None)
MODELS = Path(__file__).parents[1] / "examples" / "models"


def boxes(*rows: tuple[int, int, int]) -> Boxes:
    """Return boxes from (first step, last step, bytes)."""
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Boxes(name="test", first=table[:, 0], last=table[:, 1], size=table[:, 2], alignment=1)


def test_max_live_counts_a_buffer_in_its_first_and_last_step() -> None:
    assert boxes((0, 1, 3), (1, 2, 4), (2, 2, 2)).max_live == 7


def test_tflm_places_the_later_of_two_equal_buffers_first() -> None:
    assert tflm_rule(boxes((0, 1, 5), (1, 2, 5)), LIMITS).tolist() == [5, 0]


def test_tflm_takes_the_first_gap_and_litert_the_smallest() -> None:
    # 0: [0, 10) and 2: [14, 24) stay; between and behind them are gaps of 4 and 6 bytes,
    # because 1 and 3 are gone when 4 comes.
    crowd = boxes((0, 4, 9), (0, 1, 8), (0, 4, 7), (0, 1, 6), (0, 4, 5), (3, 4, 6), (3, 4, 4))
    first, smallest = tflm_rule(crowd, LIMITS), litert_rule(crowd, LIMITS)
    assert overlap(crowd, first) is None
    assert overlap(crowd, smallest) is None
    assert first.tolist() != smallest.tolist()


def test_litert_places_buffers_that_live_all_the_time_before_larger_ones() -> None:
    assert litert_rule(boxes((0, 0, 9), (0, 2, 1)), LIMITS).tolist() == [1, 0]


@pytest.mark.parametrize("name", PLANNERS)
def test_every_planner_that_is_there_gives_legal_offsets(name: str) -> None:
    problem = boxes_of_file(MODELS / "wakeword_streaming_int8.tflite")
    try:
        offsets = PLANNERS[name](problem, LIMITS)
    except Skipped as reason:
        pytest.skip(str(reason))
    assert overlap(problem, offsets) is None
    assert (offsets >= 0).all()
    assert int((offsets + problem.size).max()) >= problem.max_live


def test_an_absent_binary_is_a_reason_and_not_a_failure() -> None:
    with pytest.raises(Skipped, match="--minimalloc"):
        minimalloc(boxes((0, 0, 1)), LIMITS)


def test_overlap_names_the_two_boxes_that_share_a_byte() -> None:
    pair = boxes((0, 3, 4), (9, 9, 9), (3, 5, 4))
    assert overlap(pair, np.array([0, 0, 3])) == (0, 2)
    assert overlap(pair, np.array([0, 0, 4])) is None


def test_csv_steps_are_half_open_and_gaps_between_them_closed(tmp_path: Path) -> None:
    path = tmp_path / "boxes.csv"
    path.write_text("id,lower,upper,size\n0,0,100,3\n1,100,250,4\n2,50,101,5\n")
    read = boxes_of_file(path)
    assert read.first.tolist() == [0, 2, 1]
    assert read.last.tolist() == [1, 2, 2]
    assert read.max_live == 9


def test_peak_by_definition_agrees_with_the_kernel_on_a_diamond() -> None:
    # 0 -> 1, 2 -> 3, tensors of 4, 3, 2 and 1 bytes, one scratch of 7 at op 2.
    edges = np.array([[0, 1], [0, 2], [1, 3], [2, 3]])
    touches = np.array([[0, 0], [1, 0], [2, 0], [1, 1], [3, 1], [2, 2], [3, 2], [3, 3]])
    verdict, problem = _native.build_problem(
        edges,
        touches,
        np.array([4, 3, 2, 1]),
        np.array([0, 0, 7, 0]),
        np.zeros(0, dtype=np.int64),
        np.array([3]),
        np.zeros((0, 3), dtype=np.int64),
    )
    assert verdict.fault is _native.ProblemFault.NONE
    for order, peak in (([0, 1, 2, 3], 16), ([0, 2, 1, 3], 13)):
        assert peak_by_definition(problem, np.array(order)) == peak
        assert _native.peak_of(problem, np.array(order)) == peak
    with pytest.raises(ValueError, match="before its writer"):
        peak_by_definition(problem, np.array([1, 0, 2, 3]))


@pytest.mark.parametrize("name", ["wakeword_streaming_int8.tflite", "randwire_ws_32_4_075.onnx"])
def test_every_rule_that_is_there_gives_a_legal_order(name: str) -> None:
    graph = load(MODELS / name).graph
    case = OrderCase(
        name=name, graph=graph, problem=order_problem(graph, in_place=False).native, bound=0
    )
    for orderer in (ORDERERS[peer] for peer in ORDERERS if peer != "cp-sat"):
        try:
            order = orderer(case, 1.0)
        except Skipped:
            continue
        assert peak_by_definition(case.problem, order) == _native.peak_of(case.problem, order)


def test_inductors_breadth_first_order_prefers_readers_of_what_ran_first() -> None:
    # Ops 0 and 1 are sources; 2 reads 1, 3 reads 0: 3 goes first although 2 is smaller.
    verdict, problem = _native.build_problem(
        np.array([[1, 2], [0, 3]]),
        np.array([[0, 0], [1, 1], [2, 1], [3, 0]]),
        np.array([1, 1]),
        np.zeros(4, dtype=np.int64),
        np.zeros(0, dtype=np.int64),
        np.zeros(0, dtype=np.int64),
        np.zeros((0, 3), dtype=np.int64),
    )
    assert verdict.fault is _native.ProblemFault.NONE
    graph = load(MODELS / "unet_int8.tflite").graph  # the rule does not look at it
    case = OrderCase(name="four", graph=graph, problem=problem, bound=0)
    assert inductor_bfs(case, 1.0).tolist() == [0, 1, 3, 2]
