"""What the TFLite frontend makes of small models: roles, sizes, bodies, in-place choices."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from regal.errors import ModelError, UsageError
from regal.frontends.tflite import load
from regal.graph.types import Graph, Role
from tests.frontends.tflite_models import (
    add,
    branches,
    chain,
    counter,
    diamond,
    floats,
    loaded,
    loop,
    mul,
    one_op,
    two_outputs,
)
from tests.frontends.tflite_writer import ADD_OPTIONS, G, M, O, T

if TYPE_CHECKING:
    from pathlib import Path


def tensor_roles(graph: Graph) -> dict[str, Role]:
    return {t.name: t.role for t in graph.tensors}


def refusal(tmp_path: Path, model: M) -> str:
    with pytest.raises(ModelError) as caught:
        loaded(tmp_path, model)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_roles_tell_inputs_outputs_activations_weights_and_fixed_data_apart(
    tmp_path: Path,
) -> None:
    graph = loaded(tmp_path, chain()).graph
    assert tensor_roles(graph) == {
        "x": Role.INPUT,
        "w": Role.PARAMETER,
        "shape": Role.CONSTANT,
        "p": Role.ACTIVATION,
        "q": Role.ACTIVATION,
        "y": Role.OUTPUT,
    }


def test_ops_and_tensors_keep_the_positions_of_the_file(tmp_path: Path) -> None:
    graph = loaded(tmp_path, chain()).graph
    assert [op.kind for op in graph.ops] == ["MUL", "RESHAPE", "ADD"]
    assert [op.name for op in graph.ops] == ["p", "q", "y"]
    assert graph.ops[0].inputs == (0, 1)
    assert (graph.framework, graph.alignment) == ("tflite", 16)


def test_ops_without_output_are_named_by_position_and_kind(tmp_path: Path) -> None:
    graph = loaded(tmp_path, counter()).graph
    assert graph.ops[0].name == "0:CALL_ONCE"
    assert graph.ops[5].name == "5:ASSIGN_VARIABLE"


def test_resource_handles_take_no_arena_and_carry_the_size_of_their_value(
    tmp_path: Path,
) -> None:
    graph = loaded(tmp_path, counter()).graph
    handle = next(t for t in graph.tensors if t.name == "h")
    assert (handle.role, handle.bytes) == (Role.STATE, 16)


def test_variable_tensors_are_state(tmp_path: Path) -> None:
    state = T(name="s", is_variable=True)
    model = one_op(add("x", "s", "y"), T(name="x"), state, T(name="y"))
    assert tensor_roles(loaded(tmp_path, model).graph)["s"] is Role.STATE


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", 20),
        ("float16", 10),
        ("int8", 5),
        ("int64", 40),
        ("bool", 5),
        ("complex64", 40),
        ("string", 0),
        # A byte per element: TFLM's arena does not pack what an op writes as int4.
        ("int4", 5),
        # TFLM does not have it; LiteRT packs two per byte.
        ("uint4", 3),
    ],
)
def test_an_activation_takes_what_the_runtime_places(
    tmp_path: Path, dtype: str, expected: int
) -> None:
    shape = (1, 5)
    model = one_op(
        add("x", "x", "y"), T(name="x", shape=shape), T(name="y", shape=shape, dtype=dtype)
    )
    assert loaded(tmp_path, model).graph.tensors[1].bytes == expected


def test_packed_int4_weights_take_half_a_byte_per_element(tmp_path: Path) -> None:
    weights = T(name="w", shape=(1, 5), dtype="int4", data=b"\x12\x34\x05")
    model = one_op(add("x", "w", "y"), T(name="x"), weights, T(name="y"))
    assert loaded(tmp_path, model).graph.tensors[1].bytes == 3


def test_tensors_of_one_weight_buffer_share_their_storage(tmp_path: Path) -> None:
    data = floats(1, 2, 3, 4)
    model = one_op(add("v", "w", "y"), T(name="v", data=data), T(name="w", buffer=1), T(name="y"))
    graph = loaded(tmp_path, model).graph
    assert graph.tensors[0].storage == graph.tensors[1].storage


def test_a_scalar_without_shape_is_one_element(tmp_path: Path) -> None:
    model = one_op(add("x", "x", "y"), T(name="x", shape=()), T(name="y", shape=()))
    assert loaded(tmp_path, model).graph.tensors[0].bytes == 4


def test_every_signature_is_an_entry_and_bodies_are_none(tmp_path: Path) -> None:
    main = diamond().subgraphs[0]
    second = G(name="second", tensors=main.tensors, ops=main.ops, inputs=("x",), outputs=("y",))
    both = M(subgraphs=[main, second], signatures=[("one", 0), ("two", 1)])
    assert [g.name for g in loaded(tmp_path, both).entries] == ["main", "second"]
    assert [g.name for g in loaded(tmp_path, counter()).entries] == ["main"]


def test_bodies_of_control_flow_hang_on_their_op(tmp_path: Path) -> None:
    graph = loaded(tmp_path, branches()).graph
    assert [body.name for body in graph.ops[0].subgraphs] == ["then", "else"]
    assert graph.ops[0].captures == 0
    assert [t.role for t in graph.ops[0].subgraphs[0].tensors] == [
        Role.INPUT,
        Role.INPUT,
        Role.ACTIVATION,
        Role.OUTPUT,
    ]


def test_a_branch_without_ops_counts_as_workspace(tmp_path: Path) -> None:
    graph = loaded(tmp_path, branches(idle_else=True)).graph
    assert [body.name for body in graph.ops[0].subgraphs] == ["then"]
    assert graph.ops[0].workspace_bytes == 32  # p and q, 16 bytes each


def test_a_body_that_two_ops_run_is_one_object(tmp_path: Path) -> None:
    graph = loaded(tmp_path, loop(shared=True)).graph
    assert graph.ops[0].subgraphs[1] is graph.ops[1].subgraphs[1]


def test_scratch_of_known_kernels_is_workspace(tmp_path: Path) -> None:
    # Float MEAN: an iterator of 4 bytes per dimension, and one per axis; 16 each when aligned.
    graph = loaded(tmp_path, diamond()).graph
    assert [op.workspace_bytes for op in graph.ops] == [0, 0, 32, 32, 0]


def test_flops_count_a_multiply_add_as_two(tmp_path: Path) -> None:
    op = O(kind="FULLY_CONNECTED", inputs=("x", "w"), outputs=("y",))
    weights = T(name="w", shape=(3, 4), data=floats(*range(12)))
    model = one_op(op, T(name="x", shape=(2, 4)), weights, T(name="y", shape=(2, 3)))
    assert loaded(tmp_path, model).graph.ops[0].flops == 2 * 2 * 3 * 4


def test_the_shape_of_the_file_holds_where_the_signature_is_open(tmp_path: Path) -> None:
    x = T(name="x", shape=(1, 4), signature=(-1, 4))
    graph = loaded(tmp_path, one_op(add("x", "x", "y"), x, T(name="y"))).graph
    assert graph.tensors[0].shape == (1, 4)


def test_open_sizes_are_listed(tmp_path: Path) -> None:
    x = T(name="x", shape=(-1, -1, 3), signature=(-1, -1, 3))
    message = refusal(tmp_path, one_op(add("x", "x", "y"), x, T(name="y")))
    assert message == "sizes are open: x[1] - bind them with --shape or --dim"


def test_unknown_input_names_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--shape z: the model has no such input; known: x"):
        loaded(tmp_path, chain(), z=(1, 4))


def test_a_size_that_the_model_fixes_cannot_be_changed(tmp_path: Path) -> None:
    x = T(name="x", shape=(1, 4), signature=(-1, 4))
    with pytest.raises(UsageError, match="size 5 at dimension 1; the model fixes it at 4"):
        loaded(tmp_path, one_op(add("x", "x", "y"), x, T(name="y")), x=(1, 5))


def test_resized_inputs_give_every_tensor_its_inferred_shape(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    x = T(name="x", shape=(1, 4), signature=(-1, 4))
    model = one_op(add("x", "x", "y"), x, T(name="y", signature=(-1, 4)))
    graph = loaded(tmp_path, model, x=(5, 4)).graph
    assert [t.bytes for t in graph.tensors] == [80, 80]


def test_an_unread_output_of_an_op_still_has_its_bytes(tmp_path: Path) -> None:
    graph = loaded(tmp_path, two_outputs()).graph
    unused = next(t for t in graph.tensors if t.name == "unused")
    assert (unused.role, unused.bytes) == (Role.ACTIVATION, 16)


def test_a_tensor_that_nothing_writes_is_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, one_op(add("x", "z", "y"), T(name="x"), T(name="z"), T(name="y")))
    assert message == ("tensor 'z' of 'main' is read, but no op writes it and it holds no data")


def test_a_tensor_that_two_ops_write_is_refused(tmp_path: Path) -> None:
    graph = G(
        tensors=[T(name="x"), T(name="y")],
        ops=[add("x", "x", "y"), mul("x", "x", "y")],
        inputs=("x",),
        outputs=("y",),
    )
    message = refusal(tmp_path, M(subgraphs=[graph]))
    assert message == "tensor 'y' of 'main' is written twice, by op 0 and op 1"


def test_an_op_that_writes_its_input_is_refused(tmp_path: Path) -> None:
    op = O(kind="ADD", inputs=("x", "x"), outputs=("x",), options=ADD_OPTIONS)
    message = refusal(tmp_path, one_op(op, T(name="x"), outputs=("x",)))
    assert message == "op 0 (ADD) of 'main' writes 'x', which is a input"


def test_ops_before_their_writers_are_refused(tmp_path: Path) -> None:
    graph = G(
        tensors=[T(name="x"), T(name="a"), T(name="y")],
        ops=[add("a", "x", "y"), add("x", "x", "a")],
        inputs=("x",),
        outputs=("y",),
    )
    assert "a cycle, or ops out of order" in refusal(tmp_path, M(subgraphs=[graph]))


def test_a_subgraph_that_runs_itself_is_refused(tmp_path: Path) -> None:
    main, cond, body = loop().subgraphs
    nested = G(
        name="body",
        tensors=main.tensors,
        ops=main.ops,
        inputs=main.inputs,
        outputs=main.outputs,
    )
    del body
    message = refusal(tmp_path, M(subgraphs=[main, cond, nested]))
    assert message == "subgraph 'body' runs itself through control flow"


def test_bodies_that_unfold_without_bounds_are_refused(tmp_path: Path) -> None:
    # Each level runs the next one twice: 2^40 ops from 40 small subgraphs.
    from tests.frontends.tflite_writer import if_options

    tensors = [T(name="c", shape=(1,), dtype="bool"), T(name="y")]
    levels = [
        G(
            name=f"level {i}",
            tensors=tensors,
            ops=[O(kind="IF", inputs=("c",), outputs=("y",), options=if_options(i + 1, i + 1))],
            inputs=("c",),
            outputs=("y",),
        )
        for i in range(40)
    ]
    last = G(
        name="last",
        tensors=tensors,
        ops=[O(kind="CAST", inputs=("c",), outputs=("y",))],
        inputs=("c",),
        outputs=("y",),
    )
    message = refusal(tmp_path, M(subgraphs=[*levels, last]))
    assert "at most 1000000 in 64 are supported" in message


def test_too_little_data_for_a_constant_is_refused(tmp_path: Path) -> None:
    weights = T(name="w", shape=(2, 4), data=floats(1, 2, 3, 4))
    message = refusal(tmp_path, one_op(add("x", "w", "y"), T(name="x"), weights, T(name="y")))
    assert message == "tensor 'w' of shape [2, 4] needs 32 bytes of data; buffer 1 has 16"


def test_custom_ops_are_named_and_may_read_scratch_that_nobody_writes(tmp_path: Path) -> None:
    op = O(kind="CUSTOM", custom="ethos-u", inputs=("x", "s"), outputs=("y",))
    graph = loaded(tmp_path, one_op(op, T(name="x"), T(name="s"), T(name="y"))).graph
    assert graph.ops[0].kind == "CUSTOM:ethos-u"
    assert tensor_roles(graph)["s"] is Role.ACTIVATION


def test_tensors_that_an_accelerator_keeps_in_one_place_stay_together(tmp_path: Path) -> None:
    op = O(kind="CUSTOM", custom="ethos-u", inputs=("s", "x"), outputs=("y",))
    tensors = [T(name="s", shape=(64,), dtype="uint8"), T(name="x"), T(name="y")]
    graph = G(tensors=tensors, ops=[op], inputs=("x",), outputs=("y",))
    plan = struct.pack("<3I3i", 0, 1, 3, 0, 16, 32)
    model = M(subgraphs=[graph], metadata=[("OfflineMemoryAllocation", plan)])
    found = loaded(tmp_path, model).graph.tensors
    assert {t.storage for t in found} == {0}
    assert [t.storage_offset for t in found] == [0, 16, 32]


def test_an_offline_plan_for_another_number_of_tensors_is_refused(tmp_path: Path) -> None:
    op = O(kind="CUSTOM", custom="ethos-u", inputs=("x",), outputs=("y",))
    graph = G(tensors=[T(name="x"), T(name="y")], ops=[op], inputs=("x",), outputs=("y",))
    plan = struct.pack("<3I1i", 0, 1, 1, 0)
    message = refusal(tmp_path, M(subgraphs=[graph], metadata=[("OfflineMemoryAllocation", plan)]))
    assert "has 16 bytes for 1 tensors; the model has 2 tensors" in message


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot read '.*nowhere.tflite': No such file"):
        load(tmp_path / "nowhere.tflite", {}, {})


def test_options_that_decide_how_long_an_op_takes_are_attributes(tmp_path: Path) -> None:
    # Conv2DOptions: padding VALID, strides 3 and 2, activation RELU; dilations by default 1.
    options = (1, ((0, "u8", 1), (1, "i32", 3), (2, "i32", 2), (3, "u8", 1)))
    tensors = [
        T(name="x", shape=(1, 8, 8, 1)),
        T(name="w", shape=(2, 3, 3, 1), data=bytes(72)),
        T(name="b", shape=(2,), data=bytes(8)),
        T(name="y", shape=(1, 3, 2, 2)),
    ]
    conv = O(kind="CONV_2D", inputs=("x", "w", "b"), outputs=("y",), options=options)
    model = M(subgraphs=[G(tensors=tensors, ops=[conv], inputs=("x",), outputs=("y",))])
    (op,) = loaded(tmp_path, model).graph.ops
    assert op.attributes == {
        "padding": 1, "stride_w": 3, "stride_h": 2, "fused_activation": 1,
        "dilation_w": 1, "dilation_h": 1,
    }  # fmt: skip
    assert op.flops == 2 * 12 * 9
