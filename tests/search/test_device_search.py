"""Searches over keys for several devices: quality, repeatability, limits, seeds, proposals."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from regal import _native
from regal._native import CompactDevices, DeviceDecoder, GeneLayout
from regal.errors import UsageError
from regal.search.devices.brkga import DeviceBrkgaOptions, DeviceProposal, run_device_brkga
from regal.search.devices.es import DeviceEsOptions, WeightPrior, run_device_es, weight_count
from regal.search.devices.local import DeviceLocalOptions, neutral_chromosome, run_device_local
from regal.search.devices.types import Objective
from regal.search.types import Budget
from tests.baselines.devices.problems import task_graph
from tests.ctrl_c import ctrl_c_inside
from tests.device_problems import UNLIMITED, random_devices
from tests.search.device_schedules import all_schedules, layered, small_problems

if TYPE_CHECKING:
    from collections.abc import Callable

    from regal.search.devices.compact import Found
    from tests.device_problems import TinyDevices

TIME = Objective(name="time", per_ns=1.0, per_byte=0.0)
MEMORY = Objective(name="memory", per_ns=0.0, per_byte=1.0)
BALANCED = Objective(name="balanced", per_ns=1.0, per_byte=1.0)
EFT, INHERIT = DeviceDecoder.EFT, DeviceDecoder.INHERIT
LONG = 60.0  # seconds; far more than any of these tests needs


def brkga(tiny: TinyDevices, objective: Objective, budget: Budget, **more: Any) -> Found:
    options = more.pop("options", DeviceBrkgaOptions(population=20, elites=4, mutants=3))
    return run_device_brkga(
        CompactDevices(tiny.native()), objective, budget, options=options, **more
    )


def es(tiny: TinyDevices, objective: Objective, budget: Budget, **more: Any) -> Found:
    return run_device_es(CompactDevices(tiny.native()), objective, budget, **more)


def local(tiny: TinyDevices, objective: Objective, budget: Budget, **more: Any) -> Found:
    compact = CompactDevices(tiny.native())
    start = neutral_chromosome(compact, EFT)
    return run_device_local(compact, objective, start, budget, **more)


def annealing(tiny: TinyDevices, objective: Objective, budget: Budget, **more: Any) -> Found:
    return local(tiny, objective, budget, options=DeviceLocalOptions(is_annealing=True), **more)


SEARCHES = pytest.mark.parametrize("search", [brkga, es, local, annealing])


def value(tiny: TinyDevices, found: Found, objective: Objective) -> float:
    figures = _native.simulate_devices(tiny.native(), found.schedule)
    assert figures is not None
    return figures.overflow * 1e9 + objective.value(figures.time, figures.most)


@SEARCHES
@pytest.mark.parametrize("objective", [TIME, MEMORY, BALANCED], ids=lambda o: o.name)
def test_the_number_of_threads_changes_nothing(
    search: Callable[..., Found], objective: Objective
) -> None:
    tiny = layered(1, 40)
    found = [
        search(tiny, objective, Budget(evaluations=333), seed=5, threads=threads)
        for threads in (1, 2, 5)
    ]
    assert len({one.schedule.order.tobytes() for one in found}) == 1
    assert len({one.schedule.placement.tobytes() for one in found}) == 1
    assert len({one.chromosomes.tobytes() for one in found}) == 1
    assert {one.evaluations for one in found} == {333}


@SEARCHES
def test_a_run_that_the_clock_ended_is_repeated_by_its_evaluations(
    search: Callable[..., Found],
) -> None:
    tiny = layered(2, 80)
    timed = search(tiny, TIME, Budget(seconds=0.05), seed=1, threads=2)
    counted = search(tiny, TIME, Budget(evaluations=timed.evaluations), seed=1)
    assert counted.schedule.order.tolist() == timed.schedule.order.tolist()
    assert counted.evaluations == timed.evaluations


@SEARCHES
def test_the_value_never_rises_with_more_evaluations(search: Callable[..., Found]) -> None:
    tiny = layered(3, 30)
    values = [
        value(tiny, search(tiny, TIME, Budget(evaluations=count), seed=2), TIME)
        for count in (1, 2, 9, 10, 40, 150, 600)
    ]
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


@SEARCHES
def test_the_first_evaluation_is_the_plain_heuristic(search: Callable[..., Found]) -> None:
    tiny = layered(4, 30)
    compact = CompactDevices(tiny.native())
    heuristic, _ = _native.decode_schedule(compact, EFT, 1.0, 0.0, neutral_chromosome(compact, EFT))
    found = search(tiny, TIME, Budget(evaluations=1), seed=9)
    assert found.schedule.order.tolist() == heuristic.order.tolist()
    assert found.schedule.placement.tolist() == heuristic.placement.tolist()


@SEARCHES
def test_the_search_stops_at_a_bound(search: Callable[..., Found]) -> None:
    tiny = layered(5, 30)
    best = value(tiny, search(tiny, TIME, Budget(evaluations=400), seed=3), TIME)
    found = search(tiny, TIME, Budget(evaluations=10_000), seed=3, stop_at=best)
    assert found.evaluations <= 400
    assert value(tiny, found, TIME) <= best


@SEARCHES
def test_a_cancelled_search_returns_what_it_has(search: Callable[..., Found]) -> None:
    cancel = _native.Cancel()
    timer = threading.Timer(0.1, cancel.cancel)
    timer.start()
    found = search(layered(6, 60), TIME, Budget(seconds=LONG), seed=1, threads=2, cancel=cancel)
    timer.join()
    assert found.evaluations > 1
    assert len(found.schedule.order) == 60


def test_ctrl_c_ends_the_search_and_keeps_the_best() -> None:
    with ctrl_c_inside("run_device_brkga"):
        found = brkga(layered(6, 60), TIME, Budget(seconds=LONG), seed=1)
    assert found.was_interrupted
    assert len(found.schedule.order) == 60


@SEARCHES
def test_no_ops_and_one_device_are_fine(search: Callable[..., Found]) -> None:
    for seed in range(40):
        tiny = random_devices(seed, most_ops=4, most_devices=1)
        found = search(tiny, BALANCED, Budget(evaluations=30), seed=1)
        assert len(found.schedule.order) == tiny.n_ops
        assert 1 <= found.evaluations <= 30


@pytest.mark.parametrize("objective", [TIME, MEMORY, BALANCED], ids=lambda o: o.name)
def test_the_optimum_of_tiny_problems_is_found_and_never_beaten(objective: Objective) -> None:
    missed: dict[str, int] = {}
    count = 60
    for seed, tiny in small_problems(count):
        best = min(f.overflow * 1e9 + objective.value(f.time, f.most) for f in all_schedules(tiny))
        compact = CompactDevices(tiny.native())
        for decoder in (EFT, INHERIT):
            options = DeviceBrkgaOptions(decoder=decoder)
            found = brkga(tiny, objective, Budget(evaluations=300), seed=seed, options=options)
            mine = value(tiny, found, objective)
            assert mine >= best - 1e-9, (seed, decoder)
            improved = run_device_local(
                compact,
                objective,
                neutral_chromosome(compact, decoder),
                Budget(evaluations=300),
                seed=seed,
                options=DeviceLocalOptions(decoder=decoder),
            )
            assert value(tiny, improved, objective) >= best - 1e-9, (seed, decoder)
            missed[f"brkga {decoder.name}"] = missed.get(f"brkga {decoder.name}", 0) + (mine > best)
    # Ties of an instant, transfers out of turn: what no list decoder can express.
    assert min(missed.values()) <= count // 20, missed


def test_seeds_are_looked_at_as_they_are_and_the_result_is_never_worse() -> None:
    for seed in range(20):
        tiny = layered(seed, 24)
        compact = CompactDevices(tiny.native())
        seeds = [
            brkga(tiny, TIME, Budget(evaluations=200), seed=other).schedule for other in range(3)
        ]
        figures = [_native.simulate_devices(tiny.native(), one) for one in seeds]
        best = min(f.time for f in figures if f is not None)
        for evaluations in (3, 4, 30):
            found = run_device_brkga(
                compact, TIME, Budget(evaluations=evaluations), seed=seed, seeds=seeds
            )
            assert value(tiny, found, TIME) <= best
            assert found.evaluations == evaluations


def test_chromosomes_enter_the_first_population() -> None:
    tiny = layered(7, 40)
    compact = CompactDevices(tiny.native())
    good = run_device_es(compact, TIME, Budget(evaluations=300), seed=1, kept=4)
    assert len(good.chromosomes) == 4
    values = _native.decoded_values(compact, EFT, 1.0, 0.0, good.chromosomes)
    assert values == sorted(values)
    assert len(set(values)) == 4
    found = run_device_brkga(
        compact, TIME, Budget(evaluations=5), seed=1, chromosomes=good.chromosomes
    )
    assert value(tiny, found, TIME) <= values[0]


def test_equal_devices_do_not_change_what_brkga_finds_when_they_are_renamed() -> None:
    tiny = layered(8, 30, n_devices=3)
    options = DeviceBrkgaOptions(decoder=DeviceDecoder.RAW, relabels_devices=True)
    found = brkga(tiny, TIME, Budget(evaluations=600), seed=1, options=options)
    plain = brkga(
        tiny,
        TIME,
        Budget(evaluations=600),
        seed=1,
        options=replace(options, relabels_devices=False),
    )
    # Renaming only helps crossing: the first populations are the same, the children are not.
    assert found.schedule.order.tolist() != plain.schedule.order.tolist()
    decoded = _native.decode_schedule(
        CompactDevices(tiny.native()), DeviceDecoder.RAW, 1.0, 0.0, found.chromosomes[0]
    )
    assert decoded[1].time == value(tiny, found, TIME)


def test_beta_distributions_shape_the_keys_that_are_drawn() -> None:
    tiny = layered(9, 24)
    layout = GeneLayout(tiny.native(), DeviceDecoder.RAW)
    options = DeviceBrkgaOptions(decoder=DeviceDecoder.RAW, with_neutral=False)
    alpha = np.ones(layout.size)
    beta = np.ones(layout.size)
    alpha[layout.affinity : layout.colocation : 2] = 1e6  # everything to device 0
    beta[layout.affinity + 1 : layout.colocation : 2] = 1e6
    proposal = DeviceProposal(alpha=alpha, beta=beta)
    found = brkga(tiny, TIME, Budget(evaluations=1), seed=1, options=options, proposal=proposal)
    assert set(found.schedule.placement.tolist()) == {0}


def test_a_gene_bias_of_one_keeps_the_genes_of_the_elite() -> None:
    tiny = layered(10, 24)
    layout = GeneLayout(tiny.native(), EFT)
    options = DeviceBrkgaOptions(population=10, elites=1, mutants=0)
    stuck = DeviceProposal(elite_bias=np.ones(layout.size))
    once = brkga(tiny, TIME, Budget(evaluations=10), seed=1, options=options, proposal=stuck)
    more = brkga(tiny, TIME, Budget(evaluations=200), seed=1, options=options, proposal=stuck)
    assert more.schedule.order.tolist() == once.schedule.order.tolist()


def test_wrong_proposals_and_priors_are_refused() -> None:
    tiny = layered(11, 16)
    genes = GeneLayout(tiny.native(), EFT).size
    budget = Budget(evaluations=1)
    wrong = [
        (DeviceProposal(alpha=np.ones(3), beta=np.ones(3)), "shape"),
        (DeviceProposal(alpha=np.zeros(genes), beta=np.ones(genes)), "range"),
        (DeviceProposal(elite_bias=np.full(genes, 1.5)), "range"),
        (DeviceProposal(alpha=np.ones(genes)), "together"),
    ]
    for proposal, message in wrong:
        with pytest.raises(UsageError, match=message):
            brkga(tiny, TIME, budget, seed=1, proposal=proposal)
    weights = weight_count(2)
    for prior, message in [
        (WeightPrior(mean=np.zeros(3), deviation=np.ones(weights)), "shape"),
        (WeightPrior(mean=np.zeros(weights), deviation=-np.ones(weights)), "range"),
    ]:
        with pytest.raises(UsageError, match=message):
            es(tiny, TIME, budget, seed=1, prior=prior)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DeviceBrkgaOptions(elites=0), "elites"),
        (lambda: DeviceBrkgaOptions(mutants=40), "mutants"),
        (lambda: DeviceBrkgaOptions(elite_bias=1.5), "elite_bias"),
        (lambda: DeviceEsOptions(step=0), "step"),
        (lambda: DeviceEsOptions(population=1), "population"),
        (lambda: DeviceLocalOptions(relocate=0.9, shift=0.9), "shares"),
        (lambda: DeviceLocalOptions(critical=2), "critical"),
    ],
)
def test_wrong_options_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()


def test_a_prior_without_deviation_leaves_one_schedule() -> None:
    tiny = layered(15, 20)
    prior = WeightPrior(mean=np.zeros(weight_count(2)), deviation=np.zeros(weight_count(2)))
    found = es(tiny, TIME, Budget(evaluations=50), seed=1, prior=prior)
    assert found.evaluations == 1


def test_capacity_comes_before_the_objective() -> None:
    # One device holds everything and is fastest; the limit forces a split that takes longer.
    tiny = task_graph(
        [[1, 1]] * 6,
        [(i, i + 1, 50) for i in range(5)],
        resident_bytes=[10] * 6,
        capacity=[30, 30],
    )
    for search in (brkga, es, local, annealing):
        found = search(tiny, TIME, Budget(evaluations=200), seed=1)
        figures = _native.simulate_devices(tiny.native(), found.schedule)
        assert figures is not None
        assert figures.overflow == 0
        assert figures.time == 56
    unlimited = replace(tiny, capacity=(UNLIMITED, UNLIMITED))
    assert value(unlimited, brkga(unlimited, TIME, Budget(evaluations=50), seed=1), TIME) == 6


def test_different_seeds_give_different_schedules() -> None:
    tiny = layered(16, 30)
    options = DeviceBrkgaOptions(decoder=DeviceDecoder.RAW, with_neutral=False)
    orders = {
        brkga(
            tiny, TIME, Budget(evaluations=1), seed=seed, options=options
        ).schedule.order.tobytes()
        for seed in range(10)
    }
    assert len(orders) == 10


def test_restarts_go_on_after_a_population_that_does_not_improve() -> None:
    tiny = layered(17, 12)
    options = DeviceBrkgaOptions(population=6, elites=1, mutants=1, restart_after=1)
    counts = [
        brkga(tiny, TIME, Budget(evaluations=count), seed=1, options=options).evaluations
        for count in itertools.chain(range(1, 20), [200])
    ]
    assert counts == [*range(1, 20), 200]
