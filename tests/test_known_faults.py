"""docs/known_faults.md lists every known fault, and names tests that exist."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from tests.corpus import corpus_file

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "known_faults.md"
FAULTS = ROOT / "tests" / "faults"


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


@pytest.mark.corpus
def test_every_known_fault_has_a_row() -> None:
    with corpus_file("known_faults.csv").open(newline="") as file:
        known = {f"{row['repo']} #{row['number']}" for row in csv.DictReader(file)}
    assert {row[0] for row in rows()} == known


def test_every_row_names_tests_that_exist() -> None:
    source = "".join(path.read_text() for path in sorted(FAULTS.glob("test_*.py")))
    assert len(rows()) == 22
    for fault, _, _, where in rows():
        names = re.findall("`([^`]+)`", where)
        assert names, fault
        for name in names:
            function, _, case = name.partition("[")
            assert not function or f"def test_{function}(" in source, (fault, name)
            assert not case or f'"{case.rstrip("]")}"' in source, (fault, name)
