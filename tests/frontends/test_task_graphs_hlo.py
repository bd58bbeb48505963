"""HLO modules in protobuf form, built here, against numbers by hand."""

from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from regal.errors import ModelError
from regal.frontends import load
from regal.frontends.task_graphs.protos import message_class
from regal.frontends.task_graphs.tpu_graphs import SCHEMA
from regal.frontends.task_graphs.wire import holds_hlo_module
from regal.graph.types import Role
from tests.corpus import corpus_file

F32 = 11


def message(root: str) -> Any:
    return message_class("regal_tuning", SCHEMA, root)()


def add(
    computation: Any,
    number: int,
    name: str,
    opcode: str,
    dimensions: list[int],
    operands: Sequence[int] = (),
    calls: Sequence[int] = (),
) -> Any:
    instruction = computation.instructions.add(
        name=name,
        opcode=opcode,
        id=number,
        operand_ids=operands,
        called_computation_ids=calls,
    )
    instruction.shape.element_type = F32
    instruction.shape.dimensions.extend(dimensions)
    return instruction


def sample() -> Any:
    """x @ w, then a fusion that adds x twice, then a tuple of both."""
    module = message("HloModuleProto")
    module.name = "sample"
    module.entry_computation_id = 2
    fused = module.computations.add(name="fused", id=1, root_id=11)
    add(fused, 10, "p", "parameter", [4, 4])
    add(fused, 11, "twice", "add", [4, 4], [10, 10])
    entry = module.computations.add(name="main", id=2, root_id=25)
    add(entry, 20, "x", "parameter", [4, 4])
    add(entry, 21, "w", "constant", [4, 4])
    dot = add(entry, 22, "dot", "dot", [4, 4], [20, 21])
    dot.dot_dimension_numbers.lhs_contracting_dimensions.append(1)
    add(entry, 23, "view", "bitcast", [16], [22])
    add(entry, 24, "sum", "fusion", [16], [23], [1])
    root = entry.instructions.add(name="both", opcode="tuple", id=25, operand_ids=[22, 24])
    root.shape.element_type = 13
    for size in ([4, 4], [16]):
        part = root.shape.tuple_shapes.add(element_type=F32)
        part.dimensions.extend(size)
    return module


@pytest.mark.parametrize("wrapping", ["HloModuleProto", "ModuleTuningData", "TuningData"])
def test_a_module_is_read_in_any_wrapping(tmp_path: Path, wrapping: str) -> None:
    outer = message(wrapping)
    if wrapping == "ModuleTuningData":
        outer.module.CopyFrom(sample())
    elif wrapping == "TuningData":
        outer.modules.add().module.CopyFrom(sample())
        outer.modules.add().module.CopyFrom(sample())
    else:
        outer = sample()
    path = tmp_path / "m.pb"
    path.write_bytes(outer.SerializeToString())
    model = load(path)
    assert len(model.entries) == (2 if wrapping == "TuningData" else 1)
    graph = model.graph
    assert [(op.name, op.flops) for op in graph.ops] == [("dot", 2 * 16 * 4), ("sum", 16)]
    assert [graph.tensors[t].name for t in graph.inputs] == ["x"]
    assert [t.name for t in graph.tensors if t.role is Role.CONSTANT] == ["w"]
    assert graph.ops[1].inputs == graph.ops[0].outputs  # through the bitcast
    assert [graph.tensors[t].name for t in graph.outputs] == ["dot", "sum"]


def test_a_while_loop_counts_once_and_needs_what_lives_inside(tmp_path: Path) -> None:
    module = message("HloModuleProto")
    module.name = "loop"
    module.entry_computation_id = 2
    body = module.computations.add(name="body", id=1, root_id=12)
    add(body, 10, "p", "parameter", [8])
    add(body, 11, "a", "add", [8], [10, 10])
    add(body, 12, "b", "multiply", [8], [11, 10])
    entry = module.computations.add(name="main", id=2, root_id=21)
    add(entry, 20, "x", "parameter", [8])
    add(entry, 21, "w", "while", [8], [20], [1])
    path = tmp_path / "m.pb"
    path.write_bytes(module.SerializeToString())
    (op,) = load(path).graph.ops
    assert op.flops == 16
    assert op.workspace_bytes == 64  # a and b at once


def test_missing_operands_and_roots_are_named(tmp_path: Path) -> None:
    module = sample()
    module.computations[1].instructions[2].operand_ids[0] = 99
    path = tmp_path / "m.pb"
    path.write_bytes(module.SerializeToString())
    with pytest.raises(ModelError, match="instruction 'dot' names instruction 99, which does not"):
        load(path)


