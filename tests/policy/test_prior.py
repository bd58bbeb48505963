"""The policy of the default method: a prior over head weights, and which stage comes next."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from regal import _native
from regal.errors import UsageError
from regal.plan.schedule_problem import ScheduleProblem
from regal.policy.canonical import (
    canonical_means,
    canonical_size,
    device_places,
    head_weights,
)
from regal.policy.choice import SHIPPED, network_for
from regal.policy.inputs import CONTEXT
from regal.policy.model import PRIOR
from regal.policy.paper import PaperMethod
from regal.policy.prior import MODES_TRIED, PriorGuide, PriorMethod
from regal.search.devices.compact import compact_devices
from regal.search.devices.es import WeightPrior, weight_count
from regal.search.devices.guide import (
    ANNEAL,
    ARMS,
    LOCAL,
    MODES,
    PROGRESS,
    RULE_ARMS,
    STRATEGY,
    Progress,
)
from regal.search.devices.guided import guided_search, slice_of
from regal.search.devices.portfolio import PortfolioRun, regal
from regal.search.devices.types import DeviceOutcome, Objective
from regal.search.types import Budget
from tests.policy.problems import MEMORY, TIME, random_problem

BOTH = Objective(name="balanced", per_ns=0.001, per_byte=0.001)
OBJECTIVES = (TIME, MEMORY)
WIDTH = len(_native.device_feature_names())
RULE_CALL = 60  # no call of the rules of these graphs takes more evaluations


class Favorites:
    """A guide with a fixed sequence of favorites; no prior."""

    def __init__(self, *favorites: str) -> None:
        self._scores = np.array(
            [len(ARMS) - favorites.index(arm) if arm in favorites else 0.0 for arm in ARMS],
            dtype=np.float32,
        )

    def scores(self, progress: NDArray[np.float32]) -> NDArray[np.float32]:
        assert progress.shape == (len(PROGRESS),)
        return self._scores

    def prior(self, progress: NDArray[np.float32]) -> WeightPrior | None:
        return None


def new_run(
    problem: ScheduleProblem, objective: Objective, evaluations: int, threads: int = 1
) -> PortfolioRun:
    return PortfolioRun(
        problem, objective, Budget(evaluations=evaluations), seed=3, threads=threads
    )


def shipped(
    problem: ScheduleProblem, objective: Objective, evaluations: int, threads: int = 1
) -> DeviceOutcome:
    budget = Budget(evaluations=evaluations)
    return PriorMethod(policy=str(SHIPPED / "prior.onnx"))(
        problem, objective, budget, seed=3, threads=threads
    )


def key_of(outcome: DeviceOutcome) -> tuple[bytes, bytes, int]:
    schedule = outcome.schedule
    return schedule.placement.tobytes(), schedule.order.tobytes(), outcome.evaluations


def test_with_two_devices_the_slope_is_the_head_of_the_slower_one() -> None:
    means = np.arange(canonical_size(), dtype=np.float64)[None]
    weights = head_weights(means, np.array([1.0, 0.0]))
    assert weights.shape == (1, weight_count(2))
    heads = weights[0, : 6 * WIDTH].reshape(6, WIDTH)
    assert heads[0].tolist() == means[0, :WIDTH].tolist()
    assert heads[1].tolist() == means[0, WIDTH : 2 * WIDTH].tolist()
    assert not heads[2].any()  # the fastest: the others are relative to it
    assert heads[3].tolist() == means[0, 3 * WIDTH : 4 * WIDTH].tolist()
    assert not heads[4:].any()
    assert weights[0, 6 * WIDTH :].tolist() == means[0, 4 * WIDTH :].tolist()


@pytest.mark.parametrize("count", [3, 4, 8])
def test_the_canonical_means_of_weights_are_those_that_they_were_made_of(count: int) -> None:
    means = np.random.default_rng(count).normal(size=(3, canonical_size()))
    places = np.random.default_rng(1).permutation(count) / (count - 1)
    again = canonical_means(head_weights(means, places), places)
    np.testing.assert_allclose(again, means, atol=1e-9)


def test_devices_are_sorted_by_their_speed() -> None:
    problem = random_problem(5, 12, 3)
    places = device_places(problem)
    totals = np.maximum(problem.durations, 0).sum(axis=0)
    assert sorted(places.tolist()) == [0.0, 0.5, 1.0]
    assert totals[places.argsort()].tolist() == sorted(totals.tolist())


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
@pytest.mark.parametrize("seed", range(3))
def test_a_guide_that_prefers_nothing_leaves_the_search_as_it_is(
    seed: int, objective: Objective
) -> None:
    problem = random_problem(seed, 14)
    run = new_run(problem, objective, 700)
    assert guided_search(run, Favorites()) == []
    wanted = regal(problem, objective, Budget(evaluations=700), seed=3, threads=1)
    assert key_of(run.outcome()) == key_of(wanted)


@pytest.mark.parametrize("policy", ["none", "untrained"])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
def test_without_a_network_the_method_is_the_usual_portfolio(
    policy: str, objective: Objective
) -> None:
    problem = random_problem(2, 16)
    budget = Budget(evaluations=900)
    ours = PriorMethod(policy=policy)(problem, objective, budget, seed=3, threads=1)
    usual = regal(problem, objective, budget, seed=3, threads=1)
    assert key_of(ours) == key_of(usual)


def test_the_default_asks_the_policy_that_ships_for_every_objective() -> None:
    problem, budget = random_problem(2, 40), Budget(evaluations=900)
    for objective in (TIME, MEMORY, BOTH):
        ours = PriorMethod()(problem, objective, budget, seed=3, threads=1)
        assert key_of(ours) == key_of(shipped(problem, objective, 900))


def test_the_card_of_the_policy_that_ships_names_its_file_by_hash() -> None:
    network = network_for("default", PRIOR)
    assert network is not None
    for page in (SHIPPED / "README.md", Path(__file__).parents[2] / "docs" / "model_card.md"):
        assert network.sha256[:12] in page.read_text()


def test_arms_come_in_the_sequence_of_the_guide() -> None:
    problem = random_problem(1, 40)
    run = new_run(problem, TIME, 5_000)
    choices = guided_search(run, Favorites("bfs", STRATEGY, "local"))
    arms = [choice.arm for choice in choices]
    assert arms[:2] == ["bfs", STRATEGY]
    assert "bfs" not in arms[1:]
    assert all("bfs" not in choice.open for choice in choices[1:])


def test_the_modes_come_once_and_the_strategy_goes_on_from_them() -> None:
    run = new_run(random_problem(1, 40), TIME, 5_000)
    choices = guided_search(run, Favorites(MODES, STRATEGY))
    arms = [choice.arm for choice in choices]
    assert arms[:2] == [MODES, STRATEGY]
    assert arms.count(MODES) == 1
    assert all(MODES not in choice.open for choice in choices[1:])
    assert 60 + sum(slice_of(STRATEGY, i) for i in range(arms.count(STRATEGY))) >= 500


class Leaver(Favorites):
    """A guide that prefers nothing once something is spent."""

    def scores(self, progress: NDArray[np.float32]) -> NDArray[np.float32]:
        scores = super().scores(progress)
        return np.zeros_like(scores) if progress[-1] > 0 else scores


@pytest.mark.parametrize("seed", range(3))
def test_a_guide_that_leaves_at_once_has_the_strategy_of_the_usual_search(seed: int) -> None:
    problem = random_problem(seed, 40)
    run = new_run(problem, TIME, 5_000)
    assert guided_search(run, Leaver(STRATEGY)) == []
    usual = PortfolioRun(problem, TIME, Budget(evaluations=5_000), seed=3, threads=1)
    usual.heuristics()
    usual.strategy(300)
    # The same rules and strategy, in another sequence; in two calls, rules take a little more.
    guided = new_run(problem, TIME, usual.spent + RULE_CALL)
    guided_search(guided, Leaver(STRATEGY))
    assert guided.best.value <= usual.best.value


def test_slices_are_small_at_first() -> None:
    assert [slice_of(STRATEGY, i) for i in range(5)] == [40, 60, 100, 100, 100]
    assert [slice_of(LOCAL, i) for i in range(3)] == [50, 100, 200]
    assert slice_of(ANNEAL, 1) == 2 * slice_of(ANNEAL, 0)
    assert slice_of("dfs", 0) == 0


@pytest.mark.parametrize("evaluations", [3, 40, 100, 333])
def test_a_guided_run_stays_within_its_budget(evaluations: int) -> None:
    problem = random_problem(4, 30)
    for favorite in ARMS:
        run = new_run(problem, TIME, evaluations)
        guided_search(run, Favorites(favorite, STRATEGY))
        assert run.spent <= evaluations, favorite


def test_a_run_is_repeated_by_its_number_of_evaluations() -> None:
    problem = random_problem(6, 25)
    first = shipped(problem, TIME, 517)
    assert key_of(shipped(problem, TIME, first.evaluations)) == key_of(first)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.name)
def test_the_shipped_policy_gives_the_same_for_every_number_of_threads(
    objective: Objective,
) -> None:
    problem = random_problem(8, 30, 3)
    assert key_of(shipped(problem, objective, 800)) == key_of(shipped(problem, objective, 800, 3))


@pytest.mark.parametrize("seed", range(6))
def test_the_shipped_policy_ends_no_worse_than_any_rule(seed: int) -> None:
    problem = random_problem(20 + seed, 24, 2 + seed % 3)
    for objective in OBJECTIVES:
        best = _native.heuristic_schedules(problem.native, objective.per_ns, objective.per_byte)[0][
            0
        ].score
        outcome = shipped(problem, objective, 2_500)
        value = objective.value(outcome.figures.time, outcome.figures.most)
        assert (outcome.figures.overflow, value) <= (best.overflow, best.value)


def test_the_prior_of_a_guide_holds_the_likeliest_means() -> None:
    problem = random_problem(3, 12)
    means = np.zeros((MODES_TRIED + 4, canonical_size()), dtype=np.float32)
    means[:, 0] = np.arange(len(means))
    logits = np.arange(len(means), dtype=np.float32)

    def say(state: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        assert state.shape == (len(CONTEXT) + len(PROGRESS),)
        step = np.zeros(1, dtype=np.float32)
        return {"memory_modes": logits, "memory_means": means, "log_step": step}

    guide = PriorGuide(say, problem, compact_devices(problem), MEMORY)
    prior = guide.prior(np.zeros(len(PROGRESS), dtype=np.float32))
    assert prior is not None
    assert prior.step == 1.0
    assert prior.mean[:, 0].tolist() == list(range(len(means) - 1, 3, -1))


def test_progress_counts_what_each_arm_has_spent_and_gained() -> None:
    progress = Progress(firsts=np.zeros(7), first_bound=0.5, bound=0.5, overflow=0.0, spent=8)
    progress.note(STRATEGY, 100, 0.03)
    progress.note("dfs", 20, 0.0)
    progress.note(STRATEGY, 50, 0.01)
    state = dict(zip(PROGRESS, progress.state().tolist(), strict=True))
    assert state["strategy_spent"] == pytest.approx(np.log1p(150) / 6)
    assert state["strategy_gain"] == pytest.approx(0.1)
    assert state["strategy_gained"] == pytest.approx(0.4)
    assert state["dfs_gained"] == 0.0
    assert state["spent"] == pytest.approx(np.log1p(178) / 6)
    assert progress.times(STRATEGY) == 2


def test_a_policy_of_the_wrong_kind_is_refused_in_one_line() -> None:
    path = SHIPPED / f"{PRIOR}.onnx"
    with pytest.raises(UsageError, match=r"is of kind 'prior'; this method needs 'paper'$"):
        PaperMethod(policy=str(path))(
            random_problem(1, 5), MEMORY, Budget(evaluations=10), seed=0, threads=1
        )


def test_a_file_that_is_no_policy_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "policy.onnx"
    path.write_bytes(b"nothing")
    with pytest.raises(UsageError, match=r"is not an ONNX file that runs: [^\n]*$"):
        PriorMethod(policy=str(path))(
            random_problem(1, 5), MEMORY, Budget(evaluations=10), seed=0, threads=1
        )


def test_the_shipped_policy_is_for_the_features_and_arms_of_today() -> None:
    network = network_for("default", PRIOR)
    assert network is not None
    state = np.zeros((1, len(CONTEXT) + len(PROGRESS)), dtype=np.float32)
    state[0, CONTEXT.index("time_weight")] = 1.0
    outputs = network.run({"state": state})
    assert outputs["arms"].shape == (1, len(ARMS))
    assert np.ptp(outputs["arms"]) > 0
    assert outputs["time_means"].shape[1] == outputs["memory_means"].shape[1] == canonical_size()
    assert set(RULE_ARMS) < set(ARMS)
