"""Graph files: the JSON form of a graph, `regal.graph/1` (docs/formats.md)."""

from __future__ import annotations

import hashlib
import json
from reprlib import repr as repr_of
from typing import TYPE_CHECKING, Any

from regal.errors import ModelError
from regal.graph.check import MOST_BODY_LEVELS, require_valid_model
from regal.graph.types import Graph, LoadedModel, Op, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.graph.types import AttributeValue

SCHEMA = "regal.graph/1"
MOST_NS = 1 << 50  # of one op or transfer: 13 days


def model_to_json(model: LoadedModel) -> str:
    """Return the graph file of a model: its main entry, further entries under "entries"."""
    document: dict[str, Any] = {"schema": SCHEMA, **graph_to_dict(model.graph)}
    if len(model.entries) > 1:
        document["entries"] = [graph_to_dict(graph) for graph in model.entries[1:]]
    return json.dumps(document, separators=(",", ":"))


def model_hash(model: LoadedModel) -> str:
    """Return a SHA-256 over everything that a plan depends on: ops, edges, sizes, names."""
    return hashlib.sha256(model_to_json(model).encode()).hexdigest()


def load(path: Path, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]) -> LoadedModel:
    """Return the model of a graph file.

    Raises:
        ModelError: not JSON, not this schema, or a graph that breaks a rule.
    """
    if shapes or dims:
        raise ModelError(f"'{path.name}' is a graph file; its shapes are fixed: drop --shape/--dim")
    return model_from_json(path.read_bytes(), path.name)


