"""BRKGA: quality on tiny problems, repeatability, limits, seeds, proposals and cancel."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from regal import _native
from regal._native import Decoder
from regal.errors import PlanError, UsageError
from regal.search.brkga import BrkgaOptions, Proposal, run_brkga
from regal.search.types import Budget
from tests.ctrl_c import ctrl_c_inside
from tests.search.problems import best_peak, build, random_problem, slow_peak, wide_problem

RAW = BrkgaOptions(decoder=Decoder.RAW, with_neutral=False)
LONG = 60.0  # seconds; far more than any of these tests needs


@pytest.mark.parametrize("decoder", [Decoder.RAW, Decoder.FORCED])
def test_tiny_problems_are_solved_and_never_below_the_optimum(decoder: Decoder) -> None:
    misses = 0
    for seed in range(120):
        problem = random_problem(seed, most_ops=6)
        outcome = run_brkga(
            problem.native,
            Budget(evaluations=300),
            seed=seed,
            options=BrkgaOptions(decoder=decoder),
        )
        best = best_peak(problem)
        assert outcome.peak_bytes == slow_peak(problem, outcome.order.tolist())
        assert outcome.peak_bytes >= best, seed
        misses += outcome.peak_bytes > best
    assert misses <= 2


@pytest.mark.parametrize("decoder", [Decoder.RAW, Decoder.FORCED])
def test_the_number_of_threads_changes_nothing(decoder: Decoder) -> None:
    problem = wide_problem(1, 30)
    options = BrkgaOptions(decoder=decoder, restart_after=3)
    results = [
        run_brkga(problem.native, Budget(evaluations=777), seed=5, threads=threads, options=options)
        for threads in (1, 2, 5)
    ]
    assert {outcome.order.tobytes() for outcome in results} == {results[0].order.tobytes()}
    assert {outcome.evaluations for outcome in results} == {777}


@pytest.mark.parametrize("threads", [1, 3])
def test_a_run_that_the_clock_ended_is_repeated_by_its_evaluations(threads: int) -> None:
    problem = wide_problem(2, 100)
    timed = run_brkga(problem.native, Budget(seconds=0.05), seed=1, threads=threads)
    counted = run_brkga(problem.native, Budget(evaluations=timed.evaluations), seed=1)
    assert counted.order.tolist() == timed.order.tolist()
    assert counted.evaluations == timed.evaluations


def test_the_peak_never_rises_with_more_evaluations() -> None:
    problem = wide_problem(3, 20)
    options = BrkgaOptions(decoder=Decoder.RAW, restart_after=2, population=10, elites=2)
    peaks = [
        run_brkga(problem.native, Budget(evaluations=count), seed=2, options=options).peak_bytes
        for count in (1, 2, 9, 10, 11, 40, 150, 600)
    ]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[-1] < peaks[0]


def test_different_seeds_and_different_evaluations_give_different_orders() -> None:
    problem = wide_problem(4, 20)
    orders = {
        run_brkga(problem.native, Budget(evaluations=1), seed=seed, options=RAW).order.tobytes()
        for seed in range(10)
    }
    assert len(orders) == 10


@pytest.mark.parametrize("threads", [1, 4])
def test_the_search_ends_with_the_first_plan_that_reaches_the_bound(threads: int) -> None:
    problem = wide_problem(5, 20)
    full = run_brkga(problem.native, Budget(evaluations=500), seed=3, options=RAW)
    ended = run_brkga(
        problem.native,
        Budget(evaluations=500),
        seed=3,
        options=RAW,
        threads=threads,
        stop_at=full.peak_bytes,
    )
    one_less = run_brkga(
        problem.native, Budget(evaluations=ended.evaluations - 1), seed=3, options=RAW
    )
    assert ended.is_optimal
    assert ended.lower_bound == full.peak_bytes
    assert ended.order.tolist() == full.order.tolist()
    assert one_less.peak_bytes > full.peak_bytes
    assert not full.is_optimal


def test_threads_that_run_ahead_of_the_bound_do_not_count() -> None:
    problem = wide_problem(5, 150)  # a plan takes long enough that threads overlap
    for seed in range(25):
        peak = run_brkga(problem.native, Budget(evaluations=60), seed=seed, options=RAW).peak_bytes
        counts = {
            run_brkga(
                problem.native,
                Budget(evaluations=500),
                seed=seed,
                options=RAW,
                threads=threads,
                stop_at=peak,
            ).evaluations
            for threads in (1, 8)
        }
        assert len(counts) == 1, seed


def test_a_seed_order_is_the_first_evaluation_and_the_result_is_never_worse() -> None:
    problem = wide_problem(6, 20)
    good = run_brkga(problem.native, Budget(evaluations=2000), seed=1).order
    bad = np.arange(problem.n_ops, dtype=np.int64)
    first = run_brkga(problem.native, Budget(evaluations=1), seed=9, options=RAW, seed_orders=[bad])
    both = run_brkga(
        problem.native, Budget(evaluations=2), seed=9, options=RAW, seed_orders=[bad, good]
    )
    assert first.order.tolist() == bad.tolist()
    assert both.order.tolist() == good.tolist()


def test_offspring_start_from_the_keys_of_a_seed_order() -> None:
    # 400 plans from a good order improve it; 400 plans from nothing do not even reach it.
    problem = wide_problem(7, 60)
    good = run_brkga(problem.native, Budget(evaluations=3000), seed=1, options=RAW)
    seeded = run_brkga(
        problem.native, Budget(evaluations=400), seed=2, options=RAW, seed_orders=[good.order]
    )
    alone = run_brkga(problem.native, Budget(evaluations=400), seed=2, options=RAW)
    assert seeded.peak_bytes < good.peak_bytes < alone.peak_bytes


def test_a_sharp_proposal_decides_the_order() -> None:
    problem = build(edges=[], touches=[[s] for s in range(6)], bytes_of=[1] * 6)
    wanted = [3, 1, 5, 0, 2, 4]
    mean = np.full(7, 0.5)
    mean[wanted] = np.linspace(0.9, 0.1, 6)
    proposal = Proposal(alpha=1e6 * mean, beta=1e6 * (1 - mean))
    outcome = run_brkga(
        problem.native, Budget(evaluations=1), seed=4, options=RAW, proposal=proposal
    )
    assert outcome.order.tolist() == wanted


@pytest.mark.parametrize(
    ("alpha", "beta", "chance_above_half"),
    # Beta(a, 1) has distribution x^a, Beta(1, b) has 1 - (1 - x)^b.
    [(2.0, 1.0, 0.75), (0.5, 1.0, 0.293), (1.0, 0.25, 0.841), (1.0, 5.0, 0.031)],
)
def test_random_chromosomes_follow_the_beta_distribution_of_the_proposal(
    alpha: float, beta: float, chance_above_half: float
) -> None:
    # The key of op 0 is 1/2; op 1 runs first exactly if its key is higher.
    problem = build(edges=[], touches=[[0], [1]], bytes_of=[1, 1])
    sharp = 1e9
    proposal = Proposal(alpha=np.array([sharp, alpha, 1.0]), beta=np.array([sharp, beta, 1.0]))
    firsts = [
        run_brkga(
            problem.native, Budget(evaluations=1), seed=seed, options=RAW, proposal=proposal
        ).order[0]
        for seed in range(400)
    ]
    assert abs(np.mean(firsts) - chance_above_half) < 0.07


def test_a_gene_with_certain_bias_always_comes_from_the_elite() -> None:
    problem = wide_problem(8, 10)
    options = BrkgaOptions(
        decoder=Decoder.RAW, population=10, elites=1, mutants=0, with_neutral=False
    )
    peaks = []
    for bias in (1.0, 0.5):
        proposal = Proposal(elite_bias=np.full(problem.n_ops + 1, bias))
        first, last = (
            run_brkga(
                problem.native, Budget(evaluations=n), seed=6, options=options, proposal=proposal
            ).peak_bytes
            for n in (10, 400)
        )
        peaks.append((first, last))
    assert peaks[0][1] == peaks[0][0]
    assert peaks[1][1] < peaks[1][0]


def test_cancel_from_another_thread_returns_the_best_so_far() -> None:
    problem = wide_problem(9, 50)
    cancel = _native.Cancel()
    timer = threading.Timer(0.1, cancel.cancel)
    timer.start()
    outcome = run_brkga(problem.native, Budget(seconds=LONG), seed=1, threads=2, cancel=cancel)
    timer.join()
    assert outcome.was_interrupted
    assert outcome.evaluations >= 1
    assert outcome.seconds < LONG
    repeated = run_brkga(problem.native, Budget(evaluations=outcome.evaluations), seed=1)
    assert repeated.order.tolist() == outcome.order.tolist()


def test_a_search_that_is_cancelled_before_it_begins_still_returns_an_order() -> None:
    problem = wide_problem(9, 5)
    cancel = _native.Cancel()
    cancel.cancel()
    outcome = run_brkga(problem.native, Budget(seconds=LONG), seed=1, cancel=cancel)
    assert outcome.evaluations == 1
    assert sorted(outcome.order.tolist()) == list(range(problem.n_ops))


def test_ctrl_c_returns_the_best_so_far() -> None:
    problem = wide_problem(9, 50)
    with ctrl_c_inside("run_brkga"):
        outcome = run_brkga(problem.native, Budget(seconds=LONG), seed=1)
    assert outcome.was_interrupted
    assert outcome.seconds < LONG


def test_no_op_at_all_is_a_plan_of_zero_bytes() -> None:
    problem = build(edges=[], touches=[], bytes_of=[])
    outcome = run_brkga(problem.native, Budget(evaluations=10), seed=1)
    assert outcome.order.tolist() == []
    assert outcome.peak_bytes == 0


def test_an_illegal_seed_order_is_refused_with_its_first_wrong_op() -> None:
    problem = build(edges=[(0, 1)], touches=[[0], [0]], bytes_of=[1])
    with pytest.raises(PlanError, match="op 1 runs before op 0, which it needs"):
        run_brkga(problem.native, Budget(evaluations=1), seed=1, seed_orders=[np.array([1, 0])])


def test_options_and_proposals_outside_their_range_are_refused() -> None:
    problem = build(edges=[], touches=[[0]], bytes_of=[1])
    with pytest.raises(UsageError, match="elites is 40 of a population of 40"):
        BrkgaOptions(elites=40)
    with pytest.raises(UsageError, match="mutants is 33"):
        BrkgaOptions(mutants=33)
    with pytest.raises(UsageError, match=r"elite_bias is 1.5"):
        BrkgaOptions(elite_bias=1.5)
    for proposal, message in [
        (Proposal(elite_bias=np.zeros(1)), r"shape \(1,\); give \(2,\)"),
        (Proposal(elite_bias=np.full(2, 2.0)), "elite_bias has values outside"),
        (Proposal(alpha=np.zeros(2), beta=np.ones(2)), "alpha has values outside"),
        (Proposal(alpha=np.ones(2)), "alpha and beta go together"),
    ]:
        with pytest.raises(UsageError, match=message):
            run_brkga(problem.native, Budget(evaluations=1), seed=1, proposal=proposal)


def test_a_budget_without_a_limit_is_refused() -> None:
    with pytest.raises(UsageError, match="no limit is set"):
        Budget()
    with pytest.raises(UsageError, match="evaluations is 0"):
        Budget(evaluations=0)
    with pytest.raises(UsageError, match="seconds is nan"):
        Budget(seconds=float("nan"))
