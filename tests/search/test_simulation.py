"""The hot-path simulation against the plain one and against set arithmetic."""

import itertools
import random

import numpy as np
import pytest

from regal import _native
from tests.search.oracles import SlowMemory
from tests.search.problems import all_orders, build, random_problem, slow_peak, wide_problem


def test_a_chain_holds_two_neighbors_at_a_time() -> None:
    problem = build(
        edges=[(0, 1), (1, 2)],
        touches=[[0], [0, 1], [1, 2]],
        bytes_of=[5, 3, 4],
        outputs=[2],
    )
    assert _native.peak_of(problem.native, np.array([0, 1, 2])) == 8


def test_an_in_place_op_counts_its_two_storages_once_where_the_input_dies() -> None:
    def peak(order: list[int]) -> int:
        # Op 1 may write storage 1 over storage 0, which op 2 reads too.
        problem = build(
            edges=[(0, 1), (0, 2)],
            touches=[[0], [0, 1], [0, 2]],
            bytes_of=[10, 10, 1],
            outputs=[1, 2],
            in_place=[(1, 0, 1)],
        )
        return int(_native.peak_of(problem.native, np.array(order)))

    assert peak([0, 2, 1]) == 11
    assert peak([0, 1, 2]) == 21


def test_at_most_64_pairs_of_one_op_happen() -> None:
    # 66 tensors of a byte become 66 others in one op: 132 bytes, less 64 that are shared.
    problem = build(
        edges=[(v, 66) for v in range(66)],
        touches=[*([v] for v in range(66)), list(range(132))],
        bytes_of=[1] * 132,
        outputs=list(range(66, 132)),
        in_place=[(66, v, 66 + v) for v in range(66)],
    )
    order = np.arange(67, dtype=np.int64)
    assert _native.peak_of(problem.native, order) == 132 - 64
    assert _native.simulate(problem.native, order).peak_bytes == 132 - 64


@pytest.mark.parametrize("block", range(4))
def test_every_order_of_a_tiny_problem_has_the_peak_that_sets_give(block: int) -> None:
    for seed in range(block * 150, (block + 1) * 150):
        problem = random_problem(seed)
        for order in itertools.islice(all_orders(problem), 12):
            expected = slow_peak(problem, order)
            steps = np.array(order, dtype=np.int64)
            assert _native.peak_of(problem.native, steps) == expected, (seed, order)
            assert _native.simulate(problem.native, steps).peak_bytes == expected, (seed, order)


def test_memory_by_sets_agrees_with_the_definition() -> None:
    for seed in range(200):
        problem = random_problem(seed)
        order = next(all_orders(problem))
        memory = SlowMemory(problem)
        for op in order:
            memory.run(op)
        assert memory.peak == slow_peak(problem, order), seed


def test_many_rows_are_simulated_one_by_one() -> None:
    problem = wide_problem(1, 40)
    rng = random.Random(1)
    rows = np.array(
        [
            _native.decode(
                problem.native,
                _native.Decoder.RAW,
                np.array([rng.getrandbits(32) for _ in range(problem.n_ops)], dtype=np.uint32),
            )[0]
            for _ in range(5)
        ]
    )
    expected = [_native.simulate(problem.native, row).peak_bytes for row in rows]
    assert _native.peaks_of(problem.native, rows).tolist() == expected
    assert len(set(expected)) > 1


def test_the_rows_of_a_problem_build_the_same_problem_again() -> None:
    for seed in range(50):
        problem = random_problem(seed)
        edges, touches, sizes, workspace, inputs, outputs, pairs = _native.problem_rows(
            problem.native
        )
        assert {(a, b) for a, b in edges.reshape(-1, 2).tolist()} == problem.edges
        assert touches.reshape(-1, 2).tolist() == [
            [op, s] for op in range(problem.n_ops) for s in sorted(problem.touches[op])
        ]
        assert tuple(sizes) == problem.bytes
        assert tuple(workspace) == problem.workspace
        assert set(inputs) == problem.inputs
        assert set(outputs) == problem.outputs
        assert [tuple(row) for row in pairs.reshape(-1, 3).tolist()] == list(problem.in_place)
