"""Make a model run, and run alike wherever its nodes stand, without changing its graph."""

from __future__ import annotations

import zlib
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import onnx

from regal.frontends.onnx.kinds import NUMPY_KINDS, RANDOM, tensor_bytes
from regal.frontends.onnx.tidy import graphs_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onnx import ModelProto, NodeProto, TensorProto

DATA_FIELDS = (
    "float_data",
    "int32_data",
    "int64_data",
    "double_data",
    "uint64_data",
    "string_data",
)
MOST_FILLED = 1 << 30  # bytes of weights that may be made up


def runnable_copy(model: ModelProto) -> ModelProto:
    """Return a copy in which left-out weights are made up and random nodes have a seed.

    Both depend on names alone: the same node of a reordered model gets the same. A random
    node without a seed takes its position for one.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for tensor in _stripped(copy):
        _fill(tensor)
    for node in _unseeded(copy):
        seed = zlib.crc32(next(iter(node.output), "").encode()) % 1000 + 1
        node.attribute.add(name="seed", type=onnx.AttributeProto.FLOAT, f=float(seed))
    return copy


def needs_preparation(model: ModelProto) -> bool:
    """Return whether `runnable_copy` would change anything."""
    return any(True for _ in _stripped(model)) or any(True for _ in _unseeded(model))


def lacks_weights(model: ModelProto) -> bool:
    """Return whether the file leaves out the values of some weights."""
    return any(True for _ in _stripped(model))


def _stripped(model: ModelProto) -> Iterator[TensorProto]:
    total = 0
    for graph in graphs_in(model.graph):
        for tensor in graph.initializer:
            if _is_stripped(tensor):
                total += tensor_bytes(tensor.data_type, tensor.dims)
                if total > MOST_FILLED:
                    return
                yield tensor


def _is_stripped(tensor: TensorProto) -> bool:
    return (
        tensor.data_type in NUMPY_KINDS
        and tensor.data_location != onnx.TensorProto.EXTERNAL
        and not tensor.raw_data
        and prod(tensor.dims) > 0
        and not any(len(getattr(tensor, f)) for f in DATA_FIELDS)
    )


def _fill(tensor: TensorProto) -> None:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
    random = np.random.default_rng(zlib.crc32(tensor.name.encode()))
    values = random.uniform(0.0, 0.1, tuple(tensor.dims))
    tensor.raw_data = np.ascontiguousarray(values.astype(dtype)).tobytes()


def _unseeded(model: ModelProto) -> Iterator[NodeProto]:
    for graph in graphs_in(model.graph):
        for node in graph.node:
            if node.op_type in RANDOM and not any(a.name == "seed" for a in node.attribute):
                yield node
