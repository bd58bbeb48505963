"""Read a TensorFlow file: which graphs it has, their shapes, and the project's graphs of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tensorflow.build import LOOP, build_graph
from regal.frontends.tensorflow.dims import (
    Wishes,
    bind_inputs,
    inputs_of,
    require_known,
    source_edges,
    wished_results,
)
from regal.frontends.tensorflow.entries import entries_of, graph_def_of
from regal.frontends.tensorflow.flat import Library, edge_name, is_opaque
from regal.frontends.tensorflow.functions import call_sites
from regal.frontends.tensorflow.inference import REFUSAL, Inference, infer
from regal.frontends.tensorflow.keras_file import read_keras_file
from regal.frontends.tensorflow.kinds import WHILES
from regal.frontends.tensorflow.light import light_graph, without_weights
from regal.frontends.tensorflow.native import native_tensorflow
from regal.frontends.tensorflow.ops import OpTable
from regal.frontends.tensorflow.order import node_order
from regal.frontends.tensorflow.ranks import bound_edges
from regal.frontends.tensorflow.read import GraphFile, read_graph_file
from regal.frontends.tensorflow.resources import find_resources
from regal.frontends.tensorflow.sizes import Reading, sized
from regal.frontends.tensorflow.source import EntrySource, TensorFlowSource
from regal.graph.check import require_valid_model
from regal.graph.types import LoadedModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from regal.frontends.tensorflow.entries import Entry
    from regal.frontends.tensorflow.flat import Edge, Flat
    from regal.frontends.tensorflow.light import Bound
    from regal.frontends.tensorflow.native import NativeTensorFlow
    from regal.frontends.tensorflow.values import Partial
    from regal.graph.types import Graph

LONGEST_CHECK = 10.0  # seconds for the question whether TensorFlow can import the file
SAVING = frozenset(
    {
        "MergeV2Checkpoints",
        "Restore",
        "RestoreSlice",
        "RestoreV2",
        "Save",
        "SaveSlices",
        "SaveV2",
        "ShardedFilename",
    }
)
MOST_NAMED = 4  # tensors that a note lists by name


def load(path: Path, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]) -> LoadedModel:
    """Return the graphs in a TensorFlow file, or in a SavedModel folder.

    Args:
        path: a GraphDef, MetaGraph or SavedModel, binary or text; .keras; compressed or not.
        shapes: input -> all its dimensions, by the name of its node or in its signature.
        dims: "INPUT[AXIS]" or "batch" -> its size. An open first dimension is a batch of 1.

    Raises:
        BackendError: tensorflow is not installed.
        ModelError: the file is broken, or its dimensions are not all known.
        UsageError: `shapes` or `dims` name something that the model does not have.

    Cost: 0.5 s to start TensorFlow's native code, a few passes over the nodes, and one pass of
    TensorFlow's inference per layer of results that depend on data.
    """
    is_keras = path.suffix.lower() == ".keras"
    file = read_keras_file(path) if is_keras else read_graph_file(path)
    name = path.name.partition(".")[0] or path.name
    return model_of(file, name, path, Wishes(shapes, dims))


def model_of(
    file: GraphFile, name: str, path: Path | None, wishes: Wishes, function: object = None
) -> LoadedModel:
    """Return the model in a graph message, its open dimensions bound.

    Args:
        file: the message.
        name: of the entry, if the message has one without a name.
        path: where it came from, if it was a file.
        wishes: what the user says about dimensions.
        function: what it was made of, if that was a function in this process.
    """
    try:
        with native_tensorflow() as native:
            model = _model_of(file, name, path, wishes, native)
    except RecursionError as error:
        raise ModelError(f"'{path or name}' is nested too deep") from error
    if function is None or not isinstance(model.source, TensorFlowSource):
        return model
    return replace(model, source=replace(model.source, function=function))


def _model_of(
    file: GraphFile, name: str, path: Path | None, wishes: Wishes, native: NativeTensorFlow
) -> LoadedModel:
    functions = {f.signature.name: f for f in file.graph.library.function}
    producer = file.graph.versions.producer or file.graph.version
    library = Library(OpTable(native.op_defs()), functions, producer)
    entries = entries_of(file, name, library)
    inputs = [inputs_of(e.flat, producer, e.signature) for e in entries]
    outside = [edge_name(e.flat, edge) for e in entries for edge in source_edges(e.flat)]
    require_known(wishes, [given for row in inputs for given in row], outside)
    reading = Reading(native, library)
    graphs: list[Graph] = []
    sources = []
    for entry, given in zip(entries, inputs, strict=True):
        reading.sites, reading.bodies = entry.sites, {}
        partial, notes = bind_inputs(given, wishes)
        bound, more = _bound(reading, entry.flat, partial)
        reading.notes |= dict.fromkeys((*notes, *more))
        bound |= wished_results(entry.flat, wishes)
        graph, source = _build(reading, entry, bound)
        graphs.append(graph)
        sources.append(source)
    notes = [*file.notes, *reading.notes, *_notes(reading, file, native), *_loop_notes(graphs)]
    origin = TensorFlowSource(
        kind=file.kind,
        message=file.message,
        path=path,
        entries=tuple(sources),
        notes=tuple(notes),
    )
    model = LoadedModel(framework="tensorflow", entries=tuple(graphs), source=origin)
    return require_valid_model(model)


def _bound(
    reading: Reading, flat: Flat, partial: Mapping[int, Partial | None]
) -> tuple[dict[Edge, Bound], list[str]]:
    """Return a shape for every input of an entry, asking TensorFlow where the file has none."""

    def inferred(bound: Mapping[Edge, Bound]) -> Mapping[Edge, Partial | None]:
        order = node_order(flat)
        state = Inference(flat, reading.library, order, find_resources(flat, order))
        state.bind(bound)
        infer(state, reading.native, None)
        return state.partial

    def refusal(bound: Mapping[Edge, Bound], readers: list[int]) -> str:
        known = [i for i in readers if not is_opaque(flat.nodes[i], reading.library)]
        said = reading.native.import_error(light_graph(flat, reading.library, bound, {}, known))
        return said if REFUSAL in said else ""

    return bound_edges(flat, partial, inferred, refusal)


def _build(
    reading: Reading, entry: Entry, bound: Mapping[Edge, Bound]
) -> tuple[Graph, EntrySource]:
    flat = entry.flat
    whole = sized(reading, flat, bound)
    built = build_graph(whole, reading.library, entry.name, entry.outputs)
    graph = built.graph
    used = {i for node in flat.nodes for i, _ in node.inputs}
    used |= {i for node in flat.nodes for i in node.controls} | {i for i, _ in entry.outputs}
    source = EntrySource(
        name=entry.name,
        graph=graph_def_of(flat, reading.library, sorted(call_sites(flat, reading.library))),
        inputs=tuple(graph.tensors[t].name for t in graph.inputs),
        outputs=tuple(graph.tensors[t].name for t in graph.outputs),
        targets=tuple(flat.nodes[n].name for row in built.op_nodes for n in row if n not in used),
        shapes={graph.tensors[t].name: graph.tensors[t].shape for t in graph.inputs},
        op_nodes=tuple(tuple(flat.nodes[n].name for n in row) for row in built.op_nodes),
        homes={node.name: node.home for node in flat.nodes if node.home[0]},
    )
    return graph, source


def _notes(reading: Reading, file: GraphFile, native: NativeTensorFlow) -> list[str]:
    """Return what people should know about how the file was read."""
    notes = []
    kept = sum(node.op in SAVING for node in file.graph.node)
    if kept and file.kind in ("GraphDef", "MetaGraphDef"):
        notes.append(f"the file's {kept} nodes that save and restore are planned with the others")
    for why, names in reading.assumptions.items():
        notes.append(f"the shapes of {_listed(names)} depend on data: taken as {why}")
    try:
        refused = native.import_error(without_weights(file.graph), LONGEST_CHECK)
    except ModelError as error:  # it does not survive a function that calls itself
        refused = str(error)
    if refused:
        notes.append(f"TensorFlow cannot run the file as it is: {refused}")
    return notes


def _loop_notes(graphs: Sequence[Graph]) -> list[str]:
    """Return a note on the loops of which nobody knows how often they run."""
    loops = (LOOP, *sorted(WHILES))
    open_loops = [
        op.name
        for graph in graphs
        for op in graph.ops
        if op.kind in loops and "trip_count" not in op.attributes
    ]
    if not open_loops:
        return []
    return [f"loops that run as often as data decide are counted once: {_listed(open_loops)}"]


def _listed(names: Sequence[str]) -> str:
    """Return some names in quotes, and how many more there are."""
    listed = ", ".join(f"'{name}'" for name in names[:MOST_NAMED])
    return f"{listed} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else listed
