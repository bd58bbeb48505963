"""How many arithmetic operations an op does; a multiply-add counts as two.

Where a framework publishes its count, that is the count here: TensorFlow's registry
(tensorflow/python/profiler/internal/flops_registry.py and the RegisterStatistics calls of
nn_ops.py; tests compare), and the estimator of its graph optimizer for what the registry lacks
(tensorflow/core/grappler/costs/op_level_cost_estimator.cc: batch normalization). Bias and fused
activation of a convolution or matrix product are left out, as they are there.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from regal.cost.operands import Operands

    Rule = Callable[[Operands], int]

LAYER_NORM = 8  # mean 1, variance 3, normalize 2, scale and shift 2
BATCH_NORM_INFERENCE = 2
BATCH_NORM_TRAINING = 4
BATCH_NORM_GRADIENT = 11
RESIZE_BILINEAR = 7  # four products, three sums
SOFTMAX = 5


def per_output(factor: int) -> Rule:
    """Return the rule `factor` operations per element of the largest output."""
    return lambda op: factor * op.written


def per_input(factor: int) -> Rule:
    """Return the rule `factor` operations per element of the first input."""
    return lambda op: factor * op.first


def nothing(op: Operands) -> int:
    """Return 0: bytes only move."""
    return 0


def pointwise(op: Operands) -> int:
    """Return one operation per element of the larger side (a gradient's output may be small)."""
    return op.written or op.read


def reduction(op: Operands) -> int:
    """Return what a sum, a maximum or the like takes: one operation less than it has elements."""
    return max(op.first - op.written, 0)


def mean(op: Operands) -> int:
    """Return a sum, and one division per result."""
    return op.first


def pooling(op: Operands) -> int:
    """Return one operation per element of each window."""
    return op.written * window(op)


def window(op: Operands) -> int:
    """Return the elements of a pooling window, as any of the frameworks states them."""
    size = op.ints("ksize") or op.ints("kernel_shape")
    if not size and op.number("filter_height"):
        size = (op.number("filter_height"), op.number("filter_width"))
    if size:
        return prod(size)
    return max(op.first // op.written, 1) if op.written else 1  # global pooling


def sorting(op: Operands) -> int:
    """Return one comparison per element and level of a merge sort over the last axis."""
    shape = op.shape(0)
    return op.first * max((shape[-1] if shape else 1).bit_length() - 1, 1)


def convolution(weights: int, reads: slice) -> Rule:
    """Return the rule of a convolution: products per output element.

    Args:
        weights: position of the weights among the inputs.
        reads: the axes of the weights that one output element multiplies: its own group's
            channels and the window, so that groups and depthwise need no further thought.
    """
    return lambda op: 2 * op.written * prod(op.shape(weights)[reads])


def spread(weights: int, data: int, reads: slice) -> Rule:
    """Return the rule of a transposed convolution: products per input element."""
    return lambda op: 2 * prod(op.shape(data)) * prod(op.shape(weights)[reads])


def matrix_product(*, transposed: tuple[str, ...] = (), first: int = 0) -> Rule:
    """Return the rule of a (batched) matrix product: products per output element.

    Args:
        transposed: attributes that say that the left side is transposed.
        first: position of the left side.
    """

    def rule(op: Operands) -> int:
        left = op.shape(first)
        if not left:
            return 0
        is_transposed = len(left) > 1 and op.flag(*transposed)
        return 2 * op.written * (left[-2] if is_transposed else left[-1])

    return rule


def einsum(op: Operands) -> int:
    """Return the products over all indices of an Einstein sum, as if it had no order of its own."""
    equation = op.attributes.get("equation")
    left, _, _ = (
        equation.replace(" ", "").partition("->") if isinstance(equation, str) else ("",) * 3
    )
    sizes: dict[str, int] = {}
    for position, term in enumerate(left.split(",")):
        shape = op.shape(position)
        head, dots, tail = term.partition("...")
        for letter, size in zip(head, shape, strict=False):
            sizes[letter] = max(size, sizes.get(letter, 1))
        for letter, size in zip(reversed(tail), reversed(shape), strict=False):
            sizes[letter] = max(size, sizes.get(letter, 1))
        if dots:
            inner = shape[len(head) : len(shape) - len(tail)]
            sizes["..."] = max(prod(inner), sizes.get("...", 1))
    operands = sum(tensor is not None for tensor in op.inputs)
    return prod(sizes.values()) * (2 * (operands - 1) if operands > 1 else 1) if sizes else 0


def recurrent(steps: int, matrices: tuple[int, ...]) -> Rule:
    """Return the rule of LSTM, GRU and RNN layers: every step multiplies with every matrix.

    Args:
        steps: position of the input, (time, batch, features) in any order.
        matrices: positions of the weights.
    """

    def rule(op: Operands) -> int:
        rows = prod(op.shape(steps)[:-1])
        return 2 * rows * sum(prod(op.shape(i)) for i in matrices if op.shape(i))

    return rule


def times(factor: int, rule: Rule) -> Rule:
    """Return `factor` times what `rule` counts: a gradient repeats what it goes back through."""
    return lambda op: factor * rule(op)
