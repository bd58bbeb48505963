"""Run a graph in double precision, whatever precision it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Interpreter
from torch.utils._pytree import tree_map

from regal.backends.torch.spreads import sums_of

if TYPE_CHECKING:
    from torch.fx import GraphModule, Node
    from torch.fx.node import Target

aten = torch.ops.aten

# Their last argument says that 16-bit numbers become 32-bit ones: there are none.
WIDENING = frozenset({aten._softmax.default, aten._log_softmax.default})


class InDouble(Interpreter):
    """A run in which floats are doubles: constants, and what operators are told to make.

    Inputs have to be doubles already: see `wide_args`.
    """

    def __init__(self, module: GraphModule) -> None:
        """Take the graph; it is not changed."""
        super().__init__(module, garbage_collect_values=True)
        self.extra_traceback = False
        self.lengths: dict[int, torch.Tensor] = {}  # position of a sum -> length of its terms
        self._sums = sums_of(module)

    def run_node(self, n: Node) -> Any:
        """Run a node."""
        for each in self._sums.get(n, ()):
            self.lengths[each.position] = each.length(self.env[each.terms])
        return super().run_node(n)

    def get_attr(self, target: Target, args: Any, kwargs: Any) -> Any:
        """Return a constant."""
        return _wide(super().get_attr(target, args, kwargs))

    def call_function(self, target: Target, args: Any, kwargs: Any) -> Any:
        """Run an operator."""
        args, kwargs = tree_map(_wide_dtype, (args, kwargs))
        if target in WIDENING:
            args = (*args[:-1], False)
        return super().call_function(target, args, kwargs)


def wide_args(args: list[Any]) -> list[Any]:
    """Return copies of floats as doubles, everything else as it is."""
    return [_wide(arg) for arg in args]


def _wide(value: Any) -> Any:
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if is_float else value


def _wide_dtype(value: Any) -> Any:
    is_float = isinstance(value, torch.dtype) and value.is_floating_point
    return torch.float64 if is_float else value
