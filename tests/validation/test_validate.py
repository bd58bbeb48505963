"""Plans are executed, and what was predicted is compared with what was measured."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema
import pytest

from regal.errors import UsageError
from regal.frontends import load
from regal.graph.file import model_to_json
from regal.validation.executors import ExecutorOptions
from regal.validation.plans import order_plans
from regal.validation.report import validation_text, validation_to_dict
from regal.validation.types import Measured
from regal.validation.validate import (
    Predicted,
    ValidationOptions,
    executed,
    memory_agreement,
    time_agreement,
    validate_model,
)
from tests.frontends.tflite_models import diamond
from tests.frontends.tflite_writer import write_tflite
from tests.onnx_models import branches, save

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


@dataclass
class Scripted:
    """Runs plans, which are names, as a script says; an answer is used up."""

    answers: dict[str, list[Measured]]
    calls: list[str] = field(default_factory=list)
    name: str = "script"

    def planned_bytes(self, plan: str) -> int:
        return len(plan)

    def run(self, plan: str) -> Measured:
        self.calls.append(plan)
        return self.answers[plan].pop(0)


def took(ns: int, size: int | None = None) -> Measured:
    return Measured(time_ns=ns, peak_bytes=size)


def predicted(name: str, ns: int, size: int = 0) -> Predicted[str]:
    return Predicted(name=name, plan=name, time_ns=ns, peak_bytes=size)


def test_the_first_plan_is_repeated_between_the_others() -> None:
    executor = Scripted({"a": [took(10), took(12), took(11)], "b": [took(20)], "c": [took(15)]})
    runs = executed([predicted("a", 1), predicted("b", 3), predicted("c", 2)], executor, 2)
    assert executor.calls == ["a", "b", "a", "c", "a"]
    assert [trial.measured.time_ns for trial in runs.trials] == [10, 20, 15]
    assert [again.time_ns for again in runs.repeated] == [12, 11]
    found = time_agreement(runs)
    assert found is not None
    assert found.kendall == pytest.approx(1)
    assert (found.regret, found.noise) == (0, 2)
    assert memory_agreement(runs) is None


def test_a_plan_that_fails_is_left_out_and_the_first_that_runs_is_repeated() -> None:
    failed = Measured(failure="out of memory")
    executor = Scripted({"a": [failed], "b": [took(20, 5), took(21, 5)], "c": [took(10, 9)]})
    runs = executed([predicted("a", 1), predicted("b", 3, 5), predicted("c", 2, 9)], executor, 1)
    assert executor.calls == ["a", "b", "c", "b"]
    found, memory = time_agreement(runs), memory_agreement(runs)
    assert found is not None
    assert memory is not None
    assert (found.count, memory.count) == (2, 2)
    assert (memory.mape, memory.noise) == (0, 0)


def test_when_every_plan_fails_nothing_agrees() -> None:
    executor = Scripted({"a": [Measured(failure="no")], "b": [Measured(failure="no")]})
    runs = executed([predicted("a", 1), predicted("b", 2)], executor, 3)
    assert executor.calls == ["a", "b"]
    assert (time_agreement(runs), memory_agreement(runs), runs.repeated) == (None, None, ())


def test_one_plan_alone_is_repeated_all_the_same() -> None:
    executor = Scripted({"a": [took(1), took(2), took(3)]})
    runs = executed([predicted("a", 1)], executor, 2)
    assert len(runs.repeated) == 2


def test_plans_differ_and_begin_with_the_runtimes_own(tmp_path: Path) -> None:
    model = load(save(branches(), tmp_path / "m.onnx"))
    plans = order_plans(model, 6, seed=0)
    orders = [plan.plans[0].order for _, plan in plans]
    assert plans[0][0] == "before"
    assert len(set(orders)) == len(orders) == 6
    again = order_plans(model, 6, seed=0)
    assert [plan.plans[0].order for _, plan in again] == orders


def test_a_graph_with_one_order_has_one_plan(tmp_path: Path) -> None:
    from tests.frontends.tflite_models import chain

    path = tmp_path / "m.tflite"
    path.write_bytes(write_tflite(chain()))
    assert len(order_plans(load(path), 5, seed=0)) == 1


QUICK = ValidationOptions(plans=4, repeats=2, executor=ExecutorOptions(invocations=2))


def require_schema(document: object) -> None:
    schema = json.loads((SCHEMAS / "validation.schema.json").read_text())
    text = json.dumps(document, allow_nan=False)
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))


def test_onnx_runtime_measures_the_memory_of_orders_as_planned(tmp_path: Path) -> None:
    found = validate_model(save(branches(), tmp_path / "m.onnx"), QUICK)
    require_schema(validation_to_dict(found))
    assert found.executor.startswith("onnxruntime ")
    assert len(found.trials) == 4
    assert len(found.repeated) == 2
    assert found.time is not None
    assert found.time.distinct_predictions == 1  # one device: orders take equal time
    assert found.ops is not None
    assert found.memory is not None  # the heap meter is part of the native build
    assert found.memory.spearman == pytest.approx(1, abs=0.3)
    text = validation_text(found)
    assert "all are predicted equal" in text
    assert "executed by   onnxruntime" in text


def test_tflite_micro_takes_exactly_the_planned_arena(tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    path = tmp_path / "m.tflite"
    path.write_bytes(write_tflite(diamond()))
    found = validate_model(path, QUICK)
    require_schema(validation_to_dict(found))
    assert found.memory is not None
    assert (found.memory.mape, found.memory.regret) == (0, 0)
    assert found.time is None
    assert found.trials[0].measured.failure == ""


def test_a_graph_file_cannot_be_executed(tmp_path: Path) -> None:
    plain = tmp_path / "m.json"
    plain.write_text(model_to_json(load(save(branches(), tmp_path / "m.onnx"))))
    with pytest.raises(UsageError, match="nothing executes plans of a 'graph' model"):
        validate_model(plain)


@pytest.mark.parametrize("numbers", [{"plans": 0}, {"repeats": 0}, {"plans": 1001}])
def test_senseless_numbers_are_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="give 1 to 1000 of each"):
        ValidationOptions(**numbers)  # type: ignore[arg-type]
