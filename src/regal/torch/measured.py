"""fx graph -> fusion problem whose times were measured on this machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch.fx.node import map_arg

from regal.backends.torch.fuse import written_storages
from regal.backends.torch.kernels import ATEN
from regal.backends.torch.layouts import has_two_layouts
from regal.backends.torch.trial import settled
from regal.cost.roofline import graph_cost
from regal.cost.torch import bare_name
from regal.devices.presets import system_named
from regal.fusion.types import (
    ANY_LAYOUT,
    CHANNELS_LAST,
    CONTIGUOUS,
    FuseClass,
    FusionProblem,
    Kernel,
    LayoutRule,
)
from regal.graph.types import ABSENT
from regal.torch.legality import GATHERING, fuse_class_of, layout_rule_of
from regal.torch.probing import kernel_times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch.fx import GraphModule

    from regal.backends.torch.fuse import Wishes
    from regal.fusion.types import PerLayout
    from regal.graph.types import Graph, Op
    from regal.torch.times import Times

# Constants of kernels that Inductor generates, where they stand: behind another kernel, of which
# the caches are full. Measured on one thread of a server CPU with AVX2;
# `python -m benchmarks.torch_calibration` prints them for the machine at hand.
LAUNCH_NS = 8_000  # of one call of a group
NEAR_BYTES, NEAR_RATE, FAR_RATE = 8 << 20, 70, 45  # bytes per ns of tensors that small, and others
COPY_LAUNCH_NS, COPY_RATE = 6_000, 55  # of a copy between layouts; bytes read and written per ns
NS_PER_ELEMENT = 0.006  # of an operator, vectorized
COSTLY = {  # ns per element of those that are more than an addition
    "exp": 0.09, "log": 0.15, "sigmoid": 0.11, "silu": 0.13, "tanh": 0.85, "erf": 0.19,
    "gelu": 0.25, "gelu_backward": 0.5, "pow": 0.3, "sin": 0.2, "cos": 0.2, "softplus": 0.3,
    "mish": 1.0, "elu": 0.1, "softmax": 0.35, "log_softmax": 0.35, "softmax_backward_data": 0.1,
    "native_layer_norm": 0.15, "native_layer_norm_backward": 0.3, "native_group_norm": 0.15,
    "native_batch_norm_legit_functional": 0.2, "native_batch_norm_backward": 0.2,
    "native_batch_norm_legit_no_training": 0.14, "var_mean": 0.1, "mean": 0.03, "sum": 0.03,
    "bmm": 0.06, "index": 0.5, "unsafe_index": 0.5, "gather": 0.02, "index_select": 0.02,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the ops of a graph take, which kernel is the fastest, and what strides were seen."""

    alone_ns: tuple[PerLayout, ...]  # (n,)
    wishes: Wishes
    classes: tuple[FuseClass, ...]
    rules: tuple[LayoutRule, ...]


def measured(
    module: GraphModule, graph: Graph, wishes: Wishes, args: list[Any], times: Times
) -> Measured:
    """Return what each op takes alone, in both layouts, by the fastest of its kernels.

    Args:
        module: every tensor node has a fake tensor; all sizes are numbers.
        graph: was read from it: ops have the names of nodes.
        wishes: strides of what is given.
        args: real ones, like the placeholders.
        times: known ones, and those that are measured here.

    Cost: one run of the graph per layout, and some more where kernels were never measured.
    """
    nodes = {node.name: node for node in module.graph.nodes}
    ops = [nodes[op.name] for op in graph.ops]
    bare = unmeasured(module, graph, wishes)
    has_layouts = any(rule is not LayoutRule.FIXED for rule in bare.rules)
    fallback = [max(row[0], 1) for row in graph_cost(graph, system_named("1")).op_ns]
    table: list[dict[int, dict[str, int]]] = [{} for _ in ops]
    index = {op.name: i for i, op in enumerate(graph.ops)}
    for layout in (CONTIGUOUS, CHANNELS_LAST) if has_layouts else (CONTIGUOUS,):
        made, wishes = settled(module, graph, alone(bare.rules, layout), wishes, args)
        for name, where, calls in kernel_times(made.module, nodes, wishes, args, times):
            table[index[name]][where] = calls
    chosen = {}
    rows = []
    for i, node in enumerate(ops):
        pair = []
        for layout in (CONTIGUOUS, CHANNELS_LAST):
            found = table[i].get(layout) or table[i].get(CONTIGUOUS) or {ATEN: fallback[i]}
            best = min(found, key=lambda kernel: found[kernel])
            pair.append(max(found[best], 1))
            if best != ATEN:
                chosen[node.name, layout] = best
        rows.append((pair[0], pair[1]))
    return replace(bare, alone_ns=tuple(rows), wishes=replace(wishes, kernels=chosen))


def unmeasured(module: GraphModule, graph: Graph, wishes: Wishes) -> Measured:
    """Return what is known of a graph before anything is measured: all ops take 1 ns.

    Args:
        module: as for `measured`.
        graph: as for `measured`.
        wishes: as for `measured`.
    """
    nodes = {node.name: node for node in module.graph.nodes}
    written = written_storages(module)
    ops = [nodes[op.name] for op in graph.ops]
    return Measured(
        alone_ns=((1, 1),) * len(ops),
        wishes=wishes,
        classes=tuple(fuse_class_of(node, written) for node in ops),
        rules=tuple(layout_rule_of(node, written) for node in ops),
    )


