"""Turn a fitted float network into an int8 .tflite model, by TensorFlow Lite's rules.

Activations: one scale and zero point per tensor, over its measured range. Weights: one
scale per output channel, symmetric. Biases: int32 at input scale x weight scale.
Operators that only move numbers keep the scale of their input, so values that such
operators connect share one range.
Source: the public TensorFlow Lite 8-bit quantization specification.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from tools.models.tflite_writer import (
    Quantization,
    TfliteModel,
    TfliteOperator,
    TfliteSignature,
    TfliteSubgraph,
    TfliteTensor,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tools.models.fit import FittedNetwork
    from tools.models.network import Node
    from tools.models.random_numbers import Array

MOVING_KINDS = frozenset(
    {"concat", "avg_pool", "max_pool", "reshape", "slice", "split", "pad", "upsample"}
)
_FIXED = Quantization(scales=(1.0 / 256.0,), zero_points=(-128,))  # softmax, logistic
_RELU = 1  # ActivationFunctionType
_SAME, _VALID = 0, 1  # Padding


def quantize(fitted: FittedNetwork, order: Sequence[Node]) -> TfliteModel:
    """Return the int8 model whose operators run in `order`.

    State variables become resource variables: handles first, set to zero once by a second
    subgraph, as TensorFlow's converter writes them.

    Cost: O(weights + values).
    """
    network = fitted.network
    scales = activation_scales(fitted)
    main = _Graph(fitted, scales)
    if network.variables:
        main.operators.append(_operator("CALL_ONCE", (), (), {"init_subgraph": 1}))
    for name in network.variables:
        main.handle(name)
    main.value(network.input)
    for node in order:
        main.operators.append(_WRITERS[node.kind](main, node))
    inputs, outputs = main.tensors_of[network.input], main.tensors_of[network.output]
    subgraphs = [
        TfliteSubgraph(
            name="main", tensors=tuple(main.tensors), operators=tuple(main.operators),
            inputs=(inputs,), outputs=(outputs,),
        )
    ]  # fmt: skip
    if network.variables:
        subgraphs.append(_initialization(main))
    return TfliteModel(
        subgraphs=tuple(subgraphs),
        buffers=tuple(main.buffers),
        description=network.name,
        signatures=(
            TfliteSignature(
                key="serving_default", inputs=(("input", inputs),),
                outputs=(("output", outputs),),
            ),
        ),
    )  # fmt: skip


def activation_scales(fitted: FittedNetwork) -> dict[str, Quantization]:
    """Return the quantization of every value; moving operators join values to one."""
    parent = {name: name for name in [*fitted.ranges, *fitted.network.variables]}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for node in fitted.network.nodes:
        joined = [node.variable, *node.inputs, *node.outputs]
        if node.kind in MOVING_KINDS or node.variable:
            joined = [name for name in joined if name]
            for name in joined[1:]:
                parent[root(name)] = root(joined[0])
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    for name, (least, most) in fitted.ranges.items():
        low[root(name)] = min(low.get(root(name), 0.0), least)
        high[root(name)] = max(high.get(root(name), 0.0), most)
    scales = {name: _asymmetric(low[root(name)], high[root(name)]) for name in parent}
    for node in fitted.network.nodes:
        if node.kind in ("softmax", "logistic"):
            scales[node.outputs[0]] = _FIXED
    return scales


def _asymmetric(low: float, high: float) -> Quantization:
    scale = float(np.float32((high - low) / 255.0))
    zero_point = int(np.clip(round(-128 - low / scale), -128, 127))
    return Quantization(scales=(scale,), zero_points=(zero_point,))


@dataclass(slots=True)
class _Graph:
    """The tensors, buffers and operators of the main subgraph while it is written."""

    fitted: FittedNetwork
    scales: Mapping[str, Quantization]
    tensors: list[TfliteTensor] = field(default_factory=list)
    buffers: list[bytes] = field(default_factory=lambda: [b""])
    operators: list[TfliteOperator] = field(default_factory=list)
    tensors_of: dict[str, int] = field(default_factory=dict)

    def value(self, name: str) -> int:
        """Return the index of a value's tensor; the first call makes it."""
        if name not in self.tensors_of:
            shape = (1, *self.fitted.network.shapes[name])
            self.tensors_of[name] = self._append(
                TfliteTensor(name=name, shape=shape, quantization=self.scales[name])
            )
        return self.tensors_of[name]

    def constant(self, tensor: TfliteTensor, data: Array | Sequence[int]) -> int:
        """Return the index of a new tensor that holds `data` in its own dtype."""
        numbers = np.asarray(data, dtype=np.dtype(tensor.dtype).newbyteorder("<"))
        self.buffers.append(numbers.tobytes())
        return self._append(replace(tensor, buffer=len(self.buffers) - 1))

    def integers(self, name: str, data: Sequence[int], shape: tuple[int, ...]) -> int:
        """Return the index of a new constant of shape parameters; equal ones are shared."""
        key = f"{name}:{tuple(data)}:{shape}"
        if key not in self.tensors_of:
            tensor = TfliteTensor(name=name, shape=shape, dtype="int32")
            self.tensors_of[key] = self.constant(tensor, data)
        return self.tensors_of[key]

    def handle(self, variable: str) -> None:
        """Add the handle of a state variable."""
        index = self._append(TfliteTensor(name=variable, shape=(), dtype="resource"))
        self.tensors_of[variable] = index
        options = {"shared_name": variable}
        self.operators.append(_operator("VAR_HANDLE", (), (index,), options))

    def _append(self, tensor: TfliteTensor) -> int:
        self.tensors.append(tensor)
        return len(self.tensors) - 1


