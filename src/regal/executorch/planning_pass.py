"""ExecuTorch's memory planning pass, with the nodes put into a better order first."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from executorch.exir.memory_planning import collect_specs_from_nodes
from executorch.exir.passes.memory_planning_pass import MemoryPlanningPass
from torch.fx import GraphModule

from regal.executorch.program import program_of
from regal.graph.check import require_valid_graph
from regal.plan.check import require_valid_plan
from regal.plan.problem import order_problem
from regal.search.exact import lower_bound
from regal.search.methods import DEFAULT_METHOD, method_named
from regal.search.packing import plan_of_order
from regal.search.portfolio import default_evaluations
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch.fx import Node

log = logging.getLogger("regal.executorch")


class OrderedMemoryPlanningPass(MemoryPlanningPass):
    """Reorders the nodes of a program where that makes its arena smaller, then plans memory.

    Here views are views and each kernel has its output: what a node touches is what the runtime
    touches. Bodies of control flow keep their order.
    """

    def __init__(
        self,
        budget: Budget | None,
        seed: int,
        suite: Any,
        *,
        alloc_graph_input: bool,
        alloc_graph_output: bool,
        alloc_mutable_buffers: bool,
        share_mutable_buffers: bool,
        alignment: int,
    ) -> None:
        """Take the limits of the search (None: by the size of the program), its seed, the rest."""
        super().__init__(
            memory_planning_algo=suite,
            alloc_graph_input=alloc_graph_input,
            alloc_graph_output=alloc_graph_output,
            alloc_mutable_buffers=alloc_mutable_buffers,
            share_mutable_buffers=share_mutable_buffers,
            alignment=alignment,
        )
        self._budget = budget
        self._seed = seed

    def run(self, graph_module: GraphModule, graph_signature: Any = None) -> Any:
        """Return the result of ExecuTorch's pass for the reordered program."""
        self._set_alloc_node_spec(graph_module)
        self._reorder(graph_module, graph_signature)
        for node in _allocations(graph_module):
            node.meta.pop("spec", None)  # ExecuTorch's pass sets them, and insists on being first
        return super().run(graph_module, graph_signature)

    def _reorder(self, module: GraphModule, signature: Any) -> None:
        counted = collect_specs_from_nodes(
            module.graph.nodes,
            signature,
            do_assertion=False,
            ignore_graph_input=not self.alloc_graph_input,
            ignore_graph_output=not self.alloc_graph_output,
            ignore_mutable_buffers=not self.alloc_mutable_buffers,
        )
        program = program_of(module, set(counted), signature, self.alignment)
        graph = require_valid_graph(program.graph)
        if not graph.ops:
            return
        problem = order_problem(graph)
        outcome = method_named(DEFAULT_METHOD)(
            problem.native,
            self._budget or Budget(evaluations=default_evaluations(len(graph.ops))),
            seed=self._seed,
            threads=1,
            stop_at=lower_bound(problem.native),
        )
        file_order = tuple(range(len(graph.ops)))
        found = tuple(int(op) for op in outcome.order)
        before, after = (
            require_valid_plan(graph, plan_of_order(graph, order, {}, peak_bound=0))
            for order in (file_order, found)
        )
        is_better = after.arena_bytes < before.arena_bytes
        log.info(
            "%d nodes: peak %d -> %d, arena %d -> %d bytes%s",
            len(graph.ops),
            before.peak_bytes,
            after.peak_bytes,
            before.arena_bytes,
            after.arena_bytes,
            "" if is_better else " (the order stays)",
        )
        if is_better:
            put(module, [node for op in found for node in program.nodes[op]])


def put(module: GraphModule, order: Iterable[Node]) -> None:
    """Move nodes before the output of their graph, one after another."""
    end = module.graph.output_node()
    for node in order:
        end.prepend(node)
    module.graph.lint()
    module.recompile()


def _allocations(module: GraphModule) -> list[Node]:
    from executorch.exir import memory

    return [
        node
        for each in module.modules()
        if isinstance(each, GraphModule)
        for node in each.graph.nodes
        if node.target is memory.alloc
    ]
