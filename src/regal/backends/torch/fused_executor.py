"""Run the first of several graphs that computes what the original one does."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import torch

from regal.backends.torch.agreement import disagreement
from regal.backends.torch.exact import InDouble, wide_args
from regal.backends.torch.executor import boxed
from regal.backends.torch.fuse import written_inputs
from regal.backends.torch.layouts import with_strides
from regal.backends.torch.spreads import spreads_of
from regal.backends.torch.trial import copied_tensor
from regal.errors import summary_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch.fx import GraphModule

log = logging.getLogger("regal.torch")

# What kernels and generated code raise where something is not as it was foreseen.
FAILED = (RuntimeError, AssertionError, TypeError, ValueError, LookupError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class Way:
    """A graph that may run instead of the original one."""

    name: str
    module: GraphModule


@dataclass(slots=True)
class Link:
    """What the graphs of one captured module tell each other."""

    has_failed: bool = False  # the backward graph runs as traced: so does what saves for it


class FusedExecutor:
    """A graph that takes its arguments in a list, which it empties.

    The first run computes everything twice and compares: where results differ by more than
    rounding, or anything fails, the next way is tried, and at last the original graph runs.
    """

    def __init__(
        self,
        original: GraphModule,
        ways: Sequence[Way],
        link: Link,
        *,
        name: str = "",
        saved: frozenset[int] = frozenset(),
        settled: Callable[[str], None] | None = None,
    ) -> None:
        """Take a graph and the ways to run it, best first.

        Args:
            original: as traced.
            ways: none: the original runs, whatever the strides of what it is given.
            link: what ties it to others.
            name: of the graph.
            saved: positions of results that only the backward graph reads.
            settled: is called where the first way is given up, with the name of the one that
                runs from then on; "": the original.
        """
        self._original = original
        self._plain = boxed(original)
        self._ways = ways
        self._link = link
        self._name = name
        self._saved = saved
        self._settled = settled or _nobody
        self._run: Callable[[list[Any]], Any] = self._first_run if ways else self._run_as_traced
        self._first = Lock()  # one thread settles what runs; others wait for it
        given = [node for node in original.graph.nodes if node.op == "placeholder"]
        self._written = sorted(written_inputs(original))
        self._strides = [
            None if i in self._written or not isinstance(value, torch.Tensor) else value.stride()
            for i, value in enumerate(node.meta.get("val") for node in given)
        ]

    def __call__(self, args: list[Any]) -> Any:
        """Return what the graph yields."""
        if self._link.has_failed:
            return self._run_as_traced(args)
        return self._run(args)

    def _first_run(self, args: list[Any]) -> Any:
        with self._first:
            if self._ways:
                return self._compared(args)
        return self(args)

    def _compared(self, args: list[Any]) -> Any:
        """Return what the original graph yields, by the first way that agrees with it."""
        held = list(args)
        args.clear()
        copies = self._as_traced(list(held))
        before = {i: copied_tensor(held[i]) for i in self._written}
        kept = {i: copied_tensor(held[i]) for i in self._written}
        for i in self._written:
            copies[i] = kept[i]
        state = torch.get_rng_state()
        reference = self._plain(copies)
        after = torch.get_rng_state()

        @cache
        def exact() -> tuple[Any, Mapping[int, torch.Tensor]]:
            args = list(held)
            for i, value in before.items():
                args[i] = copied_tensor(value)
            return self._in_double(args, state)

        spreads = spreads_of(self._original)
        for way in self._ways:
            run = boxed(way.module)
            torch.set_rng_state(state)
            try:
                result = run(list(held))
                reason = disagreement(
                    (reference, [kept[i] for i in self._written]),
                    (result, [held[i] for i in self._written]),
                    lambda: exact()[0],
                    self._saved,
                    spreads,
                    lambda: exact()[1],
                )
            except FAILED as error:
                reason = summary_of(error)
            if not reason:
                self._settle(run, way.name)
                return result
            log.warning("the %s graph gives up '%s': %s", self._name, way.name, reason)
            for i in self._written:
                held[i].copy_(before[i])
        log.warning("the %s graph runs as traced", self._name)
        torch.set_rng_state(after)
        for i in self._written:
            held[i].copy_(kept[i])
        self._settle(self._run_as_traced, "")
        return reference

    def _settle(self, run: Callable[[list[Any]], Any], name: str) -> None:
        """Run so from now on."""
        self._run = run
        if name != self._ways[0].name:
            self._settled(name)
        self._ways, self._settled = (), _nobody

    def _in_double(
        self, args: list[Any], state: torch.Tensor
    ) -> tuple[Any, Mapping[int, torch.Tensor]]:
        """Return what the original graph yields in double precision, and what it writes.

        And the lengths of the terms of its sums. None, and none: it does not run so.
        """
        after = torch.get_rng_state()
        torch.set_rng_state(state)
        wide = wide_args(self._as_traced(args))
        try:
            run = InDouble(self._original)
            return (run.run(*wide), [wide[i] for i in self._written]), run.lengths
        except FAILED as error:
            log.info("the %s graph has no exact results: %s", self._name, summary_of(error))
            return None, {}
        finally:
            torch.set_rng_state(after)

    def _run_as_traced(self, args: list[Any]) -> Any:
        return self._plain(self._as_traced(args))

    def _as_traced(self, args: list[Any]) -> list[Any]:
        """Return the arguments with the strides of the trace; empties the list."""
        return with_strides(args, self._strides)


def _nobody(_: str) -> None:
    """Tell nobody which way runs."""