def _operator(
    kind: str,
    inputs: tuple[int, ...],
    outputs: tuple[int, ...],
    options: Mapping[str, int | float | str] | None = None,
) -> TfliteOperator:
    return TfliteOperator(kind=kind, inputs=inputs, outputs=outputs, options=options or {})


def _weighted(graph: _Graph, node: Node) -> TfliteOperator:
    """Write a conv, depthwise or dense with int8 weights and an int32 bias."""
    weight, bias = graph.fitted.weights[node.name]
    # The format wants conv [out, h, w, in], depthwise [1, h, w, out], dense [out, in].
    if node.kind == "conv":
        stored, axis = weight.transpose(3, 0, 1, 2), 0
    elif node.kind == "depthwise":
        stored, axis = weight[np.newaxis], 3
    else:
        stored, axis = weight.T, 0
    channels_last = np.moveaxis(stored, axis, -1)
    largest = np.abs(channels_last).reshape(-1, channels_last.shape[-1]).max(axis=0)
    if node.kind == "dense":  # one scale: not every kernel takes one per output here
        largest = np.full_like(largest, largest.max())
    # float32 first: the runtime multiplies by the stored scale, not by ours.
    scales = np.maximum(largest / 127.0, 2.0**-20).astype(np.float32).astype(np.float64)
    small = np.clip(np.round(channels_last / scales), -127, 127)
    source = graph.scales[node.inputs[0]].scales[0]
    single = node.kind == "dense"
    weight_index = graph.constant(
        TfliteTensor(
            name=f"{node.name}/weight", shape=stored.shape,
            quantization=_symmetric(scales[:1] if single else scales, axis),
        ),
        np.moveaxis(small, -1, axis),
    )  # fmt: skip
    bias_scales = (scales * source).astype(np.float32).astype(np.float64)
    bias_index = graph.constant(
        TfliteTensor(
            name=f"{node.name}/bias", shape=bias.shape, dtype="int32",
            quantization=_symmetric(bias_scales[:1] if single else bias_scales, 0),
        ),
        np.round(bias / bias_scales),
    )  # fmt: skip
    inputs = (graph.value(node.inputs[0]), weight_index, bias_index)
    outputs = (graph.value(node.outputs[0]),)
    activation = _RELU if node.relu else 0
    if node.kind == "dense":
        return _operator("FULLY_CONNECTED", inputs, outputs, {"activation": activation})
    common = {
        "padding": _SAME if node.padding == "same" else _VALID, "stride_w": node.stride,
        "stride_h": node.stride, "activation": activation,
    }  # fmt: skip
    if node.kind == "depthwise":
        return _operator("DEPTHWISE_CONV_2D", inputs, outputs, {**common, "multiplier": 1})
    return _operator("CONV_2D", inputs, outputs, common)


def _symmetric(scales: Array, axis: int) -> Quantization:
    return Quantization(
        scales=tuple(float(scale) for scale in scales),
        zero_points=(0,) * len(scales),
        axis=axis,
    )


def _values(graph: _Graph, names: Sequence[str]) -> tuple[int, ...]:
    return tuple(graph.value(name) for name in names)


