"""The exact search against all orders of tiny problems, and against hand-made ones."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from regal import _native
from regal.errors import PlanError
from regal.search.exact import beam, improve_windows, lower_bound, solve_exact
from tests.ctrl_c import ctrl_c_inside
from tests.search.tiny import Tiny, best_peak, random_net, random_tiny, random_twins

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

SEEDS = range(600)


def peak_of(problem: _native.OrderProblem, order: Sequence[int] | NDArray[np.int64]) -> int:
    """Return the peak as the independent checker sees it."""
    steps = np.array(order, np.int64)
    pairs = _native.simulate(problem, steps).in_place.reshape(-1, 3)
    verdict = _native.check_order(problem, steps, pairs)
    assert verdict.fault == _native.OrderFault.NONE
    return verdict.peak_bytes


def wide_net(branches: int, depth: int) -> Tiny:
    """One op feeds `branches` chains of growing and shrinking tensors that one op joins."""
    net = Tiny(1, touches=[(0, 0)], bytes=[7])
    ends = []
    for branch in range(branches):
        before, storage = 0, 0
        for step in range(depth):
            net.edges.append((before, net.n_ops))
            net.touches += [(net.n_ops, storage), (net.n_ops, len(net.bytes))]
            before, storage = net.n_ops, len(net.bytes)
            net.bytes.append(1 + (5 * branch + 3 * step * step) % 11)
            net.n_ops += 1
        ends.append((before, storage))
    net.edges += [(op, net.n_ops) for op, _ in ends]
    net.touches += [(net.n_ops, storage) for _, storage in ends]
    net.n_ops += 1
    return net


def hard_net(n_ops: int) -> _native.OrderProblem:
    """Return randomly wired ops, far too many to prove anything about."""
    rng = random.Random(0)
    net = Tiny(n_ops, bytes=[1] * n_ops, touches=[(op, op) for op in range(n_ops)])
    for op in range(1, n_ops):
        for source in {rng.randrange(op) for _ in range(3)}:
            net.edges.append((source, op))
            net.touches.append((op, source))
    return net.native()


def test_the_branch_that_shrinks_runs_first() -> None:
    # Op 0 makes a (1 byte); 1 blows it up to 8 and 2 shrinks that to 1; 3 makes 6 from a.
    # 4 joins. With 3 first the peak is a + 6 + 8 + 1 = 16; with 1, 2 first 1 + 8 + 1 = 10.
    net = Tiny(
        5,
        edges=[(0, 1), (1, 2), (0, 3), (2, 4), (3, 4)],
        touches=[(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 0), (3, 3), (4, 2), (4, 3)],
        bytes=[1, 8, 1, 6],
    )
    outcome = solve_exact(net.native(), hint=(0, 3, 1, 2, 4))
    assert outcome.order == (0, 1, 2, 3, 4)
    assert (outcome.peak_bytes, outcome.lower_bound) == (10, 10)


def test_the_oracle_agrees_with_the_checker_on_all_orders() -> None:
    for seed in SEEDS:
        tiny = random_tiny(seed, most_ops=6)
        problem = tiny.native()
        assert best_peak(tiny) == min(peak_of(problem, o) for o in tiny.legal_orders()), seed


@pytest.mark.parametrize("make", [random_tiny, random_twins, random_net])
def test_the_exact_peak_is_the_best_of_all_orders(make: Callable[[int], Tiny]) -> None:
    for seed in SEEDS:
        tiny = make(seed)
        problem = tiny.native()
        best = best_peak(tiny)
        outcome = solve_exact(problem)
        assert outcome.peak_bytes == outcome.lower_bound == best, seed
        assert peak_of(problem, outcome.order) == best, seed


def detour_net(sides: int) -> Tiny:
    """A net whose lowest peak, 24, needs op 1 to wait although it looks best at first.

    Op 0 makes p (3) beside the input a (10). Op 1 makes q (2) from p. The sides make 4 each
    from a and p; "drop" makes t (1) from a and the sides, which leaves p + t = 4. "hill" makes
    y (20) from t: 24. "last" makes z (1) from y and p: 24. Then op 1 adds 2 and frees 3. With
    op 1 before the drop, p + q + t = 6 are left, and the hill needs 26.
    """
    drop, hill, last, end = range(2 + sides, 6 + sides)
    a, p, q, t, y, z = range(6)
    net = Tiny(end + 1, bytes=[10, 3, 2, 1, 20, 1], inputs=[a])
    net.edges = [(0, 1), (drop, hill), (hill, last), (0, last), (1, end), (last, end)]
    net.touches = [(0, a), (0, p), (1, p), (1, q), (drop, a), (drop, t), (hill, t), (hill, y)]
    net.touches += [(last, y), (last, p), (last, z), (end, q), (end, z)]
    for side in range(2, 2 + sides):
        net.bytes.append(4)
        net.edges += [(0, side), (side, drop)]
        net.touches += [(side, a), (side, len(net.bytes) - 1), (drop, len(net.bytes) - 1)]
    return net


@pytest.mark.parametrize("sides", [1, 2])
def test_a_descent_or_valley_does_not_drag_along_an_op_that_should_wait(sides: int) -> None:
    net = detour_net(sides)
    assert best_peak(net) == 24
    assert _native.order_within(net.native(), 24, 1000, False, None).answer == _native.Answer.YES


def test_the_cut_counts_what_must_be_kept_whatever_ran_before() -> None:
    # Op 0 writes a (4); op 1 turns a into b (3); ops 2 and 3 (8 each) run in between or not:
    # during op 3, a or b is live, so at least 3 + 8. No storage is live in all orders.
    net = Tiny(
        5,
        edges=[(0, 1), (0, 2), (2, 3), (1, 4), (3, 4)],
        touches=[(0, 0), (1, 0), (1, 1), (4, 1), (3, 2)],
        bytes=[4, 3, 8],
    )
    assert _native.cut_bounds(net.native(), np.array([3])).tolist() == [11]


@pytest.mark.parametrize("from_the_end", [False, True])
def test_a_budget_is_met_exactly_when_some_order_meets_it(from_the_end: bool) -> None:
    for seed in SEEDS:
        net = random_net(seed)
        problem = net.native()
        best = best_peak(net)
        for budget in range(max(0, best - 4), best + 3):
            found = _native.order_within(problem, budget, 1 << 30, from_the_end, None)
            if budget < best:
                assert found.answer == _native.Answer.NO, seed
                assert budget < found.next_budget <= best, seed
            else:
                assert found.answer == _native.Answer.YES, seed
                assert peak_of(problem, found.order) <= budget, seed


def test_no_order_has_a_step_below_the_cut_of_its_op() -> None:
    for seed in SEEDS:
        tiny = random_tiny(seed, most_ops=6)
        problem = tiny.native()
        bounds = _native.cut_bounds(problem, np.arange(tiny.n_ops))
        for order in tiny.legal_orders():
            steps = np.array(order, np.int64)
            during = _native.simulate(problem, steps).bytes_at_step
            assert (bounds[steps] <= during).all(), seed


def test_the_lower_bound_is_below_every_order_and_never_below_a_single_op() -> None:
    for seed in SEEDS:
        tiny = random_tiny(seed, most_ops=6)
        problem = tiny.native()
        peaks = [peak_of(problem, order) for order in tiny.legal_orders()]
        assert max(tiny.workspace) <= lower_bound(problem) <= min(peaks), seed


def test_some_best_order_keeps_twins_in_sequence() -> None:
    n_with_twins = 0
    for seed in SEEDS:
        tiny = random_twins(seed)
        problem = tiny.native()
        twins = _native.twin_edges(problem).reshape(-1, 2).tolist()
        n_with_twins += bool(twins)
        orders = list(tiny.legal_orders())
        kept = [o for o in orders if all(o.index(a) < o.index(b) for a, b in twins)]
        best = min(peak_of(problem, order) for order in orders)
        assert min(peak_of(problem, order) for order in kept) == best, seed
    assert n_with_twins > len(SEEDS) // 3


def test_branches_that_end_in_one_join_are_twins_position_by_position() -> None:
    net = Tiny(
        6,
        edges=[(0, 1), (1, 2), (0, 3), (3, 4), (2, 5), (4, 5)],
        touches=[
            *[(0, 0), (1, 0), (1, 1), (2, 1), (2, 2)],
            *[(3, 0), (3, 3), (4, 3), (4, 4), (5, 2), (5, 4)],
        ],
        bytes=[1, 2, 3, 2, 3],
    )
    assert _native.twin_edges(net.native()).reshape(-1, 2).tolist() == [[2, 4], [1, 3]]


def test_forty_branches_are_proven_within_a_few_thousand_states() -> None:
    outcome = solve_exact(wide_net(40, 4).native(), max_states=20_000)
    assert outcome.is_optimal


def test_a_beam_is_legal_and_not_better_than_the_optimum() -> None:
    for seed in SEEDS:
        problem = random_tiny(seed).native()
        order = beam(problem, 1 + seed % 3)
        assert peak_of(problem, order) >= solve_exact(problem).peak_bytes, seed


def test_windows_never_raise_the_peak_and_a_window_of_all_steps_is_exact() -> None:
    for seed in SEEDS:
        tiny = random_tiny(seed)
        problem = tiny.native()
        start = next(iter(tiny.legal_orders()))
        best = solve_exact(problem).peak_bytes
        narrow = peak_of(problem, improve_windows(problem, start, width=3)[0])
        assert best <= narrow <= peak_of(problem, start), seed
        whole, _ = improve_windows(problem, start, width=2 * tiny.n_ops)
        assert peak_of(problem, whole) == best, seed


def test_an_early_stop_keeps_the_hint_and_a_true_bound() -> None:
    for seed in SEEDS:
        tiny = random_tiny(seed)
        problem = tiny.native()
        hint = next(iter(tiny.legal_orders()))
        outcome = solve_exact(problem, max_states=0, hint=hint)
        assert outcome.lower_bound <= solve_exact(problem).peak_bytes, seed
        assert outcome.peak_bytes == peak_of(problem, outcome.order), seed
        assert outcome.peak_bytes <= peak_of(problem, hint), seed


def test_the_same_call_gives_the_same_outcome() -> None:
    problem = wide_net(9, 5).native()
    outcomes = {solve_exact(problem, max_states=500) for _ in range(3)}
    assert len(outcomes) == 1
    assert len({beam(problem, 7) for _ in range(3)}) == 1


def test_a_cancelled_search_returns_at_once_with_what_it_has() -> None:
    problem = wide_net(30, 6).native()
    cancel = _native.Cancel()
    cancel.cancel()
    outcome = solve_exact(problem, max_states=1 << 60, cancel=cancel)
    assert peak_of(problem, outcome.order) == outcome.peak_bytes
    assert beam(problem, 100, cancel=cancel) == ()


def test_ctrl_c_ends_a_search_and_keeps_what_it_found() -> None:
    net = hard_net(160)
    cancel = _native.Cancel()
    with ctrl_c_inside("_run"):
        outcome = solve_exact(net, max_states=1 << 60, cancel=cancel)
    assert cancel.is_cancelled
    assert peak_of(net, outcome.order) == outcome.peak_bytes > outcome.lower_bound


def test_ctrl_c_without_a_cancel_is_raised() -> None:
    with ctrl_c_inside("_run"), pytest.raises(KeyboardInterrupt):
        solve_exact(hard_net(160), max_states=1 << 60)


def test_an_illegal_hint_is_refused_with_the_two_ops() -> None:
    problem = Tiny(2, edges=[(0, 1)]).native()
    with pytest.raises(PlanError, match="op 1 runs before op 0"):
        solve_exact(problem, hint=(1, 0))
    with pytest.raises(PlanError, match="order of 1 steps is no permutation of 2 ops"):
        improve_windows(problem, (0,))


def test_a_problem_without_ops_has_peak_zero() -> None:
    problem = Tiny(0).native()
    assert solve_exact(problem).peak_bytes == lower_bound(problem) == 0
    assert beam(problem, 3) == improve_windows(problem, ())[0] == ()