def test_other_protobuf_files_are_left_to_their_frontends() -> None:
    graph_def = b"\n\x0f\n\x01a\x12\x05Const\x1a\x03b:0"
    assert not holds_hlo_module(graph_def)
    assert not holds_hlo_module(b"")
    assert not holds_hlo_module(b"\x08\x01\x12\x03abc")
    assert holds_hlo_module(sample().SerializeToString())


def test_the_tuning_data_of_the_corpus() -> None:
    model = load(corpus_file("sched/tpugraphs_module_tuning_data_layout.pb"))
    assert len(model.graph.ops) == 2380
    assert len(load(corpus_file("sched/tpugraphs_op_tuning_data.pb")).entries) == 15


HLO = """\
    HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[4,4]{1,0})->f32[4,4]}

    %add (a: f32[], b: f32[]) -> f32[] {
      %a = f32[] parameter(0)
      %b = f32[] parameter(1)
      ROOT %sum = f32[] add(f32[] %a, f32[] %b), metadata={op_name="x(y" source_line=3}
    }

    ENTRY %main (p: f32[4,4]) -> (bf16[4,8], f32[]) {
      %p = f32[4,4]{1,0:T(8,128)} parameter(0)
      %w = f32[4,8]{1,0} constant({
        {1, 2}, {3, 4} })
      %dot.1 = bf16[4,8]{1,0} dot(f32[4,4]{1,0} %p, %w), lhs_contracting_dims={1},
        rhs_contracting_dims={0}
      %zero = f32[] constant(0)
      %reduce = f32[] reduce(%dot.1, %zero), dimensions={0,1}, to_apply=%add
      %copy = f32[] copy(%reduce), control-predecessors={%dot.1}
      ROOT %out = (bf16[4,8]{1,0}, /*index=1*/f32[]) tuple(%dot.1, %copy)
    }
    """


def test_an_hlo_text(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(dedent(HLO))
    graph = load(path).graph
    assert graph.name == "jit_f"
    assert [(op.name, op.kind, op.flops) for op in graph.ops] == [
        ("dot.1", "dot", 2 * 32 * 4),
        ("reduce", "reduce", 32),
        ("copy", "copy", 0),
    ]
    assert graph.ops[2].control_inputs == (0,)
    sizes = {t.name: (t.bytes, t.role) for t in graph.tensors}
    assert sizes == {
        "p": (64, Role.INPUT),
        "w": (128, Role.CONSTANT),
        "zero": (4, Role.CONSTANT),
        "dot.1": (64, Role.OUTPUT),
        "reduce": (4, Role.ACTIVATION),
        "copy": (4, Role.OUTPUT),
    }


def test_shapes_that_hand_written_texts_leave_out_are_inferred(tmp_path: Path) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(
        "ENTRY e {\n a = (f32[2], s8[3]) parameter(0)\n b = get-tuple-element(a), index=1\n"
        " c = negate(b)\n ROOT d = tuple(c, b)\n}\n"
    )
    graph = load(path).graph
    assert [(op.name, graph.tensors[op.outputs[0]].bytes) for op in graph.ops] == [("c", 3)]
    assert [graph.tensors[t].name for t in graph.inputs] == ["a{0}", "a{1}"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("HloModule x\n", "holds no HLO computation"),
        ("ENTRY e {\n a = f32[2] parameter(0)\n", "computation 'e' of line 1 has no end"),
        ("ENTRY e {\n}\n", "line 1: computation 'e' has no instruction"),
        ("ENTRY e {\n a = q7[2] parameter(0)\n}\n", "line 2: 'q7[2] parameter(0)' is no shape"),
        ("ENTRY e {\n a = f32[x] parameter(0)\n}\n", "shape 'f32[x]' has unknown sizes"),
        ("ENTRY e {\n a = f32[2]\n}\n", "instruction 'a' has no opcode after its shape"),
        ("ENTRY e {\n a = f32[2] add(b)\n}\n", "instruction 'a' reads 'b' before anything makes"),
        ("ENTRY e {\n a = f32[2] add(b)\n b = f32[2] add(a)\n}\n", "reads itself: a circle"),
        ("ENTRY e {\n a = f32[2] iota()\n a = f32[2] iota()\n}\n", "is another instruction 'a'"),
        ("ENTRY e {\n a = add(z)\n}\n", "line 2 has no shape, and none follows from 'z'"),
    ],
)
def test_a_broken_hlo_text_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(text)
    with pytest.raises(ModelError) as failure:
        load(path)
    assert message in str(failure.value)


@pytest.mark.parametrize(
    ("name", "ops"),
    [("dlrm_train_step", 862), ("maxtext_1n1g_train", 684), ("remat_tuple_arg_fusion", 6)],
)
def test_hlo_texts_of_the_corpus(name: str, ops: int) -> None:
    assert len(load(corpus_file(f"hlo/{name}.hlo")).graph.ops) == ops
