"""Which results of a graph are means or sums, and what their errors are small beside."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.fx import Node
from torch.utils._pytree import tree_leaves

from regal.backends.torch.fuse import written_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch.fx import GraphModule

aten = torch.ops.aten

# Part of a normalization that is a mean -> part that says how far values spread around it, and
# whether that is one over the root of the variance; else it is the variance.
SPREAD_OF = {1: (2, True), 3: (4, False)}  # of the batch, running
NORMS = frozenset(
    {
        aten._native_batch_norm_legit_functional.default,
        aten.native_layer_norm.default,
        aten.native_group_norm.default,
    }
)
VIEWS = frozenset({aten.view.default, aten._unsafe_view.default, aten.reshape.default})


@dataclass(frozen=True, slots=True)
class Spread:
    """Where the spread of values around a mean is found among the results."""

    position: int
    is_reciprocal: bool  # one over the root of the variance; else the variance

    def deviation(self, value: torch.Tensor) -> torch.Tensor:
        """Return the standard deviation: a double per mean."""
        wide = value.detach().double()
        return wide.reciprocal() if self.is_reciprocal else wide.sqrt()


def spreads_of(module: GraphModule) -> Mapping[int, Spread]:
    """Return position of a mean -> its spread, for what a graph yields, then what it writes.

    Normalization subtracts a mean from values that spread around it, so an error of the mean
    counts as a share of that spread, however small the mean itself is.

    Args:
        module: as traced; positions are those of its results, then of `written_inputs`, rising.
    """
    parts = [(position, _part(node)) for node, position in _positions(module)]
    at = {part: position for position, part in parts if part is not None}
    found = {}
    for position, part in parts:
        if part is None or part[1] not in SPREAD_OF:
            continue
        number, is_reciprocal = SPREAD_OF[part[1]]
        if (part[0], number) in at:
            found[position] = Spread(at[part[0], number], is_reciprocal)
    return found


@dataclass(frozen=True, slots=True)
class Sum:
    """A result that adds up terms."""

    position: int
    terms: Node
    axes: Sequence[int]  # along which they are added; none: all

    def length(self, terms: torch.Tensor) -> torch.Tensor:
        """Return the length of the terms of each sum: about what it is if signs are random.

        A sum of terms that cancel out, like the gradient of a bias that normalization subtracts
        again, is nothing but rounding; its error counts beside this.
        """
        axes = list(self.axes) or None
        return torch.linalg.vector_norm(terms.detach().double(), dim=axes)


def sums_of(module: GraphModule) -> Mapping[Node, Sequence[Sum]]:
    """Return node that reads the terms -> its sums among the results of a graph.

    Args:
        module: as traced: positions are those of its results, see `spreads_of`.
    """
    found: dict[Node, list[Sum]] = {}
    for node, position in _positions(module):
        while node.target in VIEWS:
            node = node.args[0]
        if node.target is operator.getitem and node.args[1] == 2:
            node = node.args[0]
            if node.target is aten.convolution_backward.default:  # 2 is the gradient of the bias
                terms = node.args[0]
                axes = [axis for axis in range(terms.meta["val"].dim()) if axis != 1]
                found.setdefault(node, []).append(Sum(position, terms, axes))
        elif node.target is aten.sum.dim_IntList:
            found.setdefault(node, []).append(Sum(position, node.args[0], node.args[1] or ()))
    return found


def _positions(module: GraphModule) -> Iterator[tuple[Node, int]]:
    """Yield what is returned, or written over an input, and its position among the results."""
    leaves = tree_leaves(module.graph.output_node().args[0])
    yield from ((leaf, i) for i, leaf in enumerate(leaves) if isinstance(leaf, Node))
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    written = {given[i]: n for n, i in enumerate(sorted(written_inputs(module)))}
    for node in module.graph.find_nodes(op="call_function", target=aten.copy_.default):
        if node.args[0] in written:
            yield node.args[1], len(leaves) + written[node.args[0]]


def _part(node: Node) -> tuple[Node, int] | None:
    """Return the normalization that a node is a part of, and which."""
    if node.target is not operator.getitem or node.args[0].target not in NORMS:
        return None
    return node.args[0], node.args[1]
