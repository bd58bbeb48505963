"""HLO modules in protobuf form, built here, against numbers by hand."""

from collections.abc import Sequence
from pathlib import Path
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
