"""Our simulator beside TensorFlow's, on a graph that is exact by hand. Bounds are generous."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    find_spec("tensorflow") is None, reason="TensorFlow is not installed"
)

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "grappler_check.py"


def test_both_simulators_agree_on_matrix_products_within_a_tenth(tmp_path: Path) -> None:
    """Chain i multiplies squares of 32 (i + 1) rows three times.

    At 10 G operations/s and 20 GB/s that is 2 n^3 / 10 + 3 * 4 n^2 / 20 ns for grappler, which
    adds both, and the longer of both for us; values travel in no time. On one device all of it
    comes one after the other.
    """
    rows = tmp_path / "rows.jsonl"
    subprocess.run(
        [
            *(sys.executable, str(SCRIPT), "wide:4"),
            *("--placements", "4", "--rows", str(rows)),
        ],
        check=True,
        capture_output=True,
        timeout=300,
    )
    row = json.loads(rows.read_text())
    sizes = [32 * (i + 1) for i in range(4)]
    compute = [3 * 2 * n**3 / 10 for n in sizes]
    memory = [3 * 3 * 4 * n**2 / 20 for n in sizes]
    (ours, _), (theirs, _) = row["ours"][0], row["theirs"][0]
    assert ours == pytest.approx(sum(compute), rel=0.01)
    assert theirs == pytest.approx(sum(compute) + sum(memory), rel=0.1)
    for (time, peak), (other_time, other_peak) in zip(row["ours"], row["theirs"], strict=True):
        assert 0.8 < time / other_time < 1.1
        assert 0.3 < peak / other_peak < 3
