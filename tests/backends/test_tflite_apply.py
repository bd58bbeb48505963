"""Rewriting: orders and plans go in, and not one other byte changes."""

from __future__ import annotations

import io
import struct
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from regal.backends.tflite import apply, c_header
from regal.backends.tflite.offsets import arena_offsets, placed_subgraphs
from regal.backends.tflite.rewrite import (
    require_same_model,
    with_offline_plan,
    with_operator_orders,
)
from regal.errors import BackendError
from regal.frontends.tflite import load, source_of
from regal.frontends.tflite.model import OFFLINE_PLAN, FileOperator, TfliteFile, parse_tflite
from regal.frontends.tflite.offline import offline_offsets
from tests.backends.simple_plans import model_plan
from tests.frontends.tflite_models import all_models, branches, chain, counter, diamond, loop
from tests.frontends.tflite_writer import G, M, O, T, write_tflite

if TYPE_CHECKING:
    from pathlib import Path

    from regal.graph.types import LoadedModel


def loaded(tmp_path: Path, model: M | bytes) -> LoadedModel:
    path = tmp_path / "model.tflite"
    path.write_bytes(model if isinstance(model, bytes) else write_tflite(model))
    return load(path, {}, {})


def contents(file: TfliteFile) -> object:
    """Return everything a file says, except order, offline plan, and where things lie."""
    return (
        [
            (
                s.name,
                s.tensors,
                s.inputs,
                s.outputs,
                sorted(map(_op_text, s.operators)),
            )
            for s in file.subgraphs
        ],
        [m for m in file.metadata if m.name != OFFLINE_PLAN],
        file.signatures,
        [bytes(file.buffer_data(i)) for i in range(len(file.buffers))],
        file.root.text(3),
    )


def _op_text(op: FileOperator) -> str:
    return str(op)[: str(op).index("options=")]


@pytest.mark.parametrize("name", sorted(all_models()))
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_an_applied_model_says_the_same_in_the_new_order(
    tmp_path: Path, name: str, seed: int | None
) -> None:
    model = loaded(tmp_path, all_models()[name])
    plan = model_plan(model, seed)
    data = apply(model, plan).files[""]
    before, after = source_of(model).file, parse_tflite(data)
    kinds = [after.subgraphs[0].operators[i].outputs for i in range(len(plan.plans[0].order))]
    assert kinds == [before.subgraphs[0].operators[i].outputs for i in plan.plans[0].order]
    old, new = contents(before), contents(after)
    assert isinstance(old, tuple)
    assert isinstance(new, tuple)
    assert new[:3] == old[:3]
    assert new[3][: len(old[3])] == old[3]
    assert new[4] == old[4]


@pytest.mark.parametrize("name", sorted(all_models()))
def test_the_old_bytes_follow_unchanged_but_for_the_operator_list(
    tmp_path: Path, name: str
) -> None:
    model = loaded(tmp_path, all_models()[name])
    file = source_of(model).file
    data = apply(model, model_plan(model, 1)).files[""]
    old = data[len(data) - len(file.data) :]
    lists = [(s.operators_at, s.operators_at + 4 * len(s.operators)) for s in file.subgraphs]
    changed = [i for i, (a, b) in enumerate(zip(old, file.data, strict=True)) if a != b]
    assert all(any(start <= i < end for start, end in lists) for i in changed)
    assert (len(data) - len(file.data)) % 64 == 0


def test_the_plan_is_found_under_its_name_with_one_offset_per_tensor(tmp_path: Path) -> None:
    model = loaded(tmp_path, chain())
    data = apply(model, model_plan(model)).files[""]
    file = parse_tflite(data)
    entry = file.metadata[-1]
    start, size = file.buffers[entry.buffer]
    assert entry.name == "OfflineMemoryAllocation"
    assert start % 16 == 0
    # x, p, q and y share their bytes one after the other; weights are not planned.
    assert struct.unpack(f"<{size // 4}i", data[start : start + size]) == (
        *(1, 1, 6),
        *(0, -1, -1, 0, 0, 0),
    )


def test_applying_again_does_not_grow_the_file(tmp_path: Path) -> None:
    model = loaded(tmp_path, diamond())
    once = apply(model, model_plan(model, 1)).files[""]
    again = loaded(tmp_path, once)
    twice = apply(again, model_plan(again, 2)).files[""]
    assert len(twice) == len(once)
    assert offline_offsets(parse_tflite(twice)) is not None


