"""Small TensorFlow graphs for tests, built by hand from messages, without importing TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regal.frontends.tensorflow.schema import DTYPES, new

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from regal.frontends.tensorflow.schema import Proto

NUMBER_OF = {name: number for number, name in DTYPES.items()}
FLOAT, INT, BOOL, RESOURCE = "float", "int32", "bool", "resource"
Attribute = str | int | bool | bytes | Sequence[int] | NDArray[np.generic]


def node(op: str, name: str, *inputs: str, **attributes: Attribute) -> Proto:
    """Return a node. A text that names a type is one; a row of integers is a shape."""
    made = new("NodeDef")
    made.op, made.name = op, name
    made.input.extend(inputs)
    for key, value in attributes.items():
        attribute = made.attr[key]
        if isinstance(value, bool):
            attribute.b = value
        elif isinstance(value, int):
            attribute.i = value
        elif isinstance(value, str):
            attribute.type = NUMBER_OF[value]
        elif isinstance(value, bytes):
            attribute.s = value
        elif isinstance(value, np.ndarray):
            _fill(attribute.tensor, value)
        else:
            _set_shape(attribute.shape, value)
    return made


def constant(name: str, value: object, dtype: str = FLOAT) -> Proto:
    kind = {FLOAT: np.float32, INT: np.int32, BOOL: np.bool_}[dtype]
    return node("Const", name, dtype=dtype, value=np.asarray(value, kind))


def placeholder(name: str, shape: Sequence[int], dtype: str = FLOAT) -> Proto:
    return node("Placeholder", name, dtype=dtype, shape=shape)


def tile(name: str, source: str, multiples: str) -> Proto:
    return node("Tile", name, source, multiples, T=FLOAT, Tmultiples=INT)


def maximum(name: str, source: str, axes: str) -> Proto:
    return node("Max", name, source, axes, T=FLOAT, Tidx=INT, keep_dims=True)


def unary(op: str, name: str, source: str, *waits: str) -> Proto:
    return node(op, name, source, *waits, T=FLOAT)


def binary(op: str, name: str, a: str, b: str, *waits: str) -> Proto:
    return node(op, name, a, b, *waits, T=FLOAT)


def variable(name: str, shape: Sequence[int]) -> Proto:
    return node("VarHandleOp", name, dtype=FLOAT, shape=shape, shared_name=name.encode())


def read(name: str, handle: str, *waits: str) -> Proto:
    return node("ReadVariableOp", name, handle, *waits, dtype=FLOAT)


def assign_add(name: str, handle: str, value: str, *waits: str) -> Proto:
    return node("AssignAddVariableOp", name, handle, value, *waits, dtype=FLOAT)


def switch(name: str, data: str, decider: str, *waits: str) -> Proto:
    return node("Switch", name, data, decider, *waits, T=FLOAT)


def merge(name: str, *inputs: str) -> Proto:
    return node("Merge", name, *inputs, T=FLOAT, N=len(inputs))


def graph(nodes: Iterable[Proto]) -> Proto:
    made = new("GraphDef")
    made.versions.producer = 1395
    made.node.extend(nodes)
    return made


def branches(width: int = 4, rows: int = 256, columns: int = 256) -> Proto:
    """Return `width` branches that grow 8-fold and shrink to a row before they meet.

    In file order all grow first: 8 * rows * columns floats each. One after the other they need
    that only once.
    """
    nodes = [
        placeholder("x", [rows, columns]),
        constant("eight", [8, 1], INT),
        constant("axis", [0], INT),
    ]
    nodes += [tile(f"wide{i}", "x", "eight") for i in range(width)]
    nodes += [maximum(f"small{i}", f"wide{i}", "axis") for i in range(width)]
    nodes.append(node("AddN", "y", *(f"small{i}" for i in range(width)), T=FLOAT, N=width))
    return graph(nodes)


def save(message: Proto, path: Path) -> Path:
    path.write_bytes(message.SerializeToString())
    return path


def _fill(tensor: Proto, value: NDArray[np.generic]) -> None:
    names = {"float32": FLOAT, "int32": INT, "bool": BOOL}
    tensor.dtype = NUMBER_OF[names[str(value.dtype)]]
    _set_shape(tensor.tensor_shape, value.shape)
    tensor.tensor_content = value.tobytes()


def _set_shape(shape: Proto, sizes: Sequence[int]) -> None:
    shape.SetInParent()
    for size in sizes:
        shape.dim.add(size=size)
