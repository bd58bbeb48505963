"""Which tasks are drawn: the right side of the split, sizes, families, headroom; repeatable."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from regal.data import load_index
from regal.errors import UsageError
from regal.learning.environment import GraphEnvironment
from regal.learning.options import DataOptions, SearchOptions
from regal.learning.workload import GraphWorkload, size_limit, train_entries, valid_specs

SMALL = DataOptions(fewest_ops=30, most_ops=120, valid_graphs=3, varied=0.5, limit=12)
SEARCH = SearchOptions(evaluations=20, lesson_evaluations=60, lessons=2)
SPLIT = {entry.key: entry.split for entry in load_index()}
OPS = {entry.key: entry.ops for entry in load_index()}


@pytest.fixture(scope="module")
def environment() -> GraphEnvironment:
    return GraphEnvironment()


def test_only_the_train_side_is_trained_on_and_only_the_valid_side_validates(
    environment: GraphEnvironment,
) -> None:
    workload = GraphWorkload(SMALL, SEARCH, environment)
    drawn = workload.draw(10**6, 20, np.random.default_rng(0))
    assert {SPLIT[spec.key] for spec in drawn} == {"train"}
    assert {SPLIT[spec.key] for spec in workload.valid} == {"valid"}
    assert all(30 <= OPS[spec.key] <= 120 for spec in (*drawn, *workload.valid))
    assert {spec.variation for spec in workload.valid} == {-1}


def test_a_seed_draws_the_same_tasks(environment: GraphEnvironment) -> None:
    workload = GraphWorkload(SMALL, SEARCH, environment)
    one, two = (workload.draw(0, 6, np.random.default_rng(7)) for _ in range(2))
    assert one == two
    assert one != workload.draw(0, 6, np.random.default_rng(8))


def test_about_the_wanted_share_of_tasks_are_variations(environment: GraphEnvironment) -> None:
    workload = GraphWorkload(replace(SMALL, headroom=-1.0), SEARCH, environment)
    drawn = workload.draw(10**6, 60, np.random.default_rng(0))
    assert 0.3 < np.mean([spec.variation >= 0 for spec in drawn]) < 0.7
    seeds = Counter(spec.variation for spec in drawn if spec.variation >= 0)
    assert max(seeds.values()) == 1


def test_random_devices_have_a_seed_of_their_own(environment: GraphEnvironment) -> None:
    options = replace(SMALL, devices=("random",), headroom=-1.0)
    workload = GraphWorkload(options, SEARCH, environment)
    drawn = workload.draw(10**6, 5, np.random.default_rng(0))
    assert len({spec.devices for spec in drawn}) == 5
    assert all(spec.devices.startswith("random:") for spec in (*drawn, *workload.valid))


def test_tasks_have_headroom(environment: GraphEnvironment) -> None:
    workload = GraphWorkload(SMALL, SEARCH, environment)
    for spec in workload.valid:
        task = environment.task(spec)
        assert task.baseline(SEARCH.evaluations, 0) > 1.01 * task.bound


def test_validation_takes_families_in_turn_and_each_objective_once() -> None:
    options = replace(SMALL, most_ops=2000, valid_graphs=5, objectives=("memory", "memory", "time"))
    specs = valid_specs(options)
    family = {entry.key: entry.family for entry in load_index()}
    assert len(specs) == 10
    assert len({family[spec.key] for spec in specs}) == 5
    assert (
        max(Counter(family[e.key] for e in train_entries(replace(options, limit=9))).values()) == 1
    )


def test_the_curriculum_grows_to_the_largest_graphs() -> None:
    options = DataOptions(first_most_ops=100, most_ops=1600, growth=4)
    assert [size_limit(options, i) for i in (0, 1, 2, 4, 99)] == [100, 200, 400, 1600, 1600]
    assert size_limit(replace(options, first_most_ops=1600), 0) == 1600


def test_lessons_are_at_least_as_good_as_short_searches(environment: GraphEnvironment) -> None:
    workload = GraphWorkload(replace(SMALL, limit=6, headroom=0.0), SEARCH, environment)
    for spec, lessons in workload.lessons(np.random.default_rng(0)):
        task = environment.task(spec)
        assert len(lessons) == 2
        assert min(one.cost for one in lessons) <= task.baseline(SEARCH.evaluations, 0)
        keys = lessons[0].keys
        assert keys is not None
        assert len(keys) == int(task.rows.max()) + 1


def test_no_graph_of_the_wanted_size_is_told() -> None:
    with pytest.raises(UsageError, match="no graph of the train side has 1 to 2 ops"):
        train_entries(DataOptions(fewest_ops=1, most_ops=2))
