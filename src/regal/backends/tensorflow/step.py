"""Which nodes of a file form a step: what it computes, not what sets it up, saves or checks it.

A file from TensorFlow 1 holds initializers, savers and the like beside the step itself, and a
program runs them apart. Chained to the step they would run with it, every time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from regal.backends.tensorflow.files import meta_graph_of
from regal.backends.tensorflow.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from regal.frontends.tensorflow.source import EntrySource, TensorFlowSource

VARIABLES = frozenset({"VarHandleOp", "Variable", "VariableV2"})
ASSIGNMENTS = frozenset({"Assign", "AssignVariableOp"})
_SILENT = frozenset({"Const", "Iterator", "IteratorV2", "OneShotIterator"})
_TRAIN_OPS = "train_op"  # the collection of nodes that a training program runs
INPUTS = frozenset({"Placeholder", "PlaceholderV2", "_Arg"})
_HANDLE = re.compile(r"VarHandleOp|Variable(V2)?|\w*(HashTable|Queue|Iterator)(V\d+)?")
_RESTORERS = frozenset({"Restore", "RestoreSlice", "RestoreV2"})
_SAVERS = _RESTORERS | {
    "MergeV2Checkpoints",
    "Save",
    "SaveSlices",
    "SaveV2",
    "ShardedFilename",
    "ShardedFilespec",
}
_FILE_WRITERS = frozenset(
    {
        "DatasetToTFRecord",
        "DistributedSave",
        "ExperimentalDatasetToTFRecord",
        "MergeV2Checkpoints",
        "Save",
        "SaveDataset",
        "SaveDatasetV2",
        "SaveSlices",
        "SaveV2",
    }
)
_SET_UP = frozenset(
    {
        "ConfigureDistributedTPU",
        "InitializeTable",
        "InitializeTableFromTextFile",
        "InitializeTableFromTextFileV2",
        "InitializeTableV2",
        "IsVariableInitialized",
        "IteratorToStringHandle",
        "LookupTableImport",
        "LookupTableImportV2",
        "MakeIterator",
        "VarIsInitializedOp",
    }
)


def step_of(source: TensorFlowSource, entry: EntrySource) -> frozenset[str]:
    """Return the nodes of an entry that run in a step.

    A signature is a step. A file that names its train ops has a step that trains. Other files
    are looked at (`step_nodes`).
    """
    nodes = Nodes(entry.graph.node)
    meta = meta_graph_of(source)
    if meta is None:
        return step_nodes(nodes)
    if source.kind == "SavedModel" and entry.name in meta.signature_def:
        return frozenset(nodes.by_name)
    listed = []
    if _TRAIN_OPS in meta.collection_def:
        listed = meta.collection_def[_TRAIN_OPS].node_list.value
    names = [name.partition(":")[0] for name in listed]
    if names and all(name in nodes.by_name for name in names):
        return needed_by(nodes, names)
    return step_nodes(nodes)


def step_nodes(nodes: Nodes) -> frozenset[str]:
    """Return the nodes of the step; all nodes of a file that is nothing but setting up.

    The step is what the nodes need that nobody reads and that are not apart (`apart_nodes`).

    Args:
        nodes: of one graph.
    """
    apart = apart_nodes(nodes)
    ends = [
        name
        for name, readers in nodes.readers.items()
        if not readers and (name not in apart or nodes.op(name) == "_Retval")
    ]
    return needed_by(nodes, ends) if ends else frozenset(nodes.by_name)


def apart_nodes(nodes: Nodes) -> frozenset[str]:
    """Return the nodes that set a step up, save or check it.

    These are: saving and restoring, assignments of what depends neither on an input nor on a
    variable (initializers), questions whether variables are initialized, data sets, filling
    queues outside of loops (other threads do that), and what follows from these alone.
    """
    facts = nodes.facts()
    given: set[str] = set()  # what depends on an input or on the value of a variable
    restored: set[str] = set()  # what comes out of a checkpoint
    silent: set[str] = set()  # constants and the like: they tell nothing about their readers
    apart: set[str] = set()
    for name in facts.order if facts is not None else ():
        op = nodes.op(name)
        sources = nodes.sources(name)
        if op in _RESTORERS or any(source in restored for source in sources):
            restored.add(name)
        if op in ASSIGNMENTS:
            values = [edge.source for edge in nodes.reads[name][1:]]
            is_given = any(source in given for source in values)
            if not is_given or any(source in restored for source in values):
                apart.add(name)
        else:
            is_given = op in INPUTS or any(s in given or _is_variable(nodes, s) for s in sources)
        if is_given or yields_data(op):
            given.add(name)
        fills_queue = "Enqueue" in op and facts is not None and not facts.inside[name]
        if op in _SAVERS or op in _SET_UP or "Dataset" in op or fills_queue:
            apart.add(name)
        elif op not in ASSIGNMENTS and not yields_data(op):
            telling = [s for s in sources if s not in silent and not _is_variable(nodes, s)]
            if (telling or op == "NoOp") and all(source in apart for source in telling):
                apart.add(name)
        is_silent = op in _SILENT or (sources and all(source in silent for source in sources))
        if is_silent and name not in apart:
            silent.add(name)
    return frozenset(apart)


def free_nodes(nodes: Nodes, step: frozenset[str]) -> frozenset[str]:
    """Return the nodes of a step that may wait for nothing, since others run them, too.

    These are handles of variables, tables, queues and iterators, and what else is needed by
    what is apart: an initializer, of the file or of a program, must not run the step.
    """
    handles = {name for name in step if _HANDLE.fullmatch(nodes.op(name))}
    return (needed_by(nodes, apart_nodes(nodes) - step) & step) | handles


def needed_by(nodes: Nodes, names: Iterable[str]) -> frozenset[str]:
    """Return `names` and all that they read or wait for, directly or not."""
    needed: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in needed:
            needed.add(name)
            stack += nodes.sources(name)
    return frozenset(needed)


def initializers(nodes: Nodes) -> tuple[str, ...]:
    """Return nodes that together give variables their first values, in an order that can run.

    They are the assignments to variables of values that depend on nothing but constants and
    random numbers, not those that restore a checkpoint.
    """
    facts = nodes.facts()
    found = []
    for name in facts.order if facts is not None else ():
        if nodes.op(name) not in ASSIGNMENTS or not nodes.reads[name]:
            continue
        target = nodes.reads[name][0].source
        values = needed_by(nodes, [edge.source for edge in nodes.reads[name][1:]])
        kinds = {nodes.op(value) for value in values}
        if _is_variable(nodes, target) and not kinds & (_SAVERS | INPUTS | VARIABLES):
            found.append(name)
    return tuple(found)


def _is_variable(nodes: Nodes, name: str) -> bool:
    return nodes.op(name) in VARIABLES


def yields_data(op: str) -> bool:
    """Return whether an operator yields data that no file holds: an iterator's, a queue's."""
    return op.startswith("IteratorGetNext") or "Dequeue" in op


def writer_in(entry: EntrySource, step: frozenset[str]) -> str:
    """Return the first node of a step that writes files, in words; "" if none does."""
    own = [node for node in entry.graph.node if node.name in step]
    inner = [node for function in entry.graph.library.function for node in function.node_def]
    for node in (*own, *inner):
        op = str(node.op)
        if op in _FILE_WRITERS or op.startswith("Write") or "SummaryFileWriter" in op:
            return f"'{node.name}' ({op})"
    return ""
