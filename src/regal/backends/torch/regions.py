"""Groups of fx nodes as one call each, compiled by Inductor."""

from __future__ import annotations

import hashlib
import operator
from typing import TYPE_CHECKING, Any

import torch
from torch._guards import TracingContext, tracing
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from regal.backends.torch.layouts import (
    FORMATS,
    IMAGE_GATHERING,
    has_two_layouts,
    layout_of,
    restrided,
    same_strides,
)
from regal.backends.torch.statistics import with_real_dtypes
from regal.backends.torch.tracker import MemoryTracker
from regal.cost.torch import bare_name
from regal.errors import BackendError
from regal.fusion.types import CHANNELS_LAST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch._subclasses.fake_tensor import FakeTensorMode

    Call = Callable[[list[Any]], Sequence[torch.Tensor]]


class Region:
    """A group: what it computes, and the call that does it; until compiled, node by node.

    Regions of equal `key` compute the same of tensors of equal sizes and strides.
    """

    def __init__(self, module: GraphModule, values: tuple[torch.Tensor, ...], key: str) -> None:
        self.module = module
        self.values = values  # fake tensors, one per output
        self.key = key
        self.__name__ = f"region_{key[:8]}"
        self.__module__ = "regal"
        self._call: Call | None = None

    @property
    def is_compiled(self) -> bool:
        """Return whether one kernel region computes it."""
        return self._call is not None

    def use(self, call: Call) -> None:
        """Compute it by `call` from now on."""
        self._call = call

    def __call__(self, *args: Any) -> Any:
        """Return the output, or a tuple of them."""
        results = self._by_nodes(args) if self._call is None else self._call(list(args))
        if torch._C._len_torch_dispatch_stack():
            _tell_trackers(results)
        return results[0] if len(results) == 1 else results

    def _by_nodes(self, args: tuple[Any, ...]) -> list[torch.Tensor]:
        results = self.module(*args)
        return [
            real if same_strides(real, fake.stride()) else restrided(real, fake.stride())
            for real, fake in zip(results, self.values, strict=True)
        ]


def _tell_trackers(results: Sequence[torch.Tensor]) -> None:
    """Count what a region made: its kernels do not pass the dispatcher."""
    for mode in _get_current_dispatch_mode_stack():
        if isinstance(mode, MemoryTracker):
            mode.count_new(results)


