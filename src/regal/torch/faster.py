"""The graphs of one captured module, run as fast as they were seen to run."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_leaves

from regal.backends.torch.executor import callable_of
from regal.backends.torch.fuse import Wishes
from regal.backends.torch.fused_executor import FusedExecutor, Link
from regal.frontends.torch.fx import graph_of
from regal.graph.check import require_valid_graph
from regal.torch.fusing import AS_TRACED, fused, require_plain
from regal.torch.planning import folder_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch.fx import GraphModule

    from regal.backends.torch.regions import Call
    from regal.graph.types import Role
    from regal.torch.fusing import Fused
    from regal.torch.settings import Settings

    Run = Callable[[list[Any]], Any]

log = logging.getLogger("regal.torch")


@dataclass(slots=True)
class Faster:
    """What the graphs of one captured module know of each other."""

    outputs: int = 0  # how many results of the forward graph its caller gets; others are saved
    strides: dict[str, tuple[int, ...]] = field(default_factory=dict)  # saved value -> its own
    calls: dict[str, Call | None] = field(default_factory=dict)
    link: Link = field(default_factory=Link)
    done: list[Fused] = field(default_factory=list)

    def compiled(
        self, module: GraphModule, name: str, roles: Mapping[str, Role], settings: Settings
    ) -> Run | None:
        """Return the fastest way to run a graph; None: as it is.

        Raises:
            RegalError: it cannot be fused.
        """
        require_plain(module)
        graph = require_valid_graph(graph_of(module, name, roles))
        leaves = tree_leaves(module.graph.output_node().args[0])
        is_forward = name == "forward"
        given = self.strides if name == "backward" else {}
        wishes = Wishes(
            given=given,
            free_outputs=frozenset(range(self.outputs, len(leaves))) if is_forward else frozenset(),
        )
        with unset_fake_temporarily():  # kernels run for real, to be measured
            found = fused(module, graph, wishes, settings, folder_of(settings), self.calls)
        self.done.append(found)
        log.info(
            "%s graph: %d ops, %s: %.3f -> %.3f ms; %d groups, %d copies between layouts",
            name,
            len(graph.ops),
            found.name,
            found.ns[AS_TRACED] / 1e6,
            found.ns[found.name] / 1e6,
            found.regions,
            found.conversions,
        )
        for candidate, ns in found.ns.items():
            log.debug("%s graph: %s takes %.3f ms", name, candidate, ns / 1e6)
        if found.module is None:
            if given:
                return callable_of(FusedExecutor(module, module, Link(has_failed=True), name=name))
            return None
        if is_forward:
            self.strides = {leaves[i].name: strides for i, strides in found.strides.items()}
        return callable_of(FusedExecutor(module, found.module, self.link, name=name))
