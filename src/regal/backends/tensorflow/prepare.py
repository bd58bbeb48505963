"""Turn an entry of a file into a graph that TensorFlow can run by itself, the same every time."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.backends.tensorflow.nodes import SWITCHES, Nodes
from regal.backends.tensorflow.request import Feed
from regal.backends.tensorflow.step import VARIABLES, initializers, needed_by, step_of, yields_data
from regal.frontends.tensorflow.schema import new
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.frontends.tensorflow.schema import Proto
    from regal.frontends.tensorflow.source import EntrySource, TensorFlowSource
    from regal.graph.types import Graph

_REFERENCES = frozenset({"Variable", "VariableV2"})
# Their result is the memory of their first input.
_VIEWS = frozenset(
    {
        "Assign",
        "AssignAdd",
        "AssignSub",
        "ExpandDims",
        "Identity",
        "RefIdentity",
        "Reshape",
        "Snapshot",
        "Squeeze",
        "StopGradient",
    }
)
_UNKNOWN = "regal"  # replaces a leading "_", which is TensorFlow's own


@dataclass(frozen=True, slots=True)
class Runnable:
    """What to run of an entry: the graph, what goes in and comes out, what sets it up."""

    graph: Proto
    feeds: tuple[Feed, ...]
    fetches: tuple[str, ...]
    targets: tuple[str, ...]
    init: tuple[str, ...]
    has_state: bool


def runnable(
    source: TensorFlowSource, entry: EntrySource, graph: Graph, devices: Mapping[str, str]
) -> Runnable:
    """Return what to run of `entry`.

    Only the step and the initializers are left. Iterators and queues are not run: what they
    would yield is fed. Random operators get seeds of their own, by name.

    Args:
        source: a file that was read.
        entry: of this file.
        graph: the project's graph of it.
        devices: device in the file -> the one to run on; others are removed.
    """
    nodes = Nodes(entry.graph.node)
    step = step_of(source, entry)
    unused = pipeline(nodes, step)
    fed = {
        graph.tensors[t].name
        for op in graph.ops
        if yields_data(op.kind)
        for t in op.outputs
        if t != ABSENT
    }
    init = initializers(nodes)
    kept = needed_by(nodes, [*step, *init])
    copy = new("GraphDef")
    copy.versions.producer = entry.graph.versions.producer
    copy.library.CopyFrom(entry.graph.library)
    for function in copy.library.function:
        for node in function.node_def:
            node.device = ""
            _seed(node)
    for node in entry.graph.node:
        if node.name in kept:
            made = copy.node.add()
            made.CopyFrom(node)
            _skip(made, nodes, unused)
            _make_runnable(made, devices, kept)
    fetches, targets = _ends(nodes, step, entry.outputs)
    return Runnable(
        graph=copy,
        feeds=tuple(
            Feed(tensor=public_name(t.name), dtype=t.dtype, shape=t.shape)
            for t in graph.tensors
            if (t.name in entry.inputs or t.name in fed) and _node_of(t.name) in kept
        ),
        fetches=tuple(map(public_name, fetches)),
        targets=tuple(map(public_name, targets)),
        init=tuple(map(public_name, init)),
        has_state=any(nodes.op(name) in VARIABLES for name in step),
    )


def pipeline(nodes: Nodes, step: frozenset[str]) -> frozenset[str]:
    """Return the nodes of a step that bring data from outside: what they would yield is fed.

    These are iterators' and queues' results, and what only they read. They are not run.
    """
    found = {name for name in step if yields_data(nodes.op(name))}
    readers: dict[str, set[str]] = {}
    for name in step:
        for edge in nodes.reads[name]:
            readers.setdefault(edge.source, set()).add(name)
    stack = list(found)
    while stack:
        for edge in nodes.reads[stack.pop()]:
            source = edge.source
            if source in nodes.by_name and source not in found and readers[source] <= found:
                found.add(source)
                stack.append(source)
    return frozenset(found)


def public_name(name: str) -> str:
    """Return a name that a user's graph may have, for a node or tensor."""
    return f"{_UNKNOWN}{name}" if name.startswith("_") else name