class RegionDraft:
    """What a group reads, what leaves it, and which views of that are made again behind it."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        """Take the nodes of a group in an order in which they can run."""
        from regal.backends.torch.fuse import is_view

        self.nodes: list[Node] = []
        for node in nodes:
            self.nodes.append(node)
            self._add_parts(node)
        inside = set(self.nodes)
        self.inputs = list(
            dict.fromkeys(
                each for node in self.nodes for each in node.all_input_nodes if each not in inside
            )
        )
        leaving = {node for node in self.nodes if any(u not in inside for u in node.users)}
        self.outputs: list[Node] = []
        self.views_behind: list[Node] = []
        for node in reversed(self.nodes):
            if node not in leaving:
                continue
            if is_view(node):
                self.views_behind.insert(0, node)
                leaving.update(each for each in node.all_input_nodes if each in inside)
            else:
                self.outputs.insert(0, node)

    def _add_parts(self, node: Node) -> None:
        for user in node.users:
            if user.target is operator.getitem:
                self.nodes.append(user)
                self._add_parts(user)

    def region(self, mode: FakeTensorMode, given: Mapping[Node, torch.Tensor]) -> Region:
        """Return the group as a region.

        Args:
            mode: of all fake tensors.
            given: input -> a fake tensor with the strides that it will have.

        Raises:
            BackendError: nothing leaves the group.
        """
        if not self.outputs:
            raise BackendError("a group of nodes yields nothing")
        graph = FxGraph()
        made: dict[Node, Node] = {}
        for i, node in enumerate(self.inputs):
            made[node] = graph.placeholder(f"a{i}")
            made[node].meta["val"] = given[node]
        for i, node in enumerate(self.nodes):
            copy = graph.node_copy(node, lambda each: made[each])
            copy.name = f"n{i}"
            copy.meta = {"val": faked(mode, copy.target, copy.args, copy.kwargs)}
            made[node] = _laid_out(mode, copy)
        graph.output(tuple(made[node] for node in self.outputs))
        values = tuple(made[node].meta["val"] for node in self.outputs)
        return Region(GraphModule(torch.nn.Module(), graph), values, _key_of(graph))


def conversion(
    mode: FakeTensorMode, value: torch.Tensor, memory_format: torch.memory_format
) -> Region:
    """Return the region that copies an image into another layout.

    Inductor's copy takes a fifth of the time of PyTorch's own.

    Args:
        mode: of all fake tensors.
        value: a fake tensor.
        memory_format: of the copy.
    """
    graph = FxGraph()
    given = graph.placeholder("a0")
    given.meta["val"] = value
    copy = _in_format(mode, given, memory_format)
    graph.output((copy,))
    return Region(GraphModule(torch.nn.Module(), graph), (copy.meta["val"],), _key_of(graph))


def faked(mode: FakeTensorMode, target: Any, args: Any, kwargs: Any) -> Any:
    """Return the fake result of a call whose arguments are nodes with fake tensors."""

    def fake(each: Node) -> Any:
        return each.meta["val"]

    given = map_arg(args, fake)
    with mode:
        return with_real_dtypes(target, given, target(*given, **map_arg(kwargs, fake)))


def _laid_out(mode: FakeTensorMode, node: Node) -> Node:
    """Return a node of a group, or its copy in the layout that suits generated code.

    PyTorch's kernels gather into contiguous images; code that reads channels last writes so, too,
    and Inductor makes no copy of it.
    """
    value = node.meta["val"]
    if bare_name(str(node.target)) not in IMAGE_GATHERING or not has_two_layouts(value):
        return node
    source = node.args[0].meta["val"]
    if not has_two_layouts(source) or layout_of(source) == layout_of(value):
        return node
    return _in_format(mode, node, FORMATS[CHANNELS_LAST])


def _in_format(mode: FakeTensorMode, node: Node, memory_format: torch.memory_format) -> Node:
    """Return a copy of a node's image in a layout, behind it in its graph."""
    kwargs = {"memory_format": memory_format}
    copy = node.graph.call_function(torch.ops.aten.clone.default, (node,), kwargs)
    copy.meta = {"val": faked(mode, copy.target, copy.args, copy.kwargs)}
    return copy


def _key_of(graph: FxGraph) -> str:
    """Return what two groups have in common that compute the same of equal tensors."""
    text = [str(graph)]
    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            text.append(f"{tuple(value.shape)}{value.stride()}{value.dtype}{value.device}")
    return hashlib.sha256("\n".join(text).encode()).hexdigest()


def compiled_call(region: Region) -> Call:
    """Return the call of a region as Inductor compiles it: a list in, which it empties.

    Raises:
        BackendError: Inductor cannot compile it, or makes outputs of other strides.

    Cost: about 0.5 s, of which most is the C++ compiler; a few ms where PyTorch has it on disk.
    """
    from torch._inductor.compile_fx import compile_fx_inner, record_original_output_strides
    from torch._inductor.decomposition import select_decomp_table
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    # Inductor remembers what it compiled only where sizes could be symbols.
    mode = FakeTensorMode(shape_env=ShapeEnv())
    inputs = []
    with mode:
        for node in region.module.graph.nodes:
            if node.op == "placeholder":
                value = node.meta["val"]
                inputs.append(
                    torch.empty_strided(
                        value.shape, value.stride(), dtype=value.dtype, device=value.device
                    )
                )
    # A context of its own: Inductor reports strides of outputs to the one that is active.
    context = TracingContext(mode)
    context.output_strides = []
    with tracing(context), torch.no_grad():
        with mode:  # what the nodes make from nothing is fake, too
            module = make_fx(region.module, decomposition_table=select_decomp_table())(*inputs)
        record_original_output_strides(module)
        output = module.graph.output_node()
        output.meta["user_visible_output_idxs"] = list(range(len(region.values)))
        output.meta["original_output_strides"] = [v.stride() for v in region.values]
        compiled = compile_fx_inner(module, inputs)
    for value, strides in zip(region.values, context.output_strides, strict=True):
        if strides is not None and not same_strides(value, strides):
            raise BackendError(f"a group yields strides {strides}, not {value.stride()}")
    call: Call = getattr(compiled, "current_callable", None) or compiled
    return call
