"""Run a fused graph; its first run is compared with the original graph's."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from regal.backends.torch.agreement import disagreement
from regal.backends.torch.executor import boxed
from regal.backends.torch.fuse import written_inputs
from regal.backends.torch.layouts import with_strides
from regal.backends.torch.trial import copied_tensor
from regal.errors import summary_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.fx import GraphModule

log = logging.getLogger("regal.torch")

# What kernels and generated code raise where something is not as it was foreseen.
FAILED = (RuntimeError, AssertionError, TypeError, ValueError, LookupError, ArithmeticError)


@dataclass(slots=True)
class Link:
    """What the graphs of one captured module tell each other."""

    has_failed: bool = False  # a graph runs as traced: what it saves has the strides of the trace


class FusedExecutor:
    """A fused graph that takes its arguments in a list, which it empties.

    The first run computes everything twice and compares: where results differ by more than
    rounding, or anything fails, the original graph runs from then on, of all linked graphs.
    """

    def __init__(
        self,
        original: GraphModule,
        fused: GraphModule,
        link: Link,
        *,
        name: str = "",
        saved: frozenset[int] = frozenset(),
        failed: Callable[[], None] | None = None,
    ) -> None:
        """Take both graphs, what ties them to others, positions of what is only saved.

        `failed` is called where the fused graph is given up.
        """
        self._original = original
        self._plain = boxed(original)
        self._fused = boxed(fused)
        self._link = link
        self._name = name
        self._saved = saved
        self._failed = failed
        self._is_verified = False
        given = [node for node in original.graph.nodes if node.op == "placeholder"]
        self._written = sorted(written_inputs(original))
        self._strides = [
            None if i in self._written or not isinstance(value, torch.Tensor) else value.stride()
            for i, value in enumerate(node.meta.get("val") for node in given)
        ]

    def __call__(self, args: list[Any]) -> Any:
        """Return what the graph yields."""
        if self._link.has_failed:
            return self._plain(self._as_traced(args))
        if self._is_verified:
            return self._fused(args)
        return self._first_run(args)

    def _first_run(self, args: list[Any]) -> Any:
        held = list(args)
        copies = self._as_traced(list(args))
        for i in self._written:
            copies[i] = copied_tensor(args[i])
        kept = {i: copies[i] for i in self._written}
        before = {i: copied_tensor(args[i]) for i in self._written}
        state = torch.get_rng_state()
        reference = self._plain(copies)
        after = torch.get_rng_state()
        torch.set_rng_state(state)
        given = {i: args[i] for i in self._written}
        try:
            result = self._fused(args)
            for i, value in before.items():
                held[i] = value
            reason = disagreement(
                (reference, [kept[i] for i in self._written]),
                (result, [given[i] for i in self._written]),
                lambda: self._in_double(held, state),
                self._saved,
            )
        except FAILED as error:
            reason = summary_of(error)
        if not reason:
            self._is_verified = True
            return result
        log.warning("the %s graph runs as traced: %s", self._name, reason)
        self._link.has_failed = True
        if self._failed is not None:
            self._failed()
        torch.set_rng_state(after)
        for i in self._written:
            given[i].copy_(kept[i])
        return reference

    def _in_double(self, args: list[Any], state: torch.Tensor) -> Any:
        """Return what the original graph yields in double precision, and what it writes."""
        after = torch.get_rng_state()
        torch.set_rng_state(state)
        try:
            wide = [
                arg.double() if isinstance(arg, torch.Tensor) and arg.is_floating_point() else arg
                for arg in args
            ]
            traced = self._as_traced(wide)
            written = [traced[i] for i in self._written]
            return self._plain(traced), written
        finally:
            torch.set_rng_state(after)

    def _as_traced(self, args: list[Any]) -> list[Any]:
        """Return the arguments with the strides of the trace; empties the list."""
        return with_strides(args, self._strides)