def alone(rules: Sequence[LayoutRule], layout: int) -> list[Kernel]:
    """Return every op as a kernel of its own, in the order of the trace, in one layout."""
    return [
        Kernel(ops=(i,), layout=CONTIGUOUS if rule is LayoutRule.FIXED else layout)
        for i, rule in enumerate(rules)
    ]


def problem_of(module: GraphModule, graph: Graph, found: Measured) -> FusionProblem:
    """Return the fusion problem of a graph whose ops were measured.

    Args:
        module: every tensor node has a fake tensor.
        graph: was read from it.
        found: of `measured`.
    """
    values = _values(module)
    weights = _weights(graph)
    images = frozenset(
        i
        for i, tensor in enumerate(graph.tensors)
        if has_two_layouts(values.get(tensor.name)) and i not in weights
    )
    free = found.wishes.free_outputs
    returned = _returned_positions(module)
    outputs = tuple(
        ANY_LAYOUT if returned.get(graph.tensors[t].name, set()) <= free else CONTIGUOUS
        for t in graph.outputs
    )
    traffic = [(ns_of_bytes(tensor.bytes),) for tensor in graph.tensors]
    return FusionProblem(
        graph=graph,
        fuse_classes=found.classes,
        pairs=frozenset(_pairs(graph, found.classes)),
        anchors=frozenset(),
        layout_rules=found.rules,
        two_layouts=images,
        view_of=tuple(_views(graph, found.classes)),
        output_layouts=outputs,
        alone_ns=tuple((pair,) for pair in found.alone_ns),
        work_ns=tuple(((work, work),) for work in (_work_ns(graph, op) for op in graph.ops)),
        launch_ns=(LAUNCH_NS,),
        read_ns=tuple(traffic),
        write_ns=tuple(traffic),
        convert_ns=tuple((ns_of_copy(tensor.bytes),) for tensor in graph.tensors),
    )


def ns_of_bytes(size: int) -> int:
    """Return what it takes to read or write a tensor once."""
    return 1 + size // (NEAR_RATE if size <= NEAR_BYTES else FAR_RATE)


def ns_of_copy(size: int) -> int:
    """Return what it takes to copy a tensor into the other layout."""
    return COPY_LAUNCH_NS + 2 * size // COPY_RATE


def _work_ns(graph: Graph, op: Op) -> int:
    tensors = [graph.tensors[t] for t in (*op.inputs, *op.outputs) if t != ABSENT]
    elements = max((prod(tensor.shape) for tensor in tensors), default=0)
    return int(elements * COSTLY.get(bare_name(op.kind), NS_PER_ELEMENT))


def _pairs(graph: Graph, classes: Sequence[FuseClass]) -> set[tuple[int, int]]:
    """Return (producer, consumer) that one kernel may do: both are generated code.

    What a reduction yields may be read by what has the same rows; what is larger may only be
    read as a whole, by a reduction. What is gathered from lies in memory, unless it is a view:
    each element may be read many times.
    """
    fused = (FuseClass.POINTWISE, FuseClass.REDUCTION, FuseClass.VIEW)
    writer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs}
    found = set()
    for consumer, op in enumerate(graph.ops):
        if classes[consumer] not in fused:
            continue
        size = max((prod(graph.tensors[t].shape) for t in op.outputs), default=0)
        for tensor in op.inputs:
            producer = writer.get(tensor)
            if producer is None or classes[producer] not in fused:
                continue
            is_source = tensor == op.inputs[0] and bare_name(op.kind) in GATHERING
            if is_source and classes[producer] is not FuseClass.VIEW:
                continue
            read = prod(graph.tensors[tensor].shape)
            if read <= size or classes[consumer] is not FuseClass.POINTWISE:
                found.add((producer, consumer))
    return found


def _views(graph: Graph, classes: Sequence[FuseClass]) -> list[int]:
    view_of = [-1] * len(graph.tensors)
    for op, kind in zip(graph.ops, classes, strict=True):
        if kind is not FuseClass.VIEW:
            continue
        for output in op.outputs:
            storage = graph.tensors[output].storage
            shown = [t for t in op.inputs if t != ABSENT and graph.tensors[t].storage == storage]
            if shown:
                view_of[output] = shown[0]
    return view_of


def _values(module: GraphModule) -> dict[str, Any]:
    """Return name of a tensor of the graph -> its fake tensor."""
    values: dict[str, Any] = {}
    for node in module.graph.nodes:
        value = node.meta.get("val")
        whole = list(value) if isinstance(value, list | tuple) else [value]
        tensors = [each for each in whole if isinstance(each, torch.Tensor)]
        for i, each in enumerate(tensors):
            values[f"{node.name}.{i}" if i else node.name] = each
    return values


def _weights(graph: Graph) -> set[int]:
    """Return the tensors that convolutions alone read, as their weights: they take any layout."""
    weights: set[int] = set()
    others = {t for op in graph.ops for t in op.outputs}
    for op in graph.ops:
        first = 1 if "conv" in op.kind else len(op.inputs)
        others.update(op.inputs[:first])
        weights.update(op.inputs[first:])
    return {t for t in weights - others if t != ABSENT and graph.tensors[t].storage == t}


def _returned_positions(module: GraphModule) -> Mapping[str, set[int]]:
    """Return name of a node -> positions at which the graph returns it."""
    found: dict[str, set[int]] = {}
    (returned,) = module.graph.output_node().args
    leaves = torch.utils._pytree.tree_leaves(returned)
    for position, leaf in enumerate(leaves):
        map_arg(leaf, lambda node, at=position: found.setdefault(node.name, set()).add(at))
    return found
