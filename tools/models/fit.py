"""Give a network weights, as training would leave them, and measure its value ranges.

Weights are random; normalization layers then take the mean and deviation that they see on
seeded inputs, folded into the weights before them, so that every layer is used in full and
nothing saturates. All of it runs in float64, and what is kept is rounded to a coarse grid:
the last bits of a sum, which differ between machines, never reach a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tools.models.network import WEIGHTED_KINDS, same_padding
from tools.models.random_numbers import uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tools.models.network import Network, Node
    from tools.models.random_numbers import Array

Weights = dict[str, tuple["Array", "Array"]]  # node name -> weight, bias
_SMALLEST_DEVIATION = 2.0**-6  # of a layer in which nothing moves
_NO_WEIGHT = (np.zeros(()), np.zeros(()))
_LOGIT_GAIN = 2.0  # the classes then differ clearly from picture to picture


@dataclass(frozen=True, slots=True)
class FittedNetwork:
    """A network with weights and with the range [low, high] of every value, 0 included."""

    network: Network
    weights: Weights
    ranges: dict[str, tuple[float, float]]


def fit(network: Network, inputs: Array, seed: int) -> FittedNetwork:
    """Return `network` with weights made from `seed` and ranges measured on `inputs`.

    Args:
        network: the network.
        inputs: [steps, batch, *input shape]; state variables live from step to step.
        seed: of the weights.
    """
    batch = inputs.shape[1]
    states = {
        name: np.abs(uniform(seed, name, (batch, *shape)))
        for name, shape in network.variables.items()
    }
    # The first statistics see invented states. Each pass makes the states of one more layer
    # real, because the layers before it have their final weights.
    for _ in range(len(network.variables) + 1):
        weights: Weights = {}
        _, after = _run(network, inputs[0], states, _fitting(network, weights, seed))
        for step in inputs[1:]:
            _, after = _run(network, step, after, _with_weights(weights))
        states = after
    ranges = _measure(network, inputs, weights)
    return FittedNetwork(network, weights, ranges)


def run(fitted: FittedNetwork, inputs: Array) -> Array:
    """Return the float outputs of every step: [steps, batch, *output shape]."""
    states = _zero_states(fitted.network, inputs.shape[1])
    outputs = []
    for step in inputs:
        values, states = _run(fitted.network, step, states, _with_weights(fitted.weights))
        outputs.append(values[fitted.network.output])
    return np.stack(outputs)


def evaluate_node(node: Node, args: list[Array], weight: tuple[Array, Array]) -> list[Array]:
    """Return what the node makes of its arguments, before a fused ReLU.

    `weight` is the weight and bias of nodes that have them; others ignore it.
    """
    if node.kind in ("conv", "depthwise"):
        return [_convolve(node, args[0], weight[0]) + weight[1]]
    if node.kind == "dense":
        return [args[0] @ weight[0] + weight[1]]
    if node.kind in ("avg_pool", "max_pool"):
        return [_pool(node, args[0])]
    if node.kind == "split":
        return np.split(args[0], len(node.outputs), axis=node.axis)
    return [_SIMPLE_KINDS[node.kind](node, args)]


def _fitting(
    network: Network, weights: Weights, seed: int
) -> Callable[[Node, list[Array]], list[Array]]:
    """Return an evaluation that first draws the weights of each node it meets."""

    def evaluate(node: Node, args: list[Array]) -> list[Array]:
        if node.kind not in WEIGHTED_KINDS:
            return evaluate_node(node, args, _NO_WEIGHT)
        weight = _draw(network, node, seed)
        if node.normalize:
            weight = _normalized(node, args, weight, seed)
        weights[node.name] = weight
        return evaluate_node(node, args, weight)

    return evaluate


def _draw(network: Network, node: Node, seed: int) -> tuple[Array, Array]:
    """Return random weights whose outputs are about as large as their inputs."""
    inputs = network.shapes[node.inputs[0]][-1]
    outputs = network.shapes[node.outputs[0]][-1]
    shapes = {
        "conv": (*node.kernel, inputs, outputs),
        "depthwise": (*node.kernel, inputs),
        "dense": (inputs, outputs),
    }
    shape = shapes[node.kind]
    fan_in = inputs if node.kind == "dense" else int(np.prod(shape[:-1]))
    weight = uniform(seed, node.name, shape) * np.sqrt(3.0 / fan_in)
    if node.kind == "depthwise":
        # A blur plus noise: like trained filters it lets the picture through. Without it
        # a deep random network is chaotic, and one rounding step changes the answer.
        weight = 0.5 * weight + 1.0 / fan_in
    if node.kind == "conv" and inputs == outputs:
        middle = tuple(size // 2 for size in node.kernel)
        weight[middle] += np.eye(inputs)  # and mostly keeps its channels
    return weight, np.zeros(outputs)


def _normalized(
    node: Node, args: list[Array], weight: tuple[Array, Array], seed: int
) -> tuple[Array, Array]:
    made = evaluate_node(node, args, weight)[0]
    axes = tuple(range(made.ndim - 1))
    deviation = made.std(axis=axes)
    # A channel that hardly moves is not blown up: on other inputs it may move.
    deviation = np.maximum(deviation, deviation.mean() / 2.0 + _SMALLEST_DEVIATION)
    gain = _to_grid((_LOGIT_GAIN if node.kind == "dense" else 1.0) / deviation)
    shift = 0.75 + 0.25 * uniform(seed, node.name + "/shift", deviation.shape)
    bias = np.round((shift - made.mean(axis=axes) * gain) * 256.0) / 256.0
    return weight[0] * gain, bias


def _to_grid(values: Array) -> Array:
    """Return the values with 8 significant bits."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 256.0) / 256.0, exponent)