def test_an_older_plan_of_another_size_is_replaced(tmp_path: Path) -> None:
    stale = replace(chain(), metadata=[(OFFLINE_PLAN, bytes(12)), ("other", b"kept")])
    model = loaded(tmp_path, stale)
    file = parse_tflite(
        with_offline_plan(source_of(model).file, source_of(model).file.data, [-1] * 6)
    )
    assert [entry.name for entry in file.metadata] == ["other", OFFLINE_PLAN]
    assert bytes(file.buffer_data(file.metadata[0].buffer)) == b"kept"
    assert offline_offsets(file) == [(-1,) * 6]


def test_files_appended_as_zip_stay_readable(tmp_path: Path) -> None:
    path = tmp_path / "packed.tflite"
    path.write_bytes(write_tflite(chain()))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.txt", "one\ntwo\n")
    model = load(path, {}, {})
    data = apply(model, model_plan(model)).files[""]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.read("labels.txt") == b"one\ntwo\n"


def test_positions_counted_from_the_start_of_the_file_move_along(tmp_path: Path) -> None:
    # As in models above 2 GB: the data lies behind the flatbuffer, at an absolute offset.
    data = bytearray(write_tflite(chain()))
    table = parse_tflite(bytes(data)).buffer_tables[1]
    payload = struct.pack("<4f", 5, 6, 7, 8)
    where = len(data)
    # Turn the 1-field table into one with offset and size: a new vtable and table at the end.
    new = where + 32
    data += payload + bytes(16)
    data += struct.pack("<5H", 10, 24, 0, 8, 16) + bytes(6)
    data += struct.pack("<iIQQ", 16, 0, where, 16)
    (slots_at, _) = parse_tflite(bytes(data)).root.vector(4, 4)
    struct.pack_into("<I", data, slots_at + 4, new + 16 - slots_at - 4)
    del table
    model = loaded(tmp_path, bytes(data))
    file = parse_tflite(apply(model, model_plan(model)).files[""])
    assert bytes(file.buffer_data(1)) == payload
    assert offline_offsets(file) is not None


def test_models_with_embedded_accelerator_code_are_only_reordered(tmp_path: Path) -> None:
    graph = G(
        tensors=[T(name="x"), T(name="y")],
        ops=[O(kind="CUSTOM", custom="DISPATCH_OP", inputs=("x",), outputs=("y",))],
        inputs=("x",),
        outputs=("y",),
    )
    model = loaded(tmp_path, M(subgraphs=[graph]))
    source = source_of(model)
    with pytest.raises(BackendError, match="embeds compiled accelerator code"):
        with_offline_plan(source.file, source.file.data, [0, 0])
    applied = apply(model, model_plan(model))
    assert applied.files[""] == source.file.data
    assert "without a memory plan" in applied.notes[0]


def test_a_file_without_buffers_does_not_take_the_plan_for_tensor_data(tmp_path: Path) -> None:
    data = bytearray(write_tflite(branches()))
    root = parse_tflite(bytes(data)).root
    start, _ = root.vector(4, 4)
    struct.pack_into("<I", data, start - 4, 0)
    model = loaded(tmp_path, bytes(data))
    after = parse_tflite(apply(model, model_plan(model)).files[""])
    assert all(t.data_bytes == 0 for s in after.subgraphs for t in s.tensors)
    assert offline_offsets(after) is not None


def test_a_rewrite_that_changes_anything_else_is_refused(tmp_path: Path) -> None:
    file = source_of(loaded(tmp_path, diamond())).file
    order = (1, 0, 2, 3, 4)
    data = with_operator_orders(file, {0: order})
    assert require_same_model(file, data, {0: order}) == data
    with pytest.raises(BackendError, match="parts of subgraph 'main' overlap others"):
        require_same_model(file, data, {})
    start, _ = file.buffers[1]
    with pytest.raises(BackendError, match="buffer 1 overlaps other parts"):
        require_same_model(file, data[:start] + b"\x07" + data[start + 1 :], {0: order})
    with pytest.raises(BackendError, match="its parts overlap: not a valid flatbuffer"):
        require_same_model(file, data[:200], {0: order})


def test_reordering_keeps_the_length(tmp_path: Path) -> None:
    file = source_of(loaded(tmp_path, diamond())).file
    data = with_operator_orders(file, {0: (1, 3, 0, 2, 4)})
    assert len(data) == len(file.data)
    outputs = [op.outputs for op in parse_tflite(data).subgraphs[0].operators]
    assert outputs == [file.subgraphs[0].operators[i].outputs for i in (1, 3, 0, 2, 4)]


