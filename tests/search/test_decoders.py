"""Every decoder against a slow reference that is written from its description."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from regal import _native
from regal._native import Decoder
from tests.search.oracles import NEUTRAL, slow_bent, slow_dfs, slow_greedy, slow_raw
from tests.search.problems import build, random_problem, slow_peak, wide_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.search.problems import Tiny

    Slow = Callable[[Tiny, Sequence[int], int], list[int]]

SLOW: dict[Decoder, Slow] = {
    Decoder.RAW: lambda problem, keys, _: slow_raw(problem, keys),
    Decoder.DFS: lambda problem, keys, _: slow_dfs(problem, keys),
    Decoder.GREEDY: lambda problem, keys, _: slow_greedy(problem, keys),
    Decoder.BENT: slow_bent,
    Decoder.FORCED: lambda problem, keys, weight: slow_bent(problem, keys, weight, is_forced=True),
}
DECODERS = list(SLOW)


def decode(
    problem: Tiny, decoder: Decoder, keys: Sequence[int], weight: int = NEUTRAL
) -> tuple[list[int], int]:
    order, peak = _native.decode(problem.native, decoder, np.array(keys, dtype=np.uint32), weight)
    return order.tolist(), peak


def random_keys(rng: random.Random, n: int) -> list[int]:
    """Return keys with many ties: of few values, or of all."""
    if rng.random() < 0.5:
        return [rng.choice([0, 2**16, NEUTRAL, 3 * 2**30, 2**32 - 1]) for _ in range(n)]
    return [rng.getrandbits(32) for _ in range(n)]


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_order_of_a_tiny_problem_is_the_one_of_the_reference(decoder: Decoder) -> None:
    for seed in range(400):
        problem = random_problem(seed, most_ops=9)
        rng = random.Random(seed)
        keys = random_keys(rng, problem.n_ops)
        weight = rng.choice([0, NEUTRAL // 4, NEUTRAL, 2**32 - 1])
        order, peak = decode(problem, decoder, keys, weight)
        assert order == SLOW[decoder](problem, keys, weight), seed
        assert peak == slow_peak(problem, order), seed


@pytest.mark.parametrize("width", [15, 60, 280])
@pytest.mark.parametrize("decoder", [Decoder.RAW, Decoder.GREEDY, Decoder.FORCED])
def test_hundreds_of_ready_ops_change_nothing(decoder: Decoder, width: int) -> None:
    problem = wide_problem(3, width)
    rng = random.Random(width)
    keys = [rng.choice([NEUTRAL, rng.getrandbits(32)]) for _ in range(problem.n_ops)]
    assert decode(problem, decoder, keys)[0] == SLOW[decoder](problem, keys, NEUTRAL)


@pytest.mark.parametrize("decoder", DECODERS)
def test_one_decoder_object_decodes_many_rows_without_leftovers(decoder: Decoder) -> None:
    problem = wide_problem(5, 30)
    rng = np.random.default_rng(5)
    genes = rng.integers(0, 2**32, (8, problem.n_ops + 1), dtype=np.uint32)
    alone = [
        _native.decode(problem.native, decoder, row[:-1].copy(), int(row[-1]))[1] for row in genes
    ]
    assert _native.decoded_peaks(problem.native, decoder, genes).tolist() == alone


def fork() -> Tiny:
    """Return op 0 with three readers; op 1 makes 9 bytes, op 2 makes 1, op 3 frees 4."""
    return build(
        edges=[(0, 1), (0, 2), (0, 3), (4, 3)],
        touches=[[0], [0, 1], [0, 2], [0, 4], [4]],
        bytes_of=[1, 9, 1, 0, 4],
        outputs=[1, 2],
    )


def test_the_highest_key_runs_first_and_equal_keys_run_by_number() -> None:
    assert decode(fork(), Decoder.RAW, [NEUTRAL] * 5)[0] == [0, 1, 2, 4, 3]
    assert decode(fork(), Decoder.RAW, [0, 1, 2, 9, 8])[0] == [4, 0, 3, 2, 1]


def test_greedy_prefers_what_stays_below_the_peak_to_what_frees_most() -> None:
    # After op 0 (8 bytes): op 1 needs 10 during its step and frees 7; op 2 adds 1 to the 8.
    problem = build(
        edges=[(0, 1), (0, 2)],
        touches=[[0, 1], [1], [2]],
        bytes_of=[1, 7, 1],
        workspace=[3, 10, 0],
        outputs=[0, 2],
    )
    neutral = [NEUTRAL] * 3
    assert decode(problem, Decoder.GREEDY, neutral)[0] == [0, 2, 1]
    assert decode(problem, Decoder.BENT, neutral)[0] == [0, 1, 2]


def test_a_safe_move_runs_although_its_key_is_the_lowest() -> None:
    keys = [2**32 - 1, 2**32 - 1, 2**32 - 1, 0, 2**32 - 1]
    forced = decode(fork(), Decoder.FORCED, keys, 2**32 - 1)[0]
    bent = decode(fork(), Decoder.BENT, keys, 2**32 - 1)[0]
    assert forced == [0, 2, 4, 3, 1]
    assert bent == [0, 2, 4, 1, 3]


@pytest.mark.parametrize("decoder", [Decoder.BENT, Decoder.FORCED])
def test_keys_only_break_ties_where_the_weight_is_zero(decoder: Decoder) -> None:
    problem = fork()
    up = decode(problem, decoder, [1, 2, 3, 4, 5], 0)[1]
    down = decode(problem, decoder, [5, 4, 3, 2, 1], 0)[1]
    assert up == down == decode(problem, decoder, [NEUTRAL] * 5, 0)[1]


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_wrong_number_of_keys_is_refused(decoder: Decoder) -> None:
    with pytest.raises(ValueError, match="one key per op"):
        _native.decode(fork().native, decoder, np.zeros(4, dtype=np.uint32), 0)
