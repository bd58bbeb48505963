"""Which graphs a file has: its signatures, or all of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tensorflow.classes import colocated_with, set_colocated
from regal.frontends.tensorflow.flat import Flat, flat_graph, kept, needed_by
from regal.frontends.tensorflow.frames import ROOT, find_frames
from regal.frontends.tensorflow.functions import call_sites
from regal.frontends.tensorflow.inline import inlined
from regal.frontends.tensorflow.ops import HANDLES
from regal.frontends.tensorflow.order import node_order
from regal.frontends.tensorflow.read import WITH_TARGETS
from regal.frontends.tensorflow.roles import INPUTS, RETURN, is_no_op
from regal.frontends.tensorflow.schema import REF, new
from regal.frontends.tensorflow.values import shape_of

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping, Sequence

    from regal.frontends.tensorflow.flat import Edge, Library
    from regal.frontends.tensorflow.read import GraphFile
    from regal.frontends.tensorflow.schema import Proto
    from regal.frontends.tensorflow.values import Partial

MAIN_SIGNATURE = "serving_default"
_WITH_SIGNATURES = WITH_TARGETS | {"SavedModel"}
_INTERNAL = "__saved_model"  # prefix of signatures that TensorFlow adds for itself


@dataclass(frozen=True, slots=True)
class Entry:
    """One graph of a file, before its shapes are known."""

    name: str
    flat: Flat
    outputs: tuple[Edge, ...]
    sites: Counter[str]  # function -> places that call it
    # Tensor name -> (its name in the signature, the shape stated there), of inputs.
    signature: Mapping[str, tuple[str, Partial | None]]


def entries_of(file: GraphFile, name: str, library: Library) -> tuple[Entry, ...]:
    """Return the entries of a file, the main one first.

    Those of a SavedModel are its signatures: the main one is `serving_default`, else the one
    with the most nodes. Other files are one entry, with all their nodes. So is a SavedModel
    whose signatures do nothing.

    Raises:
        ModelError: the graph is broken.
    """
    whole = flat_graph(name, file.graph.node, library)
    found = []
    for key in sorted(file.signatures) if file.kind in _WITH_SIGNATURES else ():
        if not key.startswith(_INTERNAL):
            entry = _signature_entry(whole, key, file.signatures[key], file.targets, library)
            found.append(entry)
    if file.kind in WITH_TARGETS:
        found = [replace(entry, name=name) for entry in found]
    found = [e for e in found if any(not is_no_op(node) for node in e.flat.nodes)]
    found.sort(key=lambda e: (e.name != MAIN_SIGNATURE, -len(e.flat.nodes), e.name))
    return tuple(found) or (_whole_entry(whole, library),)


def _signature_entry(
    whole: Flat, name: str, signature: Proto, extra: Sequence[str], library: Library
) -> Entry:
    inputs = {
        tensor: (key, shape_of(info.tensor_shape) if info.HasField("tensor_shape") else None)
        for key, info in sorted(signature.inputs.items())
        for tensor in _tensors(info)
    }
    flat = _with_inputs(whole, inputs)
    outputs = [
        _edge(flat, tensor, f"signature '{name}'")
        for _, info in sorted(signature.outputs.items())
        for tensor in _tensors(info)
        if tensor
    ]
    targets = [edge[0] for edge in outputs]
    targets += [_edge(flat, node, f"signature '{name}'")[0] for node in extra]
    index = {node.name: i for i, node in enumerate(flat.nodes)}
    given = [index[t.partition(":")[0]] for t in inputs if t.partition(":")[0] in index]
    flat.returns = outputs
    flat = kept(flat, needed_by(flat, [*targets, *given]))
    flat.name = name
    sites = call_sites(flat, library)
    flat = without_idle(inlined(flat, library, sites), library)
    valued = tuple(dict.fromkeys(e for e in flat.returns if e[1] < len(flat.nodes[e[0]].results)))
    return Entry(name, flat, valued, sites, inputs)


def _tensors(info: Proto) -> Iterator[str]:
    """Yield the names of the tensors that a signature means by one name."""
    encoding = info.WhichOneof("encoding")
    if encoding == "coo_sparse":
        sparse = info.coo_sparse
        yield sparse.values_tensor_name
        yield sparse.indices_tensor_name
        yield sparse.dense_shape_tensor_name
    elif encoding == "composite_tensor":
        for component in info.composite_tensor.components:
            yield from _tensors(component)
    elif info.name:
        yield info.name


def _edge(flat: Flat, tensor: str, who: str) -> Edge:
    name, _, number = tensor.partition(":")
    for position, node in enumerate(flat.nodes):
        if node.name == name:
            result = int(number) if number.isascii() and number.isdecimal() else 0
            if result < max(len(node.results), 1):
                return position, result
    raise ModelError(f"{who} names '{tensor}', which the graph does not have")


def _with_inputs(whole: Flat, inputs: Mapping[str, object]) -> Flat:
    """Return the graph with what a signature feeds as placeholders, whatever computed it."""
    nodes = []
    for node in whole.nodes:
        is_fed = f"{node.name}:0" in inputs and node.kind not in INPUTS
        if is_fed and len(node.results) == 1 and node.results[0] < REF:
            proto = new("NodeDef")
            proto.name, proto.op = node.name, "Placeholder"
            proto.attr["dtype"].type = node.results[0]
            proto.attr["shape"].shape.unknown_rank = True
            nodes.append(
                replace(node, kind="Placeholder", proto=proto, inputs=[], controls=[], operands=())
            )
        else:
            nodes.append(node)
    return Flat(whole.name, nodes)


def _whole_entry(whole: Flat, library: Library) -> Entry:
    marked = [node.inputs[0] for node in whole.nodes if node.kind == RETURN]
    whole.returns = marked or _results_at_the_end(whole)
    sites = call_sites(whole, library)
    flat = without_idle(inlined(whole, library, sites), library)
    return Entry(whole.name, flat, tuple(dict.fromkeys(flat.returns)), sites, {})


def _results_at_the_end(flat: Flat) -> list[Edge]:
    """Return the results of nodes that nothing waits for: what the graph is there to compute."""
    used = {i for node in flat.nodes for i, _ in node.inputs}
    used |= {i for node in flat.nodes for i in node.controls}
    frames = find_frames(flat, node_order(flat))
    return [
        (position, k)
        for position, node in enumerate(flat.nodes)
        if position not in used and frames.outside_of(position, node) == ROOT and not is_no_op(node)
        for k, dtype in enumerate(node.results)
        if dtype not in HANDLES and dtype < REF
    ]


def without_idle(flat: Flat, library: Library) -> Flat:
    """Return `flat` without the nodes of functions that TensorFlow would not run.

    It runs what the results of a function need and what has state; the main graph stays whole.
    """
    wanted = [
        i
        for i, node in enumerate(flat.nodes)
        if not node.home[0] or node.kind == "_Arg" or library.ops.is_stateful(node.kind)
    ]
    wanted += [i for i, _ in flat.returns]
    return kept(flat, needed_by(flat, [*wanted, *flat.control_returns]))


def graph_def_of(flat: Flat, library: Library, functions: Sequence[str]) -> Proto:
    """Return a GraphDef with the nodes of `flat`, and the functions that it still calls."""
    graph = new("GraphDef")
    graph.versions.producer = library.producer
    present = {node.name for node in flat.nodes}
    for node in flat.nodes:
        proto = graph.node.add()
        proto.CopyFrom(node.proto)
        proto.name = node.name
        wanted = colocated_with(proto)
        if not present.issuperset(wanted):
            set_colocated(proto, [name for name in wanted if name in present])
        del proto.input[:]
        for i, k in node.inputs:
            source = flat.nodes[i].name
            proto.input.append(f"{source}:{k}" if k else source)
        proto.input.extend(f"^{flat.nodes[i].name}" for i in dict.fromkeys(node.controls))
    for name in functions:
        graph.library.function.add().CopyFrom(library.functions[name])
    return graph