def test_bodies_lie_in_the_workspace_of_their_op(tmp_path: Path) -> None:
    model = loaded(tmp_path, branches())
    plan = model_plan(model, in_place=False)
    source = source_of(model)
    (graph_plan,) = plan.plans
    # Anywhere but at 0, so that the start of the block shows.
    block = replace(graph_plan.workspaces[0], offset=graph_plan.arena_bytes)
    plan = replace(plan, plans=(replace(graph_plan, workspaces={0: block}),))
    offsets = arena_offsets(source, placed_subgraphs(model, plan))
    then = offsets[5:9]
    assert all(block.offset <= o < block.offset + block.bytes for o in then)
    # IF reads c, x, z and writes i while its bodies run: none of them may lie in the block.
    around = [offsets[t] for t in range(4)]
    assert not any(block.offset <= o < block.offset + block.bytes for o in around)


def test_bodies_of_several_ops_are_left_to_the_runtime(tmp_path: Path) -> None:
    model = loaded(tmp_path, loop(shared=True))
    offsets = arena_offsets(source_of(model), placed_subgraphs(model, model_plan(model)))
    n_main = len(source_of(model).file.subgraphs[0].tensors)
    assert set(offsets[n_main:]) == {-1}


def test_variables_of_later_subgraphs_keep_their_memory(tmp_path: Path) -> None:
    # TFLM looks them up at the position of the first subgraph's tensor of the same number.
    main, cond, body = loop().subgraphs
    tensors = [*body.tensors]
    tensors[1] = replace(tensors[1], is_variable=True)
    model = loaded(
        tmp_path,
        M(
            subgraphs=[
                main,
                cond,
                replace(body, tensors=tensors, inputs=("i", "one"), outputs=("j", "w")),
            ]
        ),
    )
    offsets = arena_offsets(source_of(model), placed_subgraphs(model, model_plan(model)))
    assert offsets[1] == -1


def test_unused_tensors_share_the_start_of_the_arena(tmp_path: Path) -> None:
    graph = chain().subgraphs[0]
    spare = [T(name=f"spare {i}") for i in range(3)]
    model = loaded(tmp_path, M(subgraphs=[replace(graph, tensors=[*graph.tensors, *spare])]))
    offsets = arena_offsets(source_of(model), placed_subgraphs(model, model_plan(model)))
    assert offsets[-3:] == [0, 0, 0]


def test_the_header_lists_all_buffers_and_the_head(tmp_path: Path) -> None:
    model = loaded(tmp_path, diamond())
    plan = model_plan(model)
    text = c_header(model, plan, "wake-word 2")
    assert "#ifndef WAKE_WORD_2_MEMORY_PLAN_H_" in text
    assert f"kWakeWord2HeadBytes = {plan.plans[0].arena_bytes};" in text
    # 6 tensors without data, and two scratch buffers of each MEAN.
    assert "kWakeWord2BufferCount = 10;" in text
    assert "// 9: 16 bytes, scratch 1 of MEAN 3" in text


def test_names_cannot_escape_from_the_header_s_comments(tmp_path: Path) -> None:
    graph = chain().subgraphs[0]
    evil = [replace(t, name="x\n#error \\") if t.name == "x" else t for t in graph.tensors]
    ops = [
        replace(op, inputs=tuple("x\n#error \\" if n == "x" else n for n in op.inputs))
        for op in graph.ops
    ]
    model = loaded(
        tmp_path,
        M(subgraphs=[replace(graph, tensors=evil, ops=ops, inputs=("x\n#error \\",))]),
    )
    text = c_header(model, model_plan(model))
    assert "\n#error" not in text
    assert "\\" not in text


def test_counter_orders_apply_to_bodies_as_well(tmp_path: Path) -> None:
    model = loaded(tmp_path, counter())
    plan = model_plan(model, 5)
    (body_plan,) = plan.plans[0].bodies[0]
    data = apply(model, plan).files[""]
    init = parse_tflite(data).subgraphs[1]
    old = source_of(model).file.subgraphs[1]
    kinds = [(op.kind, op.inputs) for op in init.operators]
    assert kinds == [(old.operators[i].kind, old.operators[i].inputs) for i in body_plan.order]
