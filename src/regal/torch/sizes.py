"""Where sizes are free: one graph for all of them, and one for each that comes back."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch.fx import GraphModule

    Run = Callable[..., Any]

log = logging.getLogger("regal.torch")

CALLS = 2  # a size that is called so often is planned: what is called once does not pay for it
MOST = 8  # sizes that are planned
FORGOTTEN = 1000  # sizes that were called once: more are not counted


def free_inputs(module: GraphModule, inputs: Sequence[Any]) -> list[int]:
    """Return the positions of inputs that are free numbers, or have free sizes or strides.

    Args:
        module: as captured.
        inputs: what it was captured with; Dynamo may say in the graph alone what is free.
    """
    given = [node for node in module.graph.nodes if node.op == "placeholder"]
    fakes = [node.meta.get("example_value") for node in given]
    if len(fakes) != len(inputs):
        fakes = [None] * len(inputs)
    rows = enumerate(zip(inputs, fakes, strict=True))
    return [i for i, row in rows if any(map(_is_free, row))]


@dataclass(slots=True)
class BySize:
    """A callable that runs the graph for the sizes of its arguments, if it has one."""

    free: Sequence[int]  # positions of arguments that differ
    run: Run  # for any sizes
    planned: Callable[[Sequence[Any]], Run]  # returns the graph for the sizes of some arguments
    runs: dict[tuple[Any, ...], Run] = field(default_factory=dict)
    calls: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def __call__(self, *args: Any) -> Any:
        """Return what the graph yields."""
        key = tuple(_size_of(args[i]) for i in self.free)
        run = self.runs.get(key)
        return self._counted(key, args)(*args) if run is None else run(*args)

    def _counted(self, key: tuple[Any, ...], args: Sequence[Any]) -> Run:
        """Return what runs a size that has no graph of its own before this call."""
        if len(self.runs) >= MOST or len(self.calls) >= FORGOTTEN:
            return self.run
        self.calls[key] += 1
        if self.calls[key] < CALLS:
            return self.run
        self.calls.pop(key, None)  # another thread may have been here
        numbers = dict.fromkeys(each for each in key if isinstance(each, int)) or key
        log.info("sizes %s are called again: they get a plan of their own", [*numbers])
        self.runs[key] = self.planned(args)
        return self.runs[key]


def _is_free(value: object) -> bool:
    if isinstance(value, torch.SymInt):
        return True
    return isinstance(value, torch.Tensor) and any(
        isinstance(number, torch.SymInt) for number in (*value.shape, *value.stride())
    )


def _size_of(value: Any) -> object:
    return (*value.shape, *value.stride()) if isinstance(value, torch.Tensor) else value