def _ends(
    nodes: Nodes, step: frozenset[str], outputs: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return (tensors to fetch, nodes to run): all outputs that are always there, all ends.

    Nodes stand in the first list, too, by their result 0: where they have none that can be
    fetched, they are run.
    """
    facts = nodes.facts()
    alive = facts.alive if facts is not None else {}
    outside = facts.outside if facts is not None else {}
    fetches: dict[str, None] = {}
    targets: list[str] = []
    ends = [n for n, readers in nodes.readers.items() if n in step and not set(readers) & step]
    for name in [*outputs, *(f"{end}:0" for end in ends)]:
        node = _node_of(name)
        if node not in step or outside.get(node):
            continue  # what is inside a loop has many values
        if alive.get(node) or nodes.op(node) in SWITCHES or _is_in_variable(nodes, node):
            # Its branch may not be taken: then there is nothing to fetch. And a value that lies
            # in a variable is what the variable holds whenever somebody looks.
            targets.append(node)
        else:
            fetches[name] = None
    return list(fetches), list(dict.fromkeys([*targets, *ends]))


def _skip(node: Proto, nodes: Nodes, unused: frozenset[str]) -> None:
    """Let `node` wait for what the nodes would have waited for that are not run.

    It may read from such a node: what is fed is there at once, and keeps no order.
    """
    if not unused.intersection(nodes.sources(node.name)):
        return
    waits: dict[str, None] = {}
    seen: set[str] = set()
    stack = [*nodes.waits[node.name], *unused.intersection(nodes.sources(node.name))]
    while stack:
        name = stack.pop()
        if name not in seen:
            seen.add(name)
            if name in unused:
                stack += nodes.waits[name]
            else:
                waits[name] = None
    data = [text for text in node.input if not text.startswith("^")]
    del node.input[:]
    node.input.extend([*data, *(f"^{name}" for name in sorted(waits))])


def _is_in_variable(nodes: Nodes, name: str) -> bool:
    """Return whether the result of a node is the memory of a variable of TensorFlow 1."""
    while nodes.op(name) in _VIEWS and nodes.reads[name]:
        name = nodes.reads[name][0].source
        if name not in nodes.by_name:
            return False
    return nodes.op(name) in _REFERENCES


def _make_runnable(node: Proto, devices: Mapping[str, str], kept: frozenset[str]) -> None:
    node.name = public_name(node.name)
    for position, text in enumerate(node.input):
        control, name = ("^", text[1:]) if text.startswith("^") else ("", text)
        node.input[position] = control + public_name(name)
    node.device = devices.get(node.device, "")
    if node.op == "_Retval":
        node.op = "Identity"
        del node.attr["index"]
    elif node.op == "_Arg":
        node.op = "Placeholder"
        node.attr["dtype"].type = node.attr["T"].type
        del node.attr["T"], node.attr["index"]
    if "_class" in node.attr:
        # A node of a function names its neighbors there.
        wishes = [w.removeprefix(b"loc:@").decode() for w in node.attr["_class"].list.s]
        del node.attr["_class"]
        for name in (name for name in wishes if name in kept):
            node.attr["_class"].list.s.append(b"loc:@" + public_name(name).encode())
    _seed(node)


def _seed(node: Proto) -> None:
    """Give a random operator without seeds one of its own: its values would differ each time."""
    if "seed" not in node.attr or "seed2" not in node.attr:
        return
    if node.attr["seed"].i == 0 and node.attr["seed2"].i == 0:
        node.attr["seed"].i = zlib.crc32(node.name.encode()) % 100_000 + 1


def _node_of(tensor: str) -> str:
    return tensor.partition(":")[0]
