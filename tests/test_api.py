"""The functions of `regal` itself: what they take, what they return, what they refuse."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

import regal
from regal.graph.file import model_to_json
from regal.graph.types import LoadedModel
from regal.options import Options
from tests.graphs import two_branches

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = {field.name for field in fields(Options)}


@pytest.fixture
def graph_file(tmp_path: Path) -> Path:
    path = tmp_path / "graph.json"
    path.write_text(
        model_to_json(LoadedModel(framework="graph", entries=(two_branches(),), source=None))
    )
    return path


def test_the_public_names_are_these() -> None:
    assert sorted(regal.__all__) == [
        "BackendError",
        "ModelError",
        "PlanError",
        "RegalError",
        "UsageError",
        "__version__",
        "load",
        "optimize",
        "schedule",
    ]


def test_optimize_takes_every_option_that_matters_on_one_device() -> None:
    names = set(inspect.signature(regal.optimize).parameters) - {"model", "out"}
    assert names == OPTIONS - {"objective", "weights", "policy"}


def test_schedule_takes_every_option() -> None:
    names = set(inspect.signature(regal.schedule).parameters) - {"model", "out"}
    weights = {"time_weight", "memory_weight"}
    assert names == OPTIONS - {"weights"} | weights


def test_options_have_the_same_defaults_everywhere_but_for_the_objective_of_schedules() -> None:
    defaults = {field.name: getattr(Options(), field.name) for field in fields(Options)}
    for function in (regal.optimize, regal.schedule):
        for name, parameter in inspect.signature(function).parameters.items():
            if name in OPTIONS - {"objective", "shapes", "dims"}:
                assert parameter.default == defaults[name], (function.__name__, name)


def test_optimize_returns_the_peak_that_loading_and_planning_gives(graph_file: Path) -> None:
    result = regal.optimize(graph_file)
    assert regal.load(graph_file).graph.ops == result.model.graph.ops
    assert result.peak_bytes == result.peak_bound
    assert result.is_order_optimal
    assert result.system.name == "cpu"


def test_optimize_plans_for_the_device_that_is_named(graph_file: Path) -> None:
    slow, fast = (
        regal.optimize(graph_file, devices=name).time_ns for name in ("cpu", "gpu-nvlink-4:1")
    )
    assert slow != fast


def test_schedule_returns_figures_within_their_bounds_and_those_of_before(
    graph_file: Path,
) -> None:
    result = regal.schedule(graph_file, devices="2", objective="memory", evaluations=100)
    assert result.peak_bound <= result.peak_bytes <= result.before.peak_bytes
    assert result.time_bound_ns <= result.time_ns
    assert result.peak_bytes == max(result.plan.plans[0].figures.peak_bytes)
    assert result.is_peak_optimal == (result.peak_bytes == result.peak_bound)
    assert result.fits


def test_a_schedule_above_the_capacity_does_not_fit(graph_file: Path) -> None:
    assert not regal.schedule(graph_file, devices="2", capacity=10, evaluations=100).fits
    assert regal.schedule(graph_file, devices="2", capacity=1000, evaluations=100).fits


def test_each_function_names_the_other_where_the_number_of_devices_is_wrong(
    graph_file: Path,
) -> None:
    with pytest.raises(regal.UsageError, match="several devices: use regal"):
        regal.optimize(graph_file, devices="2")
    with pytest.raises(regal.UsageError, match="one device: name several, or use optimize"):
        regal.schedule(graph_file, devices="1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads is 0; give 1 or more"),
        ({"seconds": -1.0}, "seconds is -1.0; give 0 or more"),
        ({"seconds": float("nan")}, "seconds is nan; give 0 or more"),
        ({"capacity": -1}, "capacity is -1; give 0 or more bytes"),
    ],
)
def test_numbers_that_the_command_line_would_refuse_are_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    model = tmp_path / "model.json"  # nothing is read before
    with pytest.raises(regal.UsageError, match=message):
        regal.optimize(model, **options)
    with pytest.raises(regal.UsageError, match=message):
        regal.schedule(model, devices="2", **options)
