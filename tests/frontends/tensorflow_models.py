"""Small TensorFlow graphs, written node by node; they need no tensorflow to be made."""

from __future__ import annotations

import contextlib
import importlib.util
from typing import TYPE_CHECKING, Any

import pytest

from regal.frontends.tensorflow import load, native
from regal.frontends.tensorflow.schema import new
from regal.plan.check import require_valid_plan
from regal.search.packing import before_plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from regal.graph.types import Graph, LoadedModel, Op

needs_tensorflow = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="tensorflow is not installed"
)


class DType(int):
    """A data type, as an attribute."""


FLOAT, INT, STRING, BOOL, RESOURCE, VARIANT = (DType(n) for n in (1, 3, 7, 10, 20, 21))
NEWEST = 2000  # a version of the graph format without old ambiguities
Shape = tuple[int, ...]


class GraphDef:
    """Collects nodes; attributes take their kind from the Python type."""

    def __init__(self, producer: int = NEWEST) -> None:
        self.proto = new("GraphDef")
        self.proto.versions.producer = producer

    def add(self, name: str, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return its name."""
        fill(self.proto.node.add(), name, op, *inputs, **attributes)
        return name

    def input(self, name: str, *shape: int, dtype: DType = FLOAT) -> str:
        """Add a placeholder; -1 is an open dimension."""
        return self.add(name, "Placeholder", dtype=dtype, shape=shape)

    def const(self, name: str, *values: int, shape: Shape | None = None, after: str = "") -> str:
        """Add integers: a scalar, a vector, or `shape`."""
        node = self.proto.node.add()
        fill(node, name, "Const", *([f"^{after}"] if after else []), dtype=INT)
        tensor = node.attr["value"].tensor
        tensor.dtype = INT
        tensor.tensor_shape.SetInParent()
        sizes = shape if shape is not None else () if len(values) == 1 else (len(values),)
        for size in sizes:
            tensor.tensor_shape.dim.add(size=size)
        tensor.int_val.extend(values)
        return name

    def vector(self, name: str, *values: int) -> str:
        """Add a vector of integers, of one element too."""
        return self.const(name, *values, shape=(len(values),))

    def weights(self, name: str, *shape: int) -> str:
        """Add a constant of floats."""
        node = self.proto.node.add()
        fill(node, name, "Const", dtype=FLOAT)
        tensor = node.attr["value"].tensor
        tensor.dtype = FLOAT
        for size in shape:
            tensor.tensor_shape.dim.add(size=size)
        tensor.float_val.append(0.5)
        return name

    def variable(self, name: str, *shape: int) -> str:
        """Add a resource variable."""
        return self.add(name, "VarHandleOp", dtype=FLOAT, shape=shape, shared_name=name)

    def unary(self, name: str, op: str, source: str) -> str:
        """Add an operator on floats with one input."""
        return self.add(name, op, source, T=FLOAT)

    def binary(self, name: str, op: str, a: str, b: str, dtype: DType = FLOAT) -> str:
        """Add an operator with two inputs."""
        return self.add(name, op, a, b, T=dtype)

    def function(self, name: str, inputs: list[str], outputs: list[str]) -> Function:
        """Add a function on floats; "name:type" for other types of arguments."""
        return Function(self.proto.library.function.add(), name, inputs, outputs)

    def write(self, path: Path) -> Path:
        """Write the graph as binary, and return the path."""
        path.write_bytes(self.proto.SerializeToString())
        return path


class Function:
    """A function of the library."""

    def __init__(self, proto: Any, name: str, inputs: list[str], outputs: list[str]) -> None:
        self.proto = proto
        proto.signature.name = name
        for listed, arguments in ((inputs, "input_arg"), (outputs, "output_arg")):
            for text in listed:
                argument, _, kind = text.partition(":")
                getattr(proto.signature, arguments).add(name=argument, type=int(kind or FLOAT))

    def add(self, name: str, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node of the body and return its name."""
        fill(self.proto.node_def.add(), name, op, *inputs, **attributes)
        return name

    def returns(self, **values: str) -> None:
        """Say what each result is."""
        for name, value in values.items():
            self.proto.ret[name] = value


def fill(node: Any, name: str, op: str, *inputs: str, **attributes: Any) -> None:
    node.name, node.op = name, op
    node.input.extend(inputs)
    for key, value in attributes.items():
        set_attribute(node.attr[key], value)


def set_attribute(attribute: Any, value: Any) -> None:
    if isinstance(value, bool):
        attribute.b = value
    elif isinstance(value, DType):
        attribute.type = value
    elif isinstance(value, int):
        attribute.i = value
    elif isinstance(value, float):
        attribute.f = value
    elif isinstance(value, str):
        attribute.s = value.encode()
    elif isinstance(value, tuple):
        attribute.shape.SetInParent()
        for size in value:
            attribute.shape.dim.add(size=size)
    elif isinstance(value, dict):
        attribute.func.name = value["function"]
    else:
        set_list(attribute.list, value)


def set_list(attribute: Any, values: list[Any]) -> None:
    attribute.SetInParent()
    for value in values:
        if isinstance(value, DType):
            attribute.type.append(value)
        elif isinstance(value, int):
            attribute.i.append(value)
        elif isinstance(value, str):
            attribute.s.append(value.encode())
        elif isinstance(value, dict):
            attribute.func.add(name=value["function"])
        else:
            shape = attribute.shape.add()
            for size in value:
                shape.dim.add(size=size)


class Reader:
    """Loads graphs with one child process for all of them: each start takes half a second."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._native: native.NativeTensorFlow | None = None
        self.models: dict[str, LoadedModel] = {}  # what was loaded, for those who ask twice

    @contextlib.contextmanager
    def shared(self, timeout_s: float = 60.0) -> Iterator[native.NativeTensorFlow]:
        """Yield the child, started again if a test made it crash."""
        if self._native is None or self._native.process.poll() is not None:
            self._native = self._stack.enter_context(native.native_tensorflow(timeout_s))
        yield self._native

    def close(self) -> None:
        self._stack.close()


class Loader:
    """Loads graphs through the shared reader."""

    def __init__(self, folder: Path, models: dict[str, LoadedModel]) -> None:
        self.folder = folder
        self.models = models

    def file(self, path: Path, **wishes: Any) -> LoadedModel:
        """Return the model in a file."""
        return load(path, wishes.get("shapes", {}), wishes.get("dims", {}))

    def model(self, graph: GraphDef, **wishes: Any) -> LoadedModel:
        """Return the model that a GraphDef is."""
        return self.file(graph.write(self.folder / "graph.pb"), **wishes)

    def graph(self, graph: GraphDef, **wishes: Any) -> Graph:
        """Return the main graph of a GraphDef."""
        return self.model(graph, **wishes).graph


def op_named(graph: Graph, name: str) -> Op:
    return next(op for op in graph.ops if op.name == name)


def names(graph: Graph) -> list[str]:
    return [op.name for op in graph.ops]


def waits(graph: Graph, name: str) -> set[str]:
    """Return the ops that control edges put before an op."""
    return {graph.ops[i].name for i in op_named(graph, name).control_inputs}


def peak(graph: Graph) -> int:
    """Return the checked peak of the file's order."""
    return require_valid_plan(graph, before_plan(graph, None)).peak_bytes


def storages(graph: Graph) -> dict[str, int]:
    return {tensor.name: tensor.storage for tensor in graph.tensors}
