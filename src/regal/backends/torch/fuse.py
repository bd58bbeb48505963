"""Write a plan of kernels into an fx graph: groups as one call each, layouts, chosen kernels."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch._guards import detect_fake_mode
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.utils._pytree import tree_flatten, tree_unflatten

from regal.backends.torch.kernels import ATEN, ONEDNN, PACKED, PRODUCT, target_of
from regal.backends.torch.layouts import (
    FORMATS,
    has_two_layouts,
    layout_of,
    restrided,
    same_strides,
    shown,
)
from regal.backends.torch.packed import PackedWeights, packing_of
from regal.backends.torch.regions import Region, RegionDraft, conversion, faked
from regal.errors import BackendError
from regal.frontends.torch.build import mutated_arguments, named_arguments
from regal.fusion.types import CONTIGUOUS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from regal.fusion.types import Kernel
    from regal.graph.types import Graph

aten = torch.ops.aten

Strides = tuple[int, ...]
# In the meta of a node: name of the node of the trace that it computes, and its layout.
TRACED = "regal_traced"
# What fake tensors raise where an operator cannot take the strides that it is given.
REFUSED = (RuntimeError, ValueError, TypeError, NotImplementedError)
WEIGHT_OF = {aten.convolution.default: 1, aten.convolution_backward.default: 2}
# Operators whose meaning depends on the strides of what they get.
STRIDE_BOUND = frozenset({"aten::as_strided", "aten::as_strided_scatter", "aten::set_"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a graph is to look like, besides its kernels."""

    # Node -> name of the kernel that computes it, per layout; PyTorch's own where none is named.
    kernels: Mapping[tuple[str, int], str] = field(default_factory=dict)
    held: frozenset[str] = frozenset()  # placeholders whose blocked forms may be kept
    given: Mapping[str, Strides] = field(default_factory=dict)  # placeholder -> its real strides
    free_outputs: frozenset[int] = frozenset()  # positions whose strides nobody was promised
    # Node and layout -> strides of its results, where kernels were seen to differ from fakes.
    observed: Mapping[tuple[str, int], tuple[Strides | None, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Built:
    """A graph as planned."""

    module: GraphModule
    op_names: Sequence[str]  # of the graph that it was built from
    regions: Mapping[str, Region]  # name of the node -> what it calls
    region_of: Mapping[tuple[int, ...], str]  # ops of a group -> name of its node
    strides: Mapping[int, Strides]  # free output -> its strides, where they changed
    conversions: int


def built(module: GraphModule, graph: Graph, kernels: Sequence[Kernel], wishes: Wishes) -> Built:
    """Return the graph that runs `kernels` one after another; groups are not compiled yet.

    Values keep their meaning whatever the plan says: what an operator cannot take is converted
    back, and outputs have the strides that the caller was promised.

    Args:
        module: every tensor node has a fake tensor as `meta["val"]`, all sizes are numbers.
        graph: was read from it: its ops have the names of nodes.
        kernels: every op in exactly one; copies between layouts are made where they are needed.
        wishes: chosen kernels, strides.

    Raises:
        BackendError: the graph cannot be written so.

    Cost: about 0.3 ms per node.
    """
    return _Builder(module, graph, wishes).built(kernels)


def written_storages(module: GraphModule) -> set[int]:
    """Return the identities of all memory that a node of the graph writes to."""
    found: set[int] = set()
    for node in module.graph.nodes:
        arguments = named_arguments(node.target, node.args, node.kwargs)
        for value in mutated_arguments(node.target, arguments):
            map_arg(value, lambda each: found.update(storages_of(each)))
    return found


def written_inputs(module: GraphModule) -> frozenset[int]:
    """Return the positions of the placeholders in whose memory a node of the graph writes."""
    written = written_storages(module)
    given = (node for node in module.graph.nodes if node.op == "placeholder")
    return frozenset(i for i, node in enumerate(given) if storages_of(node) & written)


def storages_of(node: Node) -> set[int]:
    """Return the identities of the memory in which the results of a node lie."""
    leaves, _ = tree_flatten(node.meta.get("val"))
    return {
        leaf.untyped_storage()._cdata
        for leaf in leaves
        if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided
    }


def is_view(node: Node) -> bool:
    """Return whether a node yields its argument's own memory in another shape."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or schema.is_mutable:
        return False
    if schema.name in ("aten::_unsafe_view", "aten::reshape"):
        return bool(node.args) and storages_of(node) <= storages_of(node.args[0])
    return any(result.alias_info is not None for result in schema.returns)


class _Builder:
    def __init__(self, module: GraphModule, graph: Graph, wishes: Wishes) -> None:
        self.module = module
        self.old = {node.name: node for node in module.graph.nodes}
        self.names = [op.name for op in graph.ops]
        self.wishes = wishes
        self.written = written_storages(module)
        vals = [node.meta.get("val") for node in module.graph.nodes]
        mode = detect_fake_mode(vals)
        if mode is None:
            raise BackendError("the graph has no fake tensors")
        self.mode = mode
        self.new = FxGraph()
        self.env: dict[Node, list[Node]] = {}  # old node -> the same value, once per layout
        self.regions: dict[str, Region] = {}
        self.region_of: dict[tuple[int, ...], str] = {}
        self.packed: dict[str, Node] = {}  # convolution -> its blocked weight
        self.conversions = 0

    def built(self, kernels: Sequence[Kernel]) -> Built:
        for node in self.module.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                self._give(node)
        self._pack(kernels)
        for kernel in kernels:
            if kernel.is_copy:
                continue  # made where it is read first
            nodes = [self.old[self.names[op]] for op in kernel.ops]
            if len(nodes) == 1:
                self._emit(nodes[0], kernel.layout)
            else:
                self._emit_region(nodes, kernel)
        strides = self._emit_output()
        made = GraphModule(self.module, self.new, type(self.module).__name__)
        made.meta.update(self.module.meta)
        return Built(made, self.names, self.regions, self.region_of, strides, self.conversions)

    def _pack(self, kernels: Sequence[Kernel]) -> None:
        """Emit one call that yields the blocked weights of all convolutions that ask for them."""
        chosen = self.wishes.kernels
        names = [
            self.names[kernel.ops[0]]
            for kernel in kernels
            if len(kernel.ops) == 1
            and chosen.get((self.names[kernel.ops[0]], kernel.layout)) == PACKED
        ]
        if not names:
            return
        nodes = [self.old[name] for name in names]
        packings = [packing_of(node.args, node.args[0].meta["val"].shape) for node in nodes]
        weights = tuple(self.env[node.args[1]][0] for node in nodes)
        whole = self.new.call_function(PackedWeights(packings), weights)
        for i, name in enumerate(names):
            self.packed[name] = self.new.call_function(operator.getitem, (whole, i))

    def _give(self, node: Node) -> None:
        made = self.new.node_copy(node, lambda each: each)
        made.name = node.name
        strides = self.wishes.given.get(node.name)
        if strides is not None:
            made.meta["val"] = self._with_strides(node.meta["val"], strides)
        if node.op == "get_attr" and "val" not in node.meta:
            made.meta["val"] = None
        self.env[node] = [made]

    def _emit(self, node: Node, layout: int) -> None:
        """Emit a node as a kernel of its own, and the parts of its result."""
        kernel = self.wishes.kernels.get((node.name, layout), ATEN)
        for way in self._ways(node, layout):
            args, kwargs = way
            try:
                value = self._value_of(node, layout, kernel, args, kwargs)
            except REFUSED:
                continue
            if kernel == PACKED:
                args = (args[0], self.packed[node.name], *args[2:])
            made = self.new.call_function(target_of(node, kernel), args, kwargs)
            made.meta = {"val": value, TRACED: (node.name, layout)}
            self.env[node] = [made]
            self._emit_parts(node)
            return
        raise BackendError(f"node '{node.name}' takes its arguments in no layout")

    def _ways(self, node: Node, layout: int) -> Iterator[tuple[Any, Any]]:
        """Yield the arguments of a node: in the layout, then with the strides of the trace."""
        # Convolutions take their weights as they are: what that costs is part of their time.
        weight = node.args[WEIGHT_OF[node.target]] if node.target in WEIGHT_OF else None

        def wanted(each: Node) -> Node:
            return self.env[each][0] if each is weight else self._version(each, layout)

        name = getattr(getattr(node.target, "_schema", None), "name", "")
        namespace = getattr(node.target, "namespace", "")
        # Random numbers are drawn in the order of memory: another layout would give other ones.
        is_random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
        if namespace in ("aten", "prims") and name not in STRIDE_BOUND and not is_random:
            yield map_arg(node.args, wanted), map_arg(node.kwargs, wanted)
        yield map_arg(node.args, self._exact), map_arg(node.kwargs, self._exact)

    def _value_of(self, node: Node, layout: int, kernel: str, args: Any, kwargs: Any) -> Any:
        value = faked(self.mode, node.target, args, kwargs)
        observed = self.wishes.observed.get((node.name, layout))
        if observed is not None:
            leaves, spec = tree_flatten(value)
            leaves = [
                self._with_strides(leaf, strides) if strides is not None else leaf
                for leaf, strides in zip(leaves, observed, strict=True)
            ]
            return tree_unflatten(leaves, spec)
        if kernel == PACKED or (kernel == PRODUCT and isinstance(value, torch.Tensor)):
            with self.mode:
                return torch.empty_like(value, memory_format=torch.channels_last)
        if kernel == ONEDNN and isinstance(value, torch.Tensor) and value.dim() == 4:
            like = layout_of(args[0].meta["val"])
            with self.mode:
                return torch.empty_like(
                    value, memory_format=FORMATS[CONTIGUOUS if like is None else like]
                )
        return value

    def _emit_parts(self, node: Node) -> None:
        """Emit the parts of a result that is a tuple."""
        for user in node.users:
            if user.target is not operator.getitem or user in self.env:
                continue
            (whole,) = self.env[node]
            part = self.new.call_function(operator.getitem, (whole, user.args[1]))
            part.meta = {**user.meta, "val": whole.meta["val"][user.args[1]]}
            self.env[user] = [part]
            self._emit_parts(user)

    def _version(self, node: Node, layout: int) -> Node:
        """Return a value in a layout, converted where it has another one."""
        versions = self.env[node]
        first = versions[0]
        if not has_two_layouts(first.meta.get("val")) or storages_of(node) & self.written:
            return first
        for each in versions:
            if layout_of(each.meta["val"]) == layout:
                return each
        return self._converted(node, first, FORMATS[layout])

    def _converted(self, node: Node, first: Node, memory_format: torch.memory_format) -> Node:
        region = conversion(self.mode, first.meta["val"], memory_format)
        made = self.new.call_function(region, (first,))
        made.meta = {"val": region.values[0]}
        self.regions[made.name] = region
        self.env[node].append(made)
        self.conversions += 1
        return made

    def _exact(self, node: Node) -> Node:
        """Return a value with the strides that it had in the trace."""
        first = self.env[node][0]
        value, old = first.meta.get("val"), node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            return first
        wanted = old.stride()
        for each in self.env[node]:
            if same_strides(each.meta["val"], wanted):
                return each
        for memory_format in FORMATS.values() if value.dim() == 4 else ():
            with self.mode:
                like = torch.empty_like(value, memory_format=memory_format)
            if same_strides(like, wanted):
                return self._converted(node, first, memory_format)
        made = self.new.call_function(restrided, (first, wanted))
        made.meta = {"val": self._with_strides(value, wanted)}
        self.env[node].append(made)
        self.conversions += 1
        return made

    def _with_strides(self, value: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
        if same_strides(value, strides):
            return value
        with self.mode:
            return torch.empty_strided(value.shape, strides, dtype=value.dtype, device=value.device)

    def _emit_region(self, nodes: list[Node], kernel: Kernel) -> None:
        """Emit a group as one call; views that leave it are made again behind it."""
        layout = kernel.layout
        draft = RegionDraft(nodes)
        inputs = {each: self._version(each, layout) for each in draft.inputs}
        try:
            region = draft.region(self.mode, {e: made.meta["val"] for e, made in inputs.items()})
        except (*REFUSED, BackendError):
            for node in nodes:
                self._emit(node, layout)
            return
        made = self.new.call_function(region, tuple(inputs.values()))
        values = region.values
        if len(draft.outputs) == 1:
            made.meta = {"val": values[0]}
            self.env[draft.outputs[0]] = [made]
        else:
            made.meta = {"val": values}
            for i, output in enumerate(draft.outputs):
                part = self.new.call_function(operator.getitem, (made, i))
                part.meta = {"val": values[i]}
                self.env[output] = [part]
        self.regions[made.name] = region
        self.region_of[kernel.ops] = made.name
        for view in draft.views_behind:
            if view.target is operator.getitem:
                self._emit_parts(view.args[0])
            else:
                self._emit(view, layout)

    def _shown(self, leaf: Node, leaves: Sequence[Any]) -> Node:
        """Return an output as traced: outputs that share memory share it in the planned graph."""
        mine = storages_of(leaf)
        others = [e for e in leaves if isinstance(e, Node) and e is not leaf]
        if len(mine) != 1 or not any(mine & storages_of(each) for each in others):
            return self._exact(leaf)
        root = next(each for each in self.old.values() if storages_of(each) == mine)
        value, old = root.meta.get("val"), leaf.meta["val"]
        if root is leaf or root not in self.env or not isinstance(value, torch.Tensor):
            return self._exact(leaf)
        whole = self._exact(root)
        offset = int(old.storage_offset() - value.storage_offset())
        args = (whole, tuple(old.shape), tuple(old.stride()), offset)
        made = self.new.call_function(shown, args)
        made.meta = {"val": faked(self.mode, shown, args, {})}
        return made

    def _emit_output(self) -> dict[int, Strides]:
        output = self.module.graph.output_node()
        (returned,) = output.args
        leaves, spec = tree_flatten(returned, is_leaf=lambda each: isinstance(each, Node))
        strides: dict[int, Strides] = {}
        made: list[Any] = []
        for position, leaf in enumerate(leaves):
            if not isinstance(leaf, Node):
                made.append(leaf)
            elif position in self.wishes.free_outputs and leaf.op != "placeholder":
                made.append(self.env[leaf][0])
                value, old = made[-1].meta.get("val"), leaf.meta.get("val")
                if isinstance(value, torch.Tensor) and not same_strides(value, old.stride()):
                    strides[position] = tuple(value.stride())
            elif leaf.op == "placeholder" or storages_of(leaf) & self.written:
                made.append(self.env[leaf][0])
            else:
                made.append(self._shown(leaf, leaves))
        result = self.new.output(tree_unflatten(made, spec))
        result.meta.update(output.meta)
        return strides
