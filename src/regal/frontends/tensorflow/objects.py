"""Take graphs from a running TensorFlow: concrete functions, tf.Graph objects, Keras models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.errors import UsageError
from regal.frontends.tensorflow.dims import Wishes
from regal.frontends.tensorflow.entries import MAIN_SIGNATURE
from regal.frontends.tensorflow.loading import model_of
from regal.frontends.tensorflow.ops import RESOURCE
from regal.frontends.tensorflow.read import TARGETS, graph_file_of
from regal.frontends.tensorflow.schema import Proto, new, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from regal.graph.types import LoadedModel


def from_concrete_function(
    function: Any,
    *,
    name: str = "",
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> LoadedModel:
    """Return the graph of a concrete function, such as an inference or a training step.

    Variables that it captures are state; constants that it captures are constants. Calls of
    other functions are inlined, control flow keeps its bodies.

    Args:
        function: what `tf.function(...).get_concrete_function(...)` returns.
        name: of the entry; by default the function's own.
        shapes: input -> all its dimensions, for inputs that leave some open.
        dims: "INPUT[AXIS]" or "batch" -> its size. An open first dimension is a batch of 1.

    Raises:
        UsageError: it is no concrete function, or names an input that it does not have.
        ModelError: dimensions remain open.
    """
    for attribute in ("graph", "inputs", "outputs"):
        if not hasattr(function, attribute):
            raise UsageError(
                f"{type(function).__name__} is no concrete function; get one with"
                " get_concrete_function(...)"
            )
    file = graph_file_of("Function", meta_graph_of(function))
    own = getattr(function, "name", b"")
    title = name or (own.decode() if isinstance(own, bytes) else str(own)) or "function"
    wishes = Wishes(shapes or {}, dims or {})
    return model_of(file, title, None, wishes, function=function)


def from_graph(
    graph: Any,
    *,
    fetches: Iterable[Any] = (),
    name: str = "graph",
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> LoadedModel:
    """Return the graph of a tf.Graph.

    Args:
        graph: a tf.Graph, finalized or not.
        fetches: tensors and operations (or their names) that are run together; only what they
            need is planned. Empty: all nodes.
        name: of the entry.
        shapes: as for `from_concrete_function`.
        dims: as for `from_concrete_function`.

    Raises:
        UsageError: it is no tf.Graph, or names an input that it does not have.
        ModelError: dimensions remain open, or a fetch does not exist.
    """
    if not hasattr(graph, "as_graph_def"):
        raise UsageError(f"{type(graph).__name__} is no tf.Graph")
    definition = parse("GraphDef", graph.as_graph_def().SerializeToString())
    wishes = Wishes(shapes or {}, dims or {})
    names = [str(getattr(fetch, "name", fetch)) for fetch in fetches]
    if not names:
        return model_of(graph_file_of("GraphDef", definition), name, None, wishes)
    meta = new("MetaGraphDef")
    meta.graph_def.CopyFrom(definition)
    signature = meta.signature_def[name]
    operations = []
    for fetch in names:
        if ":" in fetch:
            signature.outputs[fetch].name = fetch
        else:
            operations.append(fetch)
    meta.collection_def[TARGETS].node_list.value.extend(operations)
    return model_of(graph_file_of("Function", meta), name, None, wishes)


def from_keras_model(
    model: Any,
    *,
    training: bool = False,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> LoadedModel:
    """Return the graph of a call of a Keras model that has been built.

    Args:
        model: a Keras model with known inputs.
        training: as in `model(inputs, training=...)`.
        shapes: as for `from_concrete_function`.
        dims: as for `from_concrete_function`.

    Raises:
        UsageError: it is no Keras model, or it is not built.
    """
    function = function_of_keras(model, training=training)
    return from_concrete_function(function, name=str(model.name), shapes=shapes, dims=dims)


def function_of_keras(model: Any, *, training: bool = False) -> Any:
    """Return the concrete function that calls a built Keras model.

    Raises:
        UsageError: it is no Keras model, or it is not built.
    """
    import tensorflow as tf

    inputs = getattr(model, "inputs", None)
    if not inputs:
        raise UsageError(
            f"{type(model).__name__} is no Keras model with known inputs; call it once on a batch"
        )
    names = [str(tensor.name).partition(":")[0] for tensor in inputs]
    specs = [
        tf.TensorSpec(tensor.shape, tensor.dtype, name=name)
        for tensor, name in zip(inputs, names, strict=True)
    ]

    def call(*tensors: Any) -> Any:
        return model(tensors[0] if len(tensors) == 1 else list(tensors), training=training)

    return tf.function(call).get_concrete_function(*specs)


def meta_graph_of(function: Any) -> Proto:
    """Return a concrete function as a MetaGraph: captured values become variables, constants."""
    meta = new("MetaGraphDef")
    definition = function.graph.as_graph_def()
    meta.graph_def.CopyFrom(parse("GraphDef", definition.SerializeToString()))
    nodes = {node.name: node for node in meta.graph_def.node}
    captured = set()
    for outside, inside in function.graph.captures:
        if _replace_capture(nodes[inside.op.name], outside):
            captured.add(inside.op.name)
    signature = meta.signature_def[MAIN_SIGNATURE]
    for tensor in function.inputs:
        if tensor.op.name not in captured:
            _describe(signature.inputs[tensor.op.name], tensor)
    for number, tensor in enumerate(function.outputs):
        _describe(signature.outputs[f"output_{number}"], tensor)
    targets = [operation.name for operation in function.graph.control_outputs]
    meta.collection_def[TARGETS].node_list.value.extend(targets)
    return meta


def _replace_capture(node: Proto, outside: Any) -> bool:
    """Turn the placeholder of a captured value into what it stands for; return whether it was."""
    import tensorflow as tf

    if node.attr["dtype"].type == RESOURCE:
        # The variable itself may be gone: functions hold their handles alone.
        known = getattr(outside, "_handle_data", None)
        if known is None or not known.is_set or len(known.shape_and_type) != 1:
            return True  # a table or an iterator: a handle of something without a shape
        (about,) = known.shape_and_type
        node.op = "VarHandleOp"
        node.attr.clear()
        node.attr["dtype"].type = about.dtype
        shape = parse("TensorShapeProto", about.shape.SerializeToString())
        node.attr["shape"].shape.CopyFrom(shape)
        # Names of variables need not differ; placeholders' do.
        node.attr["shared_name"].s = node.name.encode()
        return True
    if not hasattr(outside, "numpy"):
        return False
    value = tf.make_tensor_proto(outside.numpy())
    node.op = "Const"
    node.attr.clear()
    node.attr["dtype"].type = value.dtype
    node.attr["value"].tensor.CopyFrom(parse("TensorProto", value.SerializeToString()))
    return True


def _describe(info: Proto, tensor: Any) -> None:
    info.name = tensor.name
    info.dtype = tensor.dtype.as_datatype_enum
    shape = parse("TensorShapeProto", tensor.shape.as_proto().SerializeToString())
    info.tensor_shape.CopyFrom(shape)
