"""The policy that ships: it loads, fits the features, and says where it comes from."""

import numpy as np
import pytest

from regal.policy.choice import DEFAULT, SHIPPED, network_for, part_of
from regal.policy.paper import KIND, paper_proposal
from regal.search.devices.compact import compact_devices
from tests.policy.problems import MEMORY, TIME, random_problem

BOTH = (part_of(TIME), part_of(MEMORY))


@pytest.mark.parametrize("objective", BOTH)
def test_the_shipped_policy_says_how_it_was_trained(objective: str) -> None:
    network = network_for(DEFAULT, KIND, objective)
    assert network is not None
    notes = network.about["notes"]
    assert notes["searches"] > 0
    assert notes["config"]["policy"] == KIND
    assert notes["valid_gain"] > 0


@pytest.mark.parametrize("objective", BOTH)
def test_the_shipped_policy_proposes_for_any_problem(objective: str) -> None:
    network = network_for(DEFAULT, KIND, objective)
    for seed, ops, devices in ((1, 1, 1), (2, 9, 2), (3, 14, 4)):
        problem = random_problem(seed, ops, devices)
        compact = compact_devices(problem)
        one, two = (paper_proposal(network, problem, compact, o) for o in (MEMORY, TIME))
        for proposal in (one, two):
            alpha = np.asarray(proposal.alpha)
            assert np.isfinite(alpha).all()
            assert (alpha > 0).all()
        same = np.array_equal(np.asarray(one.alpha), np.asarray(two.alpha))
        assert ops == 1 or not same


@pytest.mark.parametrize("objective", BOTH)
def test_the_card_of_the_shipped_policy_names_its_file_by_hash(objective: str) -> None:
    network = network_for(DEFAULT, KIND, objective)
    assert network is not None
    assert network.sha256[:12] in (SHIPPED / "README.md").read_text()
