"""Give every value of a model a size: by rules, from the file, by running it, by analogy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx

from regal.errors import ModelError
from regal.frontends.onnx.analogy import assume_values
from regal.frontends.onnx.kinds import NAMES
from regal.frontends.onnx.shapes import contradiction, declared_types
from regal.frontends.onnx.tables import (
    Place,
    Table,
    Tables,
    Value,
    dense,
    graphs_of,
    note_type,
    static_tables,
    type_of,
)
from regal.frontends.onnx.tidy import is_standard
from regal.frontends.onnx.trace import trace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from onnx import GraphProto, ModelProto

    from regal.frontends.onnx.dims import Bindings
    from regal.frontends.onnx.trace import Trace

LONGEST_RUN = 60.0  # seconds for the one run that measures shapes
MOST_NAMED = 4  # values that a note lists by name
# Layers of assumptions, after each of which the rest is inferred again, and the nodes that
# this may take in all.
MOST_ROUNDS = 24
MOST_NODES_AGAIN = 20_000
Missing = tuple[Place, str]
# ONNX Runtime's names of element types in its profile.
KINDS = {name: kind for kind, name in NAMES.items()} | {
    "float": onnx.TensorProto.FLOAT,
    "double": onnx.TensorProto.DOUBLE,
}


def complete_tables(model: ModelProto, path: Path, bindings: Bindings) -> tuple[Tables, list[str]]:
    """Return the size of every value of `model` and its bodies, and notes on those not proven.

    ONNX's own rules come first; then what the file states; then one run in ONNX Runtime on
    seeded inputs; then the size of what the node reads.
    """
    tables = static_tables(model, bindings, {})
    _mask_dropouts(model, tables)
    if not missing_values(model, tables):
        return tables, []
    known: dict[str, onnx.TypeProto] = {}
    tables = _with_stated(model, bindings, tables, known)
    missing = missing_values(model, tables)
    if not missing:
        return tables, []
    notes = []
    seen = trace(model, path, bindings.shapes, seed=0, file_order=True, timeout_s=LONGEST_RUN)
    _require_sound(model, bindings, known, seen)
    _take_measured(model, tables, seen)
    left = missing_values(model, tables)
    if len(left) < len(missing):
        taken = sorted(set(missing) - set(left))
        notes.append(_note(taken, "measured in ONNX Runtime on seeded inputs"))
    if left:
        # A run leaves out only branches that were not taken: rules cannot add much.
        if seen.reason:
            tables = _with_assumed(model, bindings, tables, known)
        assume_values(model.graph, tables, only_ready=False)
        why = f"; ONNX Runtime did not run it: {seen.reason}" if seen.reason else ""
        notes.append(_note(left, f"assumed from what their nodes read{why}"))
    return tables, notes


def _require_sound(
    model: ModelProto, bindings: Bindings, known: dict[str, onnx.TypeProto], seen: Trace
) -> None:
    """Refuse a model whose shapes contradict each other, by ONNX's rules and the runtime's."""
    if "InferenceError]" not in seen.reason:
        return
    reason = contradiction(model, bindings, known)
    if reason:
        raise ModelError(f"the model is broken: {reason}")


def missing_values(model: ModelProto, tables: Tables) -> list[Missing]:
    """Return (place, name) of every input and result without a size, in execution order."""
    return [
        (place, name)
        for place, graph in graphs_of(model.graph)
        for name in _defined(graph)
        if name not in tables[place].values
    ]


def _defined(graph: GraphProto) -> Iterable[str]:
    yield from (value.name for value in graph.input)
    for node in graph.node:
        yield from (name for name in node.output if name)


def _mask_dropouts(model: ModelProto, tables: Tables) -> None:
    """Give the mask of a Dropout the shape of its result; old rules leave it out."""
    for place, graph in graphs_of(model.graph):
        values = tables[place].values
        for node in graph.node:
            if is_standard(node, "Dropout") and len(node.output) == 2 and node.output[1]:
                data, mask = values.get(node.output[0]), node.output[1]
                if data is not None and mask not in values:
                    # The rules know masks since opset 10; before, they have the data's type.
                    values[mask] = data


def _with_stated(
    model: ModelProto, bindings: Bindings, tables: Tables, known: dict[str, onnx.TypeProto]
) -> Tables:
    """Return tables that also use the types that the file states for its open values."""
    main = Table()
    for name, kind in declared_types(model.graph).items():
        note_type(main, name, kind, bindings.names)
    for place, name in missing_values(model, tables):
        if not place and name in main.values:
            known[name] = type_of(main.values[name])
    if known:
        tables = static_tables(model, bindings, known)
    for place, graph in graphs_of(model.graph):
        for name, kind in declared_types(graph).items():
            note_type(tables[place], name, kind, bindings.names)
    return tables


def _take_measured(model: ModelProto, tables: Tables, seen: Trace) -> None:
    """Enter the largest shape that each open value had in the run."""
    for place, graph in graphs_of(model.graph):
        own = set(_defined(graph))
        for position, node in enumerate(graph.node):
            for run in seen.runs.get((place, position), ()):
                for names, row in ((node.output, run.results), (node.input, run.inputs)):
                    present = [name for name in names if name]
                    # The profile lists tensors only, so that others would shift the row.
                    if len(present) == len(row):
                        for name, (kind, shape) in zip(present, row, strict=True):
                            if name in own:
                                _enter(tables[place], name, kind, shape)


def _enter(table: Table, name: str, kind: str, shape: tuple[int, ...]) -> None:
    before = table.values.get(name)
    if kind not in KINDS or (before is not None and before.is_static):
        return
    value = dense(KINDS[kind], shape, is_static=False)
    if value is not None and (before is None or value.bytes > before.bytes):
        table.values[name] = value
        table.open.pop(name, None)


def _with_assumed(
    model: ModelProto, bindings: Bindings, tables: Tables, known: dict[str, onnx.TypeProto]
) -> Tables:
    """Return fuller tables: assume a value, infer what follows from it, and so on."""
    nodes = sum(len(graph.node) for _, graph in graphs_of(model.graph))
    assumed: dict[str, Value] = {}
    for _ in range(min(MOST_ROUNDS, MOST_NODES_AGAIN // max(nodes, 1))):
        if all(place for place, _ in missing_values(model, tables)):
            break
        assumed |= assume_values(model.graph, tables, only_ready=True)
        known |= {name: type_of(v) for name, v in assumed.items() if not v.container}
        tables = static_tables(model, bindings, known)
        tables[()].values.update(assumed)
    return tables


def _note(values: list[Missing], how: str) -> str:
    names = ", ".join(f"'{name}'" for _, name in values[:MOST_NAMED])
    more = f" and {len(values) - MOST_NAMED} more" if len(values) > MOST_NAMED else ""
    return f"the sizes of {names}{more} are {how}"
