"""HLO modules in protobuf form: `HloModuleProto` inside other messages."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from regal.errors import ModelError
from regal.frontends.task_graphs.hlo import Instruction, Module, Shape, computation_of

if TYPE_CHECKING:
    from regal.frontends.task_graphs.hlo import Computation
    from regal.frontends.task_graphs.protos import Fields

# xla_data.proto and hlo.proto; what is not read is left out.
SCHEMA: dict[str, Fields] = {
    "ShapeProto": {
        "element_type": (2, "int32"),
        "dimensions": (3, "repeated int64"),
        "tuple_shapes": (4, "repeated ShapeProto"),
    },
    "WindowDimension": {"size": (1, "int64")},
    "Window": {"dimensions": (1, "repeated WindowDimension")},
    "ConvolutionDimensionNumbers": {"kernel_output_feature_dimension": (4, "int64")},
    "DotDimensionNumbers": {"lhs_contracting_dimensions": (1, "repeated int64")},
    "HloInstructionProto": {
        "name": (1, "string"),
        "opcode": (2, "string"),
        "shape": (3, "ShapeProto"),
        "parameter_number": (9, "int64"),
        "tuple_index": (13, "int64"),
        "window": (15, "Window"),
        "convolution_dimension_numbers": (16, "ConvolutionDimensionNumbers"),
        "dot_dimension_numbers": (30, "DotDimensionNumbers"),
        "id": (35, "int64"),
        "operand_ids": (36, "repeated int64"),
        "control_predecessor_ids": (37, "repeated int64"),
        "called_computation_ids": (38, "repeated int64"),
    },
    "HloComputationProto": {
        "name": (1, "string"),
        "instructions": (2, "repeated HloInstructionProto"),
        "id": (5, "int64"),
        "root_id": (6, "int64"),
    },
    "HloModuleProto": {
        "name": (1, "string"),
        "computations": (3, "repeated HloComputationProto"),
        "entry_computation_id": (6, "int64"),
    },
}

TYPES = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64",
    10: "f16", 11: "f32", 12: "f64", 14: "opaque", 15: "c64", 16: "bf16", 17: "token",
    18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4", 22: "u4", 23: "f8e4m3b11fnuz",
    24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3", 29: "f8e3m4",
    30: "s1", 31: "u1", 32: "f4e2m1fn", 33: "f8e8m0fnu",
}  # fmt: skip
TUPLE = 13
MOST_SHAPE_LEVELS = 32


def module_of(proto: Any, name: str) -> Module:
    """Return the module of an `HloModuleProto`.

    Raises:
        ModelError: names the computation or instruction that is broken.
    """
    computation_names = {c.id: c.name or f"computation{c.id}" for c in proto.computations}
    if proto.entry_computation_id not in computation_names:
        raise ModelError(
            f"'{name}': its entry computation {proto.entry_computation_id} is not among its"
            f" {len(computation_names)} computations"
        )
    computations = {
        computation_names[c.id]: _computation(c, computation_names, name)
        for c in proto.computations
    }
    return Module(
        name=proto.name or "module",
        computations=computations,
        entry=computation_names[proto.entry_computation_id],
    )


def _computation(proto: Any, computation_names: dict[int, str], name: str) -> Computation:
    names = {i.id: i.name or f"instruction{i.id}" for i in proto.instructions}
    where = f"'{name}': computation '{proto.name}'"
    if proto.root_id not in names:
        raise ModelError(f"{where}: its root {proto.root_id} is not among its instructions")
    instructions = tuple(
        _instruction(i, names, computation_names, where) for i in proto.instructions
    )
    return computation_of(proto.name, instructions, names[proto.root_id])


def _instruction(
    proto: Any, names: dict[int, str], computation_names: dict[int, str], where: str
) -> Instruction:
    where = f"{where}: instruction '{proto.name}'"
    for ids, known, what in (
        ((*proto.operand_ids, *proto.control_predecessor_ids), names, "instruction"),
        (proto.called_computation_ids, computation_names, "computation"),
    ):
        missing = next((i for i in ids if i not in known), None)
        if missing is not None:
            raise ModelError(f"{where} names {what} {missing}, which does not exist")
    is_parameter = proto.opcode == "parameter"
    return Instruction(
        name=names[proto.id],
        opcode=proto.opcode,
        shape=_shape(proto.shape, where),
        operands=tuple(names[i] for i in proto.operand_ids),
        waits=tuple(names[i] for i in proto.control_predecessor_ids),
        calls=tuple(computation_names[i] for i in proto.called_computation_ids),
        index=proto.parameter_number if is_parameter else proto.tuple_index,
        contracted=tuple(
            i for i in proto.dot_dimension_numbers.lhs_contracting_dimensions if i >= 0
        ),
        window=max(1, prod(dimension.size for dimension in proto.window.dimensions)),
        features=max(0, proto.convolution_dimension_numbers.kernel_output_feature_dimension),
    )


def _shape(proto: Any, where: str, level: int = 0) -> Shape:
    if level > MOST_SHAPE_LEVELS:
        raise ModelError(f"{where}: tuples nested deeper than {MOST_SHAPE_LEVELS}")
    if proto.element_type == TUPLE:
        parts = tuple(_shape(part, where, level + 1) for part in proto.tuple_shapes)
        return Shape(dtype="tuple", parts=parts)
    if proto.element_type not in TYPES:
        raise ModelError(f"{where} has the unknown element type {proto.element_type}")
    if any(size < 0 for size in proto.dimensions):
        raise ModelError(f"{where} has the shape {list(proto.dimensions)}; sizes are 0 or more")
    return Shape(dtype=TYPES[proto.element_type], dimensions=tuple(proto.dimensions))
