"""The options of TFLite operators that decide how long they take, by name.

Source: tensorflow/compiler/mlir/lite/schema/schema.fbs, version 3: the tables of builtin options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.frontends.tflite.model import FileOperator
    from regal.graph.types import AttributeValue


class _Byte(NamedTuple):
    name: str
    field: int


class _Flag(NamedTuple):
    name: str
    field: int


class _Int(NamedTuple):
    name: str
    field: int
    default: int = 0


_Option = _Byte | _Flag | _Int

_WINDOW: Final = (_Byte("padding", 0), _Int("stride_w", 1), _Int("stride_h", 2))
_POOL: Final = (
    *_WINDOW,
    _Int("filter_width", 3),
    _Int("filter_height", 4),
    _Byte("fused_activation", 5),
)
_ACTIVATION: Final = (_Byte("fused_activation", 0),)
_OPTIONS: Final[Mapping[str, tuple[_Option, ...]]] = {
    "CONV_2D": (
        *_WINDOW,
        _Byte("fused_activation", 3),
        _Int("dilation_w", 4, 1),
        _Int("dilation_h", 5, 1),
    ),
    "DEPTHWISE_CONV_2D": (
        *_WINDOW,
        _Int("depth_multiplier", 3),
        _Byte("fused_activation", 4),
        _Int("dilation_w", 5, 1),
        _Int("dilation_h", 6, 1),
    ),
    "TRANSPOSE_CONV": (*_WINDOW, _Byte("fused_activation", 3)),
    "CONV_3D": (
        _Byte("padding", 0),
        _Int("stride_d", 1),
        _Int("stride_w", 2),
        _Int("stride_h", 3),
        _Byte("fused_activation", 4),
    ),
    "AVERAGE_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "L2_POOL_2D": _POOL,
    "FULLY_CONNECTED": (*_ACTIVATION, _Byte("weights_format", 1), _Flag("keep_num_dims", 2)),
    "BATCH_MATMUL": (_Flag("adj_x", 0), _Flag("adj_y", 1)),
    "ADD": _ACTIVATION,
    "SUB": _ACTIVATION,
    "MUL": _ACTIVATION,
    "DIV": _ACTIVATION,
    "CONCATENATION": (_Int("axis", 0), _Byte("fused_activation", 1)),
    "GATHER": (_Int("axis", 0), _Int("batch_dims", 1)),
    "RESIZE_BILINEAR": (_Flag("align_corners", 2), _Flag("half_pixel_centers", 3)),
    "RESIZE_NEAREST_NEIGHBOR": (_Flag("align_corners", 0), _Flag("half_pixel_centers", 1)),
}


def attributes_of(op: FileOperator) -> dict[str, AttributeValue]:
    """Return the options of an operator; {} where it has none that matter.

    Raises:
        ModelError: the options are broken.
    """
    table = op.options
    values: dict[str, AttributeValue] = {}
    if table is None:
        return values
    for option in _OPTIONS.get(op.kind, ()):
        match option:
            case _Flag(name, field):
                values[name] = table.i8(field) != 0
            case _Byte(name, field):
                values[name] = table.i8(field)
            case _Int(name, field, default):
                values[name] = table.i32(field, default)
    return values