def model_from_json(data: bytes, name: str = "graph") -> LoadedModel:
    """Return the model that a graph file of these bytes holds.

    Raises:
        ModelError: not JSON, not this schema, or a graph that breaks a rule.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"'{name}' is not a JSON file: {str(error).splitlines()[0]}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else None
        raise ModelError(f"'{name}' has schema {repr_of(found)}; a graph file has '{SCHEMA}'")
    entries = [document, *_list(document, "entries", name)]
    graphs = tuple(_graph(entry, f"'{name}'", 0) for entry in entries)
    # Whatever it was converted from: without the model file only a graph file can be written.
    return require_valid_model(LoadedModel(framework="graph", entries=graphs, source=None))


def graph_to_dict(graph: Graph) -> dict[str, Any]:
    """Return the JSON object of one graph, bodies included."""
    return {
        "name": graph.name,
        "framework": graph.framework,
        "alignment": graph.alignment,
        "in_place_by_runtime": graph.in_place_by_runtime,
        "inputs": list(graph.inputs),
        "outputs": list(graph.outputs),
        "ops": [_op_to_dict(op) for op in graph.ops],
        "tensors": [_tensor_to_dict(tensor) for tensor in graph.tensors],
    }


def _op_to_dict(op: Op) -> dict[str, Any]:
    return {
        "name": op.name,
        "kind": op.kind,
        "inputs": list(op.inputs),
        "outputs": list(op.outputs),
        "control_inputs": list(op.control_inputs),
        "captures": op.captures,
        "workspace_bytes": op.workspace_bytes,
        "flops": op.flops,
        "in_place": [list(pair) for pair in op.in_place],
        "sub_buffers": [list(choice) for choice in op.sub_buffers],
        "attributes": dict(op.attributes),
        "subgraphs": [graph_to_dict(body) for body in op.subgraphs],
        **({"colocation": op.colocation} if op.colocation else {}),
        **({"devices": list(op.devices)} if op.devices else {}),
        **({"times_ns": dict(op.times_ns)} if op.times_ns else {}),
    }


def _tensor_to_dict(tensor: Tensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype,
        "bytes": tensor.bytes,
        "role": tensor.role.value,
        "storage": tensor.storage,
        "storage_offset": tensor.storage_offset,
        **({} if tensor.transfer_ns is None else {"transfer_ns": tensor.transfer_ns}),
    }


def _graph(value: object, where: str, level: int) -> Graph:
    if level > MOST_BODY_LEVELS:
        raise ModelError(f"{where}: bodies nested deeper than {MOST_BODY_LEVELS}")
    fields = _object(value, where)
    inputs = _ints(fields, "inputs", where)
    outputs = _ints(fields, "outputs", where)
    ops = tuple(
        _op(op, f"{where}: op {i}", level) for i, op in enumerate(_list(fields, "ops", where))
    )
    given, returned = set(inputs), set(outputs)
    written = {t for op in ops for t in op.outputs}
    tensors = _list(fields, "tensors", where)
    return Graph(
        name=_text(fields, "name", where, "graph"),
        framework=_text(fields, "framework", where, "graph"),
        alignment=_int(fields, "alignment", where, 16),
        in_place_by_runtime=_bool(fields, "in_place_by_runtime", where),
        inputs=inputs,
        outputs=outputs,
        ops=ops,
        tensors=tuple(
            _tensor(
                tensor,
                i,
                _default_role(i, given, returned, written),
                f"{where}: tensor {i}",
            )
            for i, tensor in enumerate(tensors)
        ),
    )


def _default_role(index: int, inputs: set[int], outputs: set[int], written: set[int]) -> Role:
    if index in inputs:
        return Role.INPUT
    if index not in written:
        return Role.PARAMETER
    return Role.OUTPUT if index in outputs else Role.ACTIVATION


def _op(value: object, where: str, level: int) -> Op:
    fields = _object(value, where)
    attributes = _object(fields.get("attributes", {}), f"{where}: attributes")
    return Op(
        name=_text(fields, "name", where),
        kind=_text(fields, "kind", where),
        inputs=_ints(fields, "inputs", where),
        outputs=_ints(fields, "outputs", where),
        control_inputs=_ints(fields, "control_inputs", where),
        captures=_int(fields, "captures", where, 0),
        workspace_bytes=_int(fields, "workspace_bytes", where, 0),
        flops=_int(fields, "flops", where, 0),
        in_place=tuple(
            _pair(pair, f"{where}: in_place") for pair in _list(fields, "in_place", where)
        ),
        sub_buffers=tuple(
            _triple(choice, f"{where}: sub_buffers")
            for choice in _list(fields, "sub_buffers", where)
        ),
        subgraphs=tuple(
            _graph(body, f"{where}: body {i}", level + 1)
            for i, body in enumerate(_list(fields, "subgraphs", where))
        ),
        colocation=_text(fields, "colocation", where, ""),
        devices=_texts(fields, "devices", where),
        times_ns=_times(fields.get("times_ns", {}), f"{where}: times_ns"),
        attributes={
            key: _attribute(item, f"{where}: attribute {repr_of(key)}")
            for key, item in attributes.items()
        },
    )


def _tensor(value: object, index: int, default: Role, where: str) -> Tensor:
    fields = _object(value, where)
    role = _text(fields, "role", where, default.value)
    if role not in list(Role):
        raise ModelError(f"{where}: unknown role '{role}'; known: {', '.join(Role)}")
    if "bytes" not in fields:
        raise ModelError(f"{where}: 'bytes' is missing")
    return Tensor(
        name=_text(fields, "name", where, f"t{index}"),
        shape=_ints(fields, "shape", where),
        dtype=_text(fields, "dtype", where, "uint8"),
        bytes=_int(fields, "bytes", where, 0),
        role=Role(role),
        storage=_int(fields, "storage", where, index),
        storage_offset=_int(fields, "storage_offset", where, 0),
        transfer_ns=_time(fields, "transfer_ns", where) if "transfer_ns" in fields else None,
    )


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelError(f"{where} is {type(value).__name__}, expected an object")
    return value


def _list(fields: dict[str, Any], key: str, where: str) -> list[Any]:
    value = fields.get(key, [])
    if not isinstance(value, list):
        raise ModelError(f"{where}: '{key}' is {type(value).__name__}, expected a list")
    return value


def _int(fields: dict[str, Any], key: str, where: str, default: int) -> int:
    value = fields.get(key, default)
    if type(value) is not int or abs(value) >= 1 << 62:
        raise ModelError(f"{where}: '{key}' is {repr_of(value)}, expected an integer below 2^62")
    return value


def _ints(fields: dict[str, Any], key: str, where: str) -> tuple[int, ...]:
    values = _list(fields, key, where)
    for value in values:
        if type(value) is not int or abs(value) >= 1 << 62:
            raise ModelError(
                f"{where}: '{key}' holds {repr_of(value)}, expected integers below 2^62"
            )
    return tuple(values)


def _time(fields: dict[str, Any], key: str, where: str) -> int:
    value = _int(fields, key, where, 0)
    if not 0 <= value < MOST_NS:
        raise ModelError(f"{where}: '{key}' is {value} ns, expected 0 to below 2^50")
    return value


def _times(value: object, where: str) -> dict[str, int]:
    fields = _object(value, where)
    return {kind: _time(fields, kind, where) for kind in fields}


def _texts(fields: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    values = _list(fields, key, where)
    for value in values:
        if not isinstance(value, str):
            raise ModelError(f"{where}: '{key}' holds {repr_of(value)}, expected strings")
    return tuple(values)


def _pair(value: object, where: str) -> tuple[int, int]:
    if not (isinstance(value, list) and len(value) == 2 and all(type(i) is int for i in value)):
        raise ModelError(f"{where} holds {repr_of(value)}, expected two integers")
    return value[0], value[1]


def _triple(value: object, where: str) -> tuple[int, int, int]:
    if not (isinstance(value, list) and len(value) == 3 and all(type(i) is int for i in value)):
        raise ModelError(f"{where} holds {repr_of(value)}, expected three integers")
    return value[0], value[1], value[2]


def _attribute(value: object, where: str) -> AttributeValue:
    if isinstance(value, list) and all(type(item) is int for item in value):
        return tuple(value)
    if isinstance(value, str | int | float):
        return value
    raise ModelError(
        f"{where} is {repr_of(value)}, expected a number, a text or a list of integers"
    )


def _text(fields: dict[str, Any], key: str, where: str, default: str | None = None) -> str:
    value = fields.get(key, default)
    if not isinstance(value, str):
        raise ModelError(f"{where}: '{key}' is {repr_of(value)}, expected a string")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ModelError(f"{where}: '{key}' is {repr_of(value)}, which is no Unicode text")
    return value


def _bool(fields: dict[str, Any], key: str, where: str) -> bool:
    value = fields.get(key, False)
    if not isinstance(value, bool):
        raise ModelError(f"{where}: '{key}' is {repr_of(value)}, expected true or false")
    return value