def _plain(graph: _Graph, node: Node) -> TfliteOperator:
    """Write an operator that takes nothing but values."""
    options: dict[str, int | float] = {}
    if node.kind == "add":
        options = {"activation": _RELU if node.relu else 0}
    elif node.kind == "concat":
        options = {"axis": node.axis}
    elif node.kind == "softmax":
        options = {"beta": 1.0}
    elif node.kind in ("avg_pool", "max_pool"):
        options = {
            "padding": _SAME if node.padding == "same" else _VALID,
            "stride_w": node.stride, "stride_h": node.stride,
            "filter_w": node.kernel[1], "filter_h": node.kernel[0],
        }  # fmt: skip
    inputs, outputs = _values(graph, node.inputs), _values(graph, node.outputs)
    return _operator(_PLAIN_KINDS[node.kind], inputs, outputs, options)


_PLAIN_KINDS = {
    "add": "ADD", "concat": "CONCATENATION", "avg_pool": "AVERAGE_POOL_2D",
    "max_pool": "MAX_POOL_2D", "relu": "RELU", "softmax": "SOFTMAX", "logistic": "LOGISTIC",
}  # fmt: skip


def _shaped(graph: _Graph, node: Node) -> TfliteOperator:
    """Write an operator that takes one value and constants that describe shapes."""
    (source,) = _values(graph, node.inputs)
    shape = (1, *graph.fitted.network.shapes[node.outputs[0]])
    ints = graph.integers
    if node.kind == "mean":
        constants = [ints("axes", (1, 2), (2,))]
    elif node.kind == "reshape":
        constants = [ints("shape", shape, (len(shape),))]
    elif node.kind == "upsample":
        constants = [ints("size", shape[1:3], (2,))]
    elif node.kind == "pad":
        (top, left), (bottom, right) = node.before, node.after
        constants = [ints("paddings", (0, 0, top, bottom, left, right, 0, 0), (4, 2))]
    elif node.kind == "split":
        sizes = [graph.fitted.network.shapes[name][-1] for name in node.outputs]
        constants = [ints("sizes", sizes, (len(sizes),)), ints("axis", (node.axis,), ())]
    else:
        rank = len(shape)
        begin, end = (0, *node.begin), (1, *node.end)
        constants = [ints("corner", begin, (rank,)), ints("corner", end, (rank,))]
        constants.append(ints("strides", (1,) * rank, (rank,)))
    outputs = _values(graph, node.outputs)
    options = {"num_splits": len(outputs)} if node.kind == "split" else {}
    return _operator(_SHAPED_KINDS[node.kind], (source, *constants), outputs, options)


_SHAPED_KINDS = {
    "mean": "MEAN", "reshape": "RESHAPE", "upsample": "RESIZE_NEAREST_NEIGHBOR",
    "pad": "PAD", "split": "SPLIT_V", "slice": "STRIDED_SLICE",
}  # fmt: skip


def _state(graph: _Graph, node: Node) -> TfliteOperator:
    handle = graph.tensors_of[node.variable]
    if node.kind == "read":
        return _operator("READ_VARIABLE", (handle,), _values(graph, node.outputs))
    return _operator("ASSIGN_VARIABLE", (handle, *_values(graph, node.inputs)), ())


_WRITERS = {
    **dict.fromkeys(("conv", "depthwise", "dense"), _weighted),
    **dict.fromkeys(_PLAIN_KINDS, _plain),
    **dict.fromkeys(_SHAPED_KINDS, _shaped),
    **dict.fromkeys(("read", "assign"), _state),
}


def _initialization(main: _Graph) -> TfliteSubgraph:
    """Return the subgraph that sets every state variable to zero."""
    graph = _Graph(main.fitted, main.scales, buffers=main.buffers)
    for name, shape in main.fitted.network.variables.items():
        graph.handle(name)
        quantization = main.scales[name]
        zero = TfliteTensor(name=f"{name}/zero", shape=(1, *shape), quantization=quantization)
        index = graph.constant(zero, np.full(shape, quantization.zero_points[0]))
        pair = (graph.tensors_of[name], index)
        graph.operators.append(_operator("ASSIGN_VARIABLE", pair, ()))
    return TfliteSubgraph(
        name="initialize", tensors=tuple(graph.tensors), operators=tuple(graph.operators),
        inputs=(), outputs=(),
    )  # fmt: skip
