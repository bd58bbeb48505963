"""Tables, pages and pictures from rows."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from regal.errors import UsageError
from regal.evaluation.page import END, marker_of, suite_and_rows, with_part
from regal.evaluation.plots import plots_of
from regal.evaluation.rows import row_to_json
from regal.evaluation.tables import report
from tests.evaluation.made import row, rows, suite

if TYPE_CHECKING:
    from pathlib import Path

    from regal.evaluation.rows import Row

SUITE = suite("a", "b")


def some_rows() -> list[Row]:
    found = rows({"a": [100] * 6, "b": [90, 120, 100, 80, 80, 100]})
    return [*found, row(method="b", graph="g9", family="f9", failure="took 51, was given 50")]


def test_the_report_has_every_number_that_it_promises() -> None:
    text = report(SUITE, some_rows())
    assert "13 runs, 1 of them failed; 7 graphs of 7 families (train)" in text
    line = next(line for line in text.splitlines() if line.startswith("| time | 2 | 50 ev"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[3] == "b"
    assert cells[4].startswith("+5.00 [")
    assert cells[5:9] == ["+5.00", "3/2/1", "60 %", "10 %"]
    assert cells[10:] == ["6 of 7", "6"]
    assert "| b | 50 evaluations | 1 | took N, was given N | g9: took 51, was given 50 |" in text
    assert "| f1 | -20.00 (1) |" in text


def test_the_same_rows_in_any_order_make_the_same_numbers() -> None:
    found = some_rows()
    gains = [line for line in report(SUITE, found).splitlines() if line.startswith("| time")]
    back = [line for line in report(SUITE, found[::-1]).splitlines() if line.startswith("| time")]
    assert gains == back


def test_known_optima_have_a_table_of_gaps() -> None:
    found = rows({"a": [50, 100], "b": [51, 50]}, optimum=50.0)
    text = report(SUITE, found)
    assert "| time | 50 evaluations | a | 50.000 | 100.000 | 1 | 2 of 2 | 0.000 |" in text
    assert "| time | 50 evaluations | b | 1.000 | 2.000 | 1 | 2 of 2 | 0.000 |" in text


def test_failures_count_among_the_gaps_only_where_an_optimum_was_planted() -> None:
    found = rows({"a": [50]}, optimum=50.0)
    lost = {"method": "a", "failure": "broke", "optimum": None}
    found += [row(graph="p", split="planted", **lost), row(graph="q", split="test", **lost)]
    assert "| time | 50 evaluations | a | 0.000 | 0.000 | 1 | 1 of 2 |" in report(SUITE, found)


def test_rows_of_runs_that_a_suite_no_longer_asks_for_are_not_in_its_tables(
    tmp_path: Path,
) -> None:
    asked = {"suite": "mine", "budget": "50 evaluations", "options": {"policy": "none"}}
    kept = row(method="brkga", name="brkga", **asked)
    gone = {"system": "4"}, {"seed": 9}, {"objective": "memory"}, {"threads": 2}, {"name": "heft"}
    (tmp_path / "mine.toml").write_text(
        'name = "mine"\nabout = "Mine."\nobjectives = ["time"]\nsystems = ["2"]\n'
        '[[references]]\nmethod = "brkga"\n[[methods]]\nname = "brkga"\n'
        '[[budgets]]\nevaluations = 50\n[[graphs]]\nsplits = ["train"]\n'
    )
    changed = [row(**{"method": "brkga", "name": "brkga", **asked, **change}) for change in gone]
    (tmp_path / "mine.jsonl").write_text("".join(map(row_to_json, [kept, *changed])))
    _, found = suite_and_rows(str(tmp_path / "mine.toml"), tmp_path)
    assert found == [kept]


def test_only_what_is_between_the_markers_changes() -> None:
    page = f"before\n{marker_of('x')}\nold\n{END}\nafter\n{marker_of('y')}\nkept\n{END}\n"
    new = with_part(page, "x", "new\n", "page")
    assert new == page.replace("\nold\n", "\n\nnew\n\n")
    assert with_part(new, "x", "new\n", "page") == new


@pytest.mark.parametrize("page", ["", marker_of("x")])
def test_a_missing_marker_is_named(page: str) -> None:
    with pytest.raises(UsageError, match="is missing; add it where the tables belong"):
        with_part(page, "x", "new", "page.md")


def test_pictures_are_drawn_for_every_objective() -> None:
    found = rows({"a": [100, 100, 100], "b": [90, 120, 80]}, curve=((10, 0.1, 300.0),))
    pictures = plots_of(SUITE, found)
    assert sorted(pictures) == ["made_anytime_time.svg", "made_gain_time.svg"]
    for picture in pictures.values():
        assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert pictures["made_anytime_time.svg"].count("<polyline") == 2
