"""Public graphs with known optima, from the shared corpus: the default method reaches them."""

import pytest

from regal.baselines.devices.cp_sat import CpSat
from regal.cost.roofline import graph_cost
from regal.frontends import load
from regal.plan.schedule_problem import ScheduleProblem, schedule_problem
from regal.search.devices.portfolio import regal
from regal.search.devices.types import DeviceOutcome, Objective
from regal.search.types import Budget
from tests.corpus import corpus_file

TIME = Objective(name="time", per_ns=1, per_byte=0)
GNMT_MS = 219.056  # 6 devices, proven with CP-SAT
INCEPTION_MS = 1742  # 12 devices, the best that was known


def problem_of(name: str) -> ScheduleProblem:
    model = load(corpus_file(f"sched/{name}"))
    assert model.system is not None
    return schedule_problem(model.graph, model.system, graph_cost(model.graph, model.system))


def found(problem: ScheduleProblem, evaluations: int) -> DeviceOutcome:
    return regal(problem, TIME, Budget(evaluations=evaluations), seed=0, threads=1)


def test_gnmt_on_six_devices_reaches_the_proven_optimum() -> None:
    pytest.importorskip("ortools")
    problem = problem_of("dnnpart_lat_layer_gnmt.json")
    outcome = found(problem, 20_000)
    proof = CpSat(deterministic_seconds=60, start=outcome)(
        problem, TIME, Budget(seconds=60), seed=0, threads=2
    )
    assert outcome.figures.overflow == 0
    assert outcome.figures.time / 1e6 == pytest.approx(GNMT_MS, abs=1e-3)
    assert proof.time_bound_ns / 1e6 == pytest.approx(GNMT_MS, abs=1e-3)
    assert proof.figures.time >= proof.time_bound_ns


def test_inception_on_twelve_devices_is_faster_than_the_record() -> None:
    outcome = found(problem_of("dnnpart_lat_layer_inceptionv3.json"), 20_000)
    assert outcome.figures.overflow == 0
    assert outcome.figures.time / 1e6 < INCEPTION_MS


@pytest.mark.parametrize(
    "name",
    [
        "dagbench_cholesky6.json",
        "dagbench_fft32.json",
        "dagbench_gauss10.json",
        "dnnpart_thr_layer_bert24_train.json",
        "dnnpart_thr_layer_gnmt_train.json",
        "piper_gnmt.json",
    ],
)
def test_a_graph_with_its_own_devices_gets_a_schedule_that_fits(name: str) -> None:
    problem = problem_of(name)
    outcome = found(problem, 300)
    assert outcome.figures.overflow == 0
    assert outcome.time_bound_ns <= outcome.figures.time
