"""What the TensorFlow backend needs of a model that the frontend read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.frontends.tensorflow.schema import Proto
    from regal.frontends.tensorflow.values import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySource:
    """One entry as TensorFlow can run it.

    `graph` is a GraphDef of this package's schema (`SerializeToString` gives TensorFlow's own
    bytes): the nodes of the entry alone, calls of functions inlined where they are one op each,
    inputs and variables as in the file. Names of tensors in the `Graph` are names of tensors
    in it. Nobody changes it; the backend writes a copy.
    """

    name: str  # of the signature, or of the file
    graph: Proto
    inputs: tuple[str, ...]  # tensors to feed, like Graph.inputs
    outputs: tuple[str, ...]  # tensors to fetch, like Graph.outputs
    targets: tuple[str, ...]  # nodes that nothing reads: to run for what they do
    shapes: Mapping[str, Shape]  # tensor to feed -> shape, as planned
    # Op i -> the nodes that it stands for: one, or all of a loop. Nodes in no op (constants,
    # inputs, handles) go where their readers go.
    op_nodes: tuple[tuple[str, ...], ...]
    # Node -> (function, node there) in the file, for nodes of functions that were inlined.
    homes: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFlowSource:
    """The model that was planned, as protobuf."""

    kind: str  # "GraphDef", "MetaGraphDef", "SavedModel", "Keras" or "Function"
    message: Proto  # the file's whole message: a GraphDef, MetaGraphDef or SavedModel
    path: Path | None  # of the file or folder: variables lie beside it
    entries: tuple[EntrySource, ...]  # like LoadedModel.entries
    notes: tuple[str, ...]  # what was assumed while reading, for people
    # In memory only: the concrete function that was planned, with its captured variables.
    function: object = None
