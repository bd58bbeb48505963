"""Tables, pages and pictures from rows."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from regal.errors import UsageError
from regal.evaluation.page import END, marker_of, with_part
from regal.evaluation.plots import plots_of
from regal.evaluation.tables import report
from tests.evaluation.made import row, rows, suite

if TYPE_CHECKING:
    from regal.evaluation.rows import Row

SUITE = suite("a", "b")


def some_rows() -> list[Row]:
    found = rows({"a": [100, 100, 100, 100], "b": [90, 120, 100, 80]})
    return [*found, row(method="b", graph="g9", family="f9", failure="took 51, was given 50")]


def test_the_report_has_every_number_that_it_promises() -> None:
    text = report(SUITE, some_rows())
    assert "9 runs, 1 of them failed; 5 graphs of 5 families (train)" in text
    line = next(line for line in text.splitlines() if line.startswith("| time | 2 | 50 ev"))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[3] == "b"
    assert cells[4].startswith("+2.50 [")
    assert cells[5:9] == ["+5.00", "2/1/1", "33 %", "5 %"]
    assert cells[10:] == ["4 of 5", "4"]
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
