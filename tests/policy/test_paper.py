"""The paper's method: genes follow rows, mixtures become Betas, BRKGA is guided by them."""

from pathlib import Path

import numpy as np
import pytest

from regal import _native
from regal.errors import UsageError
from regal.policy.bins import (
    BIASES,
    MEAN_BINS,
    SPREAD_BINS,
    bin_means,
    bin_spreads,
    expected,
    prior_logits,
)
from regal.policy.choice import network_for, require_policy
from regal.policy.paper import (
    NO_ROW,
    PAPER_SEARCH,
    PaperMethod,
    gene_rows,
    paper_proposal,
    proposal_of_rows,
    row_logits,
)
from regal.search.devices.brkga import run_device_brkga
from regal.search.devices.compact import compact_devices
from regal.search.devices.methods import device_method_named
from regal.search.types import Budget
from tests.policy.problems import MEMORY, random_problem


@pytest.mark.parametrize("seed", range(20))
def test_every_gene_follows_the_row_of_its_op(seed: int) -> None:
    problem = random_problem(seed, 2 + seed % 9, 1 + seed % 3)
    rows = gene_rows(problem)
    layout = _native.GeneLayout(problem.native, _native.DeviceDecoder.RAW)
    n, pairs = problem.n_ops, problem.native.n_groups * problem.n_devices
    assert len(rows) == layout.size
    assert rows[layout.priority : layout.affinity].tolist() == list(range(n))
    assert rows[layout.affinity : layout.colocation].tolist() == list(range(n, n + pairs))
    for tensor, row in enumerate(rows[layout.transfer : layout.weight]):
        producer = problem.producers[tensor]
        assert row == (NO_ROW if producer < 0 else n + pairs + producer)


def test_rows_of_a_network_are_heads_one_after_the_other() -> None:
    outputs = {
        "priority": np.array([[0.0], [1.0]], dtype=np.float32),
        "affinity": np.array([[[2.0], [3.0]], [[4.0], [5.0]]], dtype=np.float32),
        "transfer": np.array([[6.0], [7.0]], dtype=np.float32),
    }
    assert row_logits(outputs).ravel().tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


def test_one_certain_bin_is_its_own_beta() -> None:
    logits = np.full((1, MEAN_BINS + SPREAD_BINS + len(BIASES)), -50.0, dtype=np.float32)
    logits[0, [3, MEAN_BINS + 9, MEAN_BINS + SPREAD_BINS + 4]] = 50.0
    mean, spread, bias = expected(logits)
    assert mean[0] == pytest.approx(bin_means()[3])
    assert spread[0] == pytest.approx(bin_spreads()[9], rel=1e-5)
    assert bias[0] == pytest.approx(0.9)


def test_bins_are_averaged_and_spreads_by_their_logarithms() -> None:
    logits = np.full((1, MEAN_BINS + SPREAD_BINS + len(BIASES)), -50.0, dtype=np.float32)
    logits[0, [2, 5, MEAN_BINS + 1, MEAN_BINS + 8, MEAN_BINS + SPREAD_BINS]] = 50.0
    mean, spread, bias = expected(logits)
    assert mean[0] == pytest.approx((bin_means()[2] + bin_means()[5]) / 2)
    assert spread[0] == pytest.approx(np.sqrt(bin_spreads()[1] * bin_spreads()[8]), rel=1e-4)
    assert bias[0] == pytest.approx(0.5)


def test_a_policy_that_knows_nothing_proposes_keys_in_the_middle() -> None:
    mean, spread, bias = expected(prior_logits()[None])
    assert mean[0] == pytest.approx(0.5)
    assert 0.1 < spread[0] < 0.25
    assert bias[0] == pytest.approx(0.7)


def test_transfers_of_graph_inputs_stay_uniform() -> None:
    rows = np.array([0, NO_ROW])
    proposal = proposal_of_rows(rows, np.array([0.9]), np.array([0.1]), np.array([0.5]))
    assert proposal.alpha is not None
    assert proposal.beta is not None
    assert proposal.elite_bias is not None
    assert proposal.alpha.tolist() == pytest.approx([8.1, 1.0])
    assert proposal.beta.tolist() == pytest.approx([0.9, 1.0])
    assert proposal.elite_bias.tolist() == [0.5, 0.7]


def test_keys_that_are_nearly_certain_are_what_brkga_starts_from() -> None:
    problem = random_problem(7, 9)
    compact = compact_devices(problem)
    rng = np.random.default_rng(1)
    rows = gene_rows(problem)
    count = int(rows.max()) + 1
    mean = rng.uniform(0.1, 0.9, count)
    proposal = proposal_of_rows(rows, mean, np.full(count, 1e-4), np.full(count, 0.7))
    found = run_device_brkga(
        compact, MEMORY, Budget(evaluations=1), seed=0, options=PAPER_SEARCH, proposal=proposal
    )
    known = rows != NO_ROW
    keys = found.chromosomes[0][known] * 2.0**-32
    assert np.abs(keys - mean[rows[known]]).max() < 0.05


def test_without_a_policy_the_method_is_brkga() -> None:
    problem = random_problem(11, 12)
    budget = Budget(evaluations=300)
    ours, plain = (
        device_method_named(name, "none")(problem, MEMORY, budget, seed=4, threads=1)
        for name in ("regal-paper", "brkga")
    )
    assert ours.schedule.placement.tolist() == plain.schedule.placement.tolist()
    assert ours.schedule.order.tolist() == plain.schedule.order.tolist()


def test_an_untrained_policy_is_repeatable_on_any_number_of_threads() -> None:
    problem = random_problem(12, 12)
    method = PaperMethod(policy="untrained")
    one, two = (
        method(problem, MEMORY, Budget(evaluations=250), seed=4, threads=threads)
        for threads in (1, 3)
    )
    assert one.schedule.order.tolist() == two.schedule.order.tolist()
    assert one.evaluations == two.evaluations == 250


def test_the_proposal_of_no_network_is_the_same_for_all_genes() -> None:
    problem = random_problem(13, 6)
    proposal = paper_proposal(None, problem, compact_devices(problem), MEMORY)
    assert proposal.alpha is not None
    known = gene_rows(problem) != NO_ROW
    assert len(set(proposal.alpha[known].tolist())) == 1


def test_a_policy_is_a_name_or_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither a file nor one of none, untrained, default"):
        require_policy(str(tmp_path / "absent.onnx"))
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    assert require_policy(str(broken)) == str(broken)
    with pytest.raises(UsageError, match="is not an ONNX file that runs"):
        network_for(str(broken), "paper")
