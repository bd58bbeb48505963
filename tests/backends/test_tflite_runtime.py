"""Plans in the real runtimes: equal outputs, and the memory that was planned."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from regal.backends.tflite import apply, refine, verify
from regal.backends.tflite.measure import LITERT, TFLM, Run, run_model
from regal.backends.tflite.rewrite import with_operator_orders
from regal.backends.tflite.tflm_planner import (
    ArenaBuffer,
    arena_buffers,
    head_bytes,
    place_like_tflm,
)
from regal.backends.tflite.verify import compare_runs
from regal.frontends.tflite import load, source_of
from regal.frontends.tflite.offline import UNPLANNED
from tests.backends.simple_plans import model_plan
from tests.frontends.tflite_models import all_models, chain, counter, floats, loop
from tests.frontends.tflite_writer import G, M, O, T, write_tflite

if TYPE_CHECKING:
    from pathlib import Path

    from regal.graph.types import LoadedModel
    from regal.plan.types import Allocation, ModelPlan, Plan

pytest.importorskip("tflite_micro")
pytest.importorskip("ai_edge_litert")

# A concatenation of floats along an inner axis: TFLM's kernel takes at most 10 inputs.
IN_TFLM = sorted(set(all_models()))


def written(tmp_path: Path, model: M) -> tuple[Path, LoadedModel]:
    path = tmp_path / "model.tflite"
    path.write_bytes(write_tflite(model))
    return path, load(path, {}, {})


def measured_head(model: LoadedModel, data: bytes) -> int:
    run = run_model(source_of(model), data, TFLM, seed=0, invocations=0, timeout_s=60)
    assert not run.error
    return run.numbers["head_bytes"]


@pytest.mark.parametrize("name", IN_TFLM)
def test_a_random_legal_plan_gives_equal_outputs_in_both_runtimes(
    tmp_path: Path, name: str
) -> None:
    path, model = written(tmp_path, all_models()[name])
    out = tmp_path / "out.tflite"
    out.write_bytes(apply(model, model_plan(model, 3)).files[""])
    verdict = verify(path, out, seed=1)
    assert [check.runtime.split()[0] for check in verdict.checks] == [
        "tflite-micro",
        "ai-edge-litert",
    ]
    assert verdict.outputs_equal, [check.detail for check in verdict.checks]
    assert {check.invocations for check in verdict.checks} == {20}


@pytest.mark.parametrize("name", IN_TFLM)
def test_the_replica_of_the_planner_predicts_the_head(tmp_path: Path, name: str) -> None:
    _, model = written(tmp_path, all_models()[name])
    source = source_of(model)
    assert head_bytes(source, {}, None) == measured_head(model, source.file.data)


def test_the_head_is_the_planned_arena(tmp_path: Path) -> None:
    path, model = written(tmp_path, chain())
    plan = model_plan(model)
    out = tmp_path / "out.tflite"
    out.write_bytes(apply(model, plan).files[""])
    (tflm, _) = verify(path, out, seed=0, invocations=2).checks
    assert plan.plans[0].arena_bytes == 16
    assert (tflm.before["head_bytes"], tflm.after["head_bytes"]) == (32, 16)
    assert tflm.before["total_bytes"] - tflm.after["total_bytes"] == 16


def test_a_changed_weight_is_found_and_named(tmp_path: Path) -> None:
    path, _ = written(tmp_path, chain())
    out = tmp_path / "out.tflite"
    out.write_bytes(path.read_bytes().replace(floats(1, 2, 3, 4), floats(1, 2, 3, 5)))
    verdict = verify(path, out, seed=0, invocations=2)
    assert not verdict.outputs_equal
    assert [check.detail for check in verdict.checks] == ["output 0 differs in invocation 0"] * 2


def test_a_write_moved_before_a_read_shows_in_later_invocations(tmp_path: Path) -> None:
    path, model = written(tmp_path, counter())
    wrong = (0, 1, 2, 3, 4, 6, 5, 7, 8)  # the second read before the write
    out = tmp_path / "out.tflite"
    out.write_bytes(with_operator_orders(source_of(model).file, {0: wrong}))
    assert not verify(path, out, seed=0, invocations=3).outputs_equal


def test_a_model_that_fails_after_the_change_is_a_difference(tmp_path: Path) -> None:
    good = Run(runtime=TFLM, digests=(("a",),))
    check = compare_runs("tflm 1", good, Run(runtime=TFLM, error="ended with status -6"))
    assert (check.outputs_equal, check.detail) == (
        False,
        "the new model fails: ended with status -6",
    )


def test_outputs_that_never_change_are_called_a_weak_check() -> None:
    run = Run(runtime=TFLM, digests=(("a", "b"), ("a", "b")))
    check = compare_runs("tflm 1", run, run)
    assert check.outputs_equal
    assert "a weak check" in check.detail
    lively = Run(runtime=TFLM, digests=(("a", "b"), ("a", "c")))
    assert compare_runs("tflm 1", lively, lively).detail == ""


def test_what_no_runtime_can_run_is_skipped_with_the_reason(tmp_path: Path) -> None:
    graph = G(
        tensors=[T(name="x"), T(name="y")],
        ops=[O(kind="CUSTOM", custom="NoSuchOp", inputs=("x",), outputs=("y",))],
        inputs=("x",),
        outputs=("y",),
    )
    path, _ = written(tmp_path, M(subgraphs=[graph]))
    verdict = verify(path, path, seed=0)
    assert verdict.checks == ()
    assert "TFLM: " in verdict.skipped
    assert "LiteRT: Encountered unresolved custom op: NoSuchOp" in verdict.skipped


def test_a_run_past_its_time_limit_is_ended_and_said(tmp_path: Path) -> None:
    # The loop counts up from what it is given to 3 - and never gets there by adding zero.
    main, cond, body = loop().subgraphs
    stuck = replace(
        body,
        tensors=[replace(t, data=bytes(4)) if t.name == "one" else t for t in body.tensors],
    )
    _, model = written(tmp_path, M(subgraphs=[main, cond, stuck]))
    source = source_of(model)
    run = run_model(source, source.file.data, TFLM, seed=0, invocations=1, timeout_s=3)
    assert run.error == "did not finish within 3 s"


def test_modules_in_the_folder_of_the_user_are_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = written(tmp_path, chain())
    (tmp_path / "hashlib.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert verify(path, path, seed=0, invocations=1).outputs_equal


def test_resized_inputs_run_in_litert_alone(tmp_path: Path) -> None:
    graph = chain().subgraphs[0]
    tensors = [
        replace(t, signature=(-1, 4)) if t.name in ("x", "p", "y") else t for t in graph.tensors
    ]
    ops = [replace(graph.ops[0], outputs=("y",))]
    path, _ = written(tmp_path, M(subgraphs=[replace(graph, tensors=tensors, ops=ops)]))
    verdict = verify(path, path, seed=0, invocations=2, shapes={"x": (6, 4)})
    assert [check.runtime.split()[0] for check in verdict.checks] == ["ai-edge-litert"]
    assert verdict.outputs_equal
    assert verdict.skipped == "TFLM: it cannot resize inputs"


def moved_up(plan: ModelPlan, distance: int) -> ModelPlan:
    """Return a wasteful plan: the same, `distance` bytes further up."""
    (graph_plan,) = plan.plans

    def up(place: Allocation) -> Allocation:
        return replace(place, offset=place.offset + distance)

    wasteful: Plan = replace(
        graph_plan,
        offsets={s: up(a) for s, a in graph_plan.offsets.items()},
        arena_bytes=graph_plan.arena_bytes + distance,
    )
    return replace(plan, plans=(wasteful,))


def test_a_plan_that_helps_is_written(tmp_path: Path) -> None:
    _, model = written(tmp_path, chain())
    applied = refine(model, model_plan(model))
    assert measured_head(model, applied.files[""]) == 16
    assert "OfflineMemoryAllocation" in applied.notes[0]


def test_a_wasteful_plan_leaves_the_file_as_it_is(tmp_path: Path) -> None:
    _, model = written(tmp_path, chain())
    applied = refine(model, moved_up(model_plan(model), 4096))
    assert applied.files[""] == source_of(model).file.data
    assert applied.notes[0].startswith("the file is kept as it is")


def test_the_planner_replica_places_large_buffers_first_and_later_of_equals_first() -> None:
    def buffer(name: str, size: int, first: int, last: int, offset: int = UNPLANNED) -> ArenaBuffer:
        return ArenaBuffer(name=name, bytes=size, first=first, last=last, offset=offset)

    placed = place_like_tflm(
        [
            buffer("a", 16, 0, 1),
            buffer("b", 32, 1, 2),
            buffer("c", 16, 1, 1),
            buffer("fixed", 16, 1, 3, offset=16),
        ]
    )
    # b finds no 32 bytes below the fixed one; c comes before a, and both want byte 0.
    assert {b.name: b.offset for b in placed} == {"fixed": 16, "b": 32, "c": 0, "a": 64}


def test_scratch_lives_while_the_bodies_of_its_op_run(tmp_path: Path) -> None:
    _, model = written(tmp_path, all_models()["branches"])
    lives = {b.name: (b.first, b.last) for b in arena_buffers(source_of(model), {}, None)}
    # Scope 1 is the IF, 2 enters one branch (two ops), 5 the other (two ops), 8 is the ADD.
    assert lives["c"] == (0, 7)
    assert lives["i"] == (1, 8)
    assert lives["y"] == (8, 8)


def test_values_are_equal_for_equal_seeds_and_differ_between_invocations() -> None:
    from regal.backends.tflite.inputs import InputSpec, values_of

    spec = InputSpec(argument="x", dtype="int8", shape=(64,), scale=0.1, zero_point=-128, limit=2)
    first = values_of(spec, 7, 0, 0, 0)
    assert (values_of(spec, 7, 0, 0, 0) == first).all()
    assert (values_of(spec, 7, 0, 1, 0) != first).any()
    # A zero point at the end of the range must not clip half of the values away.
    assert len(set(first.tolist())) > 16


@pytest.mark.parametrize("dtype", ["float32", "uint8", "int16", "int32", "bool", "complex64"])
def test_inputs_have_the_type_and_shape_asked_for(dtype: str) -> None:
    from regal.backends.tflite.inputs import InputSpec, values_of

    spec = InputSpec(argument="x", dtype=dtype, shape=(2, 3), scale=0, zero_point=0, limit=5)
    value = values_of(spec, random.randrange(99), 0, 0, 0)
    assert (value.dtype.name, value.shape) == (dtype, (2, 3))


def test_litert_is_measured_by_the_extent_of_its_arena(tmp_path: Path) -> None:
    _, model = written(tmp_path, chain())
    source = source_of(model)
    run = run_model(source, source.file.data, LITERT, seed=0, invocations=1, timeout_s=60)
    assert run.numbers["span_bytes"] >= 32
