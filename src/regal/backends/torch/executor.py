"""Run an fx graph in the order of its nodes; every value is freed after its last use."""

from __future__ import annotations

import logging
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import GraphModule, Interpreter
from torch.fx.graph import _BoxedCodeGen
from torch.utils._pytree import tree_leaves

from regal.frontends.torch.build import memory_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch.fx import Node

log = logging.getLogger("regal.torch")


class Executor:
    """A graph that takes its arguments in a list, which it empties: it may free them itself.

    The first run looks at the memory of every value: where kernels share memory that the plan
    holds for separate, the original graph runs from then on.
    """

    def __init__(
        self, original: GraphModule, planned: GraphModule | None, overwritten: Mapping[str, int]
    ) -> None:
        """Take the graph as traced, as planned (None: keep it), and what writes over arguments."""
        self._original = original
        self._overwritten = overwritten
        self._run: Callable[[list[Any]], Any] = (
            boxed(original) if planned is None else partial(self._first_run, planned)
        )

    def __call__(self, args: list[Any]) -> Any:
        """Return what the graph yields."""
        return self._run(args)

    def _first_run(self, planned: GraphModule, args: list[Any]) -> Any:
        checked = _CheckedRun(planned, self._original, self._overwritten)
        result = checked.boxed_run(args)
        if checked.shares:
            log.warning("the original graph runs: %s", checked.shares)
            self._run = boxed(self._original)
        else:
            self._run = boxed(planned)
        return result


def callable_of(executor: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Return a function that runs `executor`, and says that it empties its list."""

    def run(args: list[Any]) -> Any:
        return executor(args)

    run._boxed_call = True  # type: ignore[attr-defined]  # AOTAutograd looks for it
    return run


def boxed(module: GraphModule) -> Callable[[list[Any]], Any]:
    """Return the compiled code of a graph; it empties the list that holds its arguments."""
    copy = GraphModule(module, module.graph, type(module).__name__)
    copy.graph.set_codegen(_BoxedCodeGen())
    copy.recompile()
    run: Callable[[list[Any]], Any] = copy.forward
    return run


class _CheckedRun(Interpreter):
    """A run that compares the memory of all values with what fake tensors said."""

    def __init__(
        self, module: GraphModule, original: GraphModule, overwritten: Mapping[str, int]
    ) -> None:
        super().__init__(module, garbage_collect_values=True)
        self.extra_traceback = False
        self.shares = ""  # the first values that share memory and should not
        self._overwritten = overwritten
        self._original = {node.name: node for node in original.graph.nodes}
        self._seen: dict[int, tuple[int, weakref.ref[Any]]] = {}  # real memory -> fake memory

    def run_node(self, n: Node) -> Any:
        """Run a node, and look where its results lie."""
        if self.shares and n.name in self._overwritten:
            return self._run_original(n)
        result = super().run_node(n)
        if n.op != "output":
            merged = n.name in self._overwritten
            for real, fake in zip(
                tree_leaves(result), tree_leaves(n.meta.get("val")), strict=False
            ):
                if isinstance(real, torch.Tensor) and isinstance(fake, torch.Tensor):
                    self._look(n.name, real, fake, merged=merged)
        return result

    def _run_original(self, node: Node) -> Any:
        """Run a node without writing over its argument."""
        args, _ = self.fetch_args_kwargs_from_env(node)
        before = self._original[node.name]
        kwargs = {key: self.map_nodes_to_values(before.kwargs[key], node) for key in before.kwargs}
        return before.target(*args, **kwargs)

    def _look(self, name: str, real: torch.Tensor, fake: torch.Tensor, *, merged: bool) -> None:
        lies, foreseen = memory_of(real), memory_of(fake)
        if lies is None or foreseen is None:
            return
        (key, memory), (expected, _) = lies, foreseen
        found = self._seen.get(key)
        is_shared = found is not None and found[0] != expected and found[1]() is not None
        if is_shared and not merged and memory.nbytes() > 0 and not self.shares:
            self.shares = f"the result of '{name}' lies in memory that is not its own"
        self._seen[key] = (expected, weakref.ref(memory))