def _with_weights(weights: Weights) -> Callable[[Node, list[Array]], list[Array]]:
    return lambda node, args: evaluate_node(node, args, weights.get(node.name, _NO_WEIGHT))


def _run(
    network: Network,
    step: Array,
    states: Mapping[str, Array],
    evaluate: Callable[[Node, list[Array]], list[Array]],
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return all values of one step and the states after it."""
    values = {network.input: step}
    states = dict(states)
    for node in network.nodes:
        args = [values[name] for name in node.inputs]
        if node.kind == "read":
            made = [states[node.variable]]
        elif node.kind == "assign":
            states[node.variable] = args[0]
            made = []
        elif node.kind == "reshape":
            made = [args[0].reshape(len(step), *network.shapes[node.outputs[0]])]
        else:
            made = evaluate(node, args)
        if node.relu:
            made = [np.maximum(value, 0.0) for value in made]
        values.update(zip(node.outputs, made, strict=True))
    return values, states


def _zero_states(network: Network, batch: int) -> dict[str, Array]:
    return {name: np.zeros((batch, *shape)) for name, shape in network.variables.items()}


def _measure(network: Network, inputs: Array, weights: Weights) -> dict[str, tuple[float, float]]:
    states = _zero_states(network, inputs.shape[1])
    low: dict[str, float] = {}
    high: dict[str, float] = {}
    for step in inputs:
        values, states = _run(network, step, states, _with_weights(weights))
        for name, value in values.items():
            low[name] = min(low.get(name, 0.0), float(value.min()))
            high[name] = max(high.get(name, 0.0), float(value.max()))
    # Outward to the next 1/64: the same range on every machine.
    return {
        name: (np.floor(low[name] * 64 - 1e-6) / 64, np.ceil(high[name] * 64 + 1e-6) / 64)
        for name in low
    }


def _windows(node: Node, x: Array, fill: float) -> tuple[Array, int, int]:
    """Return the padded input and the output's rows and columns."""
    height, width = x.shape[1:3]
    kernel, stride = node.kernel, node.stride
    if node.padding == "same":
        rows = same_padding(height, kernel[0], stride)
        columns = same_padding(width, kernel[1], stride)
        x = np.pad(x, ((0, 0), rows, columns, (0, 0)), constant_values=fill)
    out_rows = (x.shape[1] - kernel[0]) // stride + 1
    out_columns = (x.shape[2] - kernel[1]) // stride + 1
    return x, out_rows, out_columns


def _taps(node: Node, x: Array, rows: int, columns: int) -> list[tuple[int, int, Array]]:
    """Return, for every position in the kernel, the inputs that it meets."""
    stride = node.stride
    return [
        (i, j, x[:, i : i + rows * stride : stride, j : j + columns * stride : stride])
        for i in range(node.kernel[0])
        for j in range(node.kernel[1])
    ]


def _convolve(node: Node, x: Array, weight: Array) -> Array:
    padded, rows, columns = _windows(node, x, 0.0)
    # Strides of the last window may end behind the padded input; taps are cut to rows.
    parts = _taps(node, padded, rows, columns)
    if node.kind == "depthwise":
        return sum((tap * weight[i, j] for i, j, tap in parts), start=np.zeros(()))
    return sum((tap @ weight[i, j] for i, j, tap in parts), start=np.zeros(()))


def _pool(node: Node, x: Array) -> Array:
    if node.kind == "max_pool":
        padded, rows, columns = _windows(node, x, -np.inf)
        taps = [tap for _, _, tap in _taps(node, padded, rows, columns)]
        largest: Array = np.max(taps, axis=0)
        return largest
    padded, rows, columns = _windows(node, x, 0.0)
    counted, _, _ = _windows(node, np.ones_like(x[:1, :, :, :1]), 0.0)
    total = sum((t for _, _, t in _taps(node, padded, rows, columns)), start=np.zeros(()))
    # Zeros of the padding are not averaged.
    count = sum((t for _, _, t in _taps(node, counted, rows, columns)), start=np.zeros(()))
    return total / count


def _softmax(x: Array) -> Array:
    powers: Array = np.exp(x - x.max(axis=-1, keepdims=True))
    total: Array = powers.sum(axis=-1, keepdims=True)
    return powers / total


def _slice(node: Node, x: Array) -> Array:
    parts = tuple(slice(a, b) for a, b in zip(node.begin, node.end, strict=True))
    return x[(slice(None), *parts)]


def _pad(node: Node, x: Array) -> Array:
    (top, left), (bottom, right) = node.before, node.after
    return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))


_SIMPLE_KINDS: Mapping[str, Callable[[Node, list[Array]], Array]] = {
    "add": lambda node, args: args[0] + args[1],
    "concat": lambda node, args: np.concatenate(args, axis=node.axis),
    "relu": lambda node, args: np.maximum(args[0], 0.0),
    "mean": lambda node, args: args[0].mean(axis=(1, 2)),
    "softmax": lambda node, args: _softmax(args[0]),
    "logistic": lambda node, args: 0.5 + 0.5 * np.tanh(args[0] / 2.0),
    "upsample": lambda node, args: args[0].repeat(2, axis=1).repeat(2, axis=2),
    "slice": lambda node, args: _slice(node, args[0]),
    "pad": lambda node, args: _pad(node, args[0]),
}
