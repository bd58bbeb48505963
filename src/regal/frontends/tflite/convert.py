"""Turn the subgraphs of a .tflite file into graphs, with TFLM's idea of memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from regal.cost.work import op_flops
from regal.errors import ModelError
from regal.frontends.tflite.arena import ALIGNMENT, arena_bytes, elements_of
from regal.frontends.tflite.attributes import attributes_of
from regal.frontends.tflite.in_place import in_place_pairs
from regal.frontends.tflite.offline import kept_aliases
from regal.frontends.tflite.schema import CUSTOM
from regal.frontends.tflite.scratch import scratch_bytes
from regal.frontends.tflite.state import control_inputs_of, resource_states
from regal.frontends.tflite.sub_buffers import sub_buffers_of
from regal.graph.types import ABSENT, Graph, Op, Role, Tensor
from regal.units import packed_bytes, round_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.frontends.tflite.model import FileOperator, FileSubgraph, FileTensor, TfliteFile
    from regal.frontends.tflite.shapes import BoundShapes
    from regal.graph.types import SubBuffer

_MOST_DIMENSIONS: Final = 64
_MOST_BODY_LEVELS: Final = 64
# Bodies called from several places count once per call; this bounds what a file can unfold to.
_MOST_UNFOLDED: Final = 1_000_000


def graphs_of(file: TfliteFile, shapes: BoundShapes) -> tuple[tuple[int, ...], tuple[Graph, ...]]:
    """Return the subgraphs that are entry points, the main one first, and the graphs of all.

    Entries are subgraph 0 and what other signatures name. Ops and tensors of a graph have
    the positions that they have in the file.

    Raises:
        ModelError: bodies call each other in a circle, tensors are read but never written, ...
    """
    entries = tuple(dict.fromkeys((0, *(s.subgraph for s in file.signatures))))
    _require_bounded_bodies(file)
    converter = _Converter(file, shapes)
    return entries, tuple(converter.graph(index) for index in range(len(file.subgraphs)))


def bodies_with_ops(file: TfliteFile, op: FileOperator) -> tuple[int, ...]:
    """Return the subgraphs that become bodies of the op: those that do something."""
    return tuple(body for body in op.bodies if file.subgraphs[body].operators)


def _require_bounded_bodies(file: TfliteFile) -> None:
    """Reject circles, deep nesting, and files that unfold to more ops than fit in memory."""
    unfolded: dict[int, int] = {}
    levels: dict[int, int] = {}

    def visit(index: int, above: tuple[int, ...]) -> None:
        name = file.subgraphs[index].name
        if index in above:
            raise ModelError(f"subgraph '{name}' runs itself through control flow")
        if len(above) > _MOST_BODY_LEVELS:
            raise ModelError(f"subgraph '{name}' is nested deeper than {_MOST_BODY_LEVELS}")
        if index in unfolded:
            return
        ops = file.subgraphs[index].operators
        for op in ops:
            for body in op.bodies:
                visit(body, (*above, index))
        called = [body for op in ops for body in op.bodies]
        levels[index] = 1 + max((levels[b] for b in called), default=0)
        own = len(ops) + len(file.subgraphs[index].tensors)
        unfolded[index] = own + sum(unfolded[b] for b in called)
        if levels[index] > _MOST_BODY_LEVELS or unfolded[index] > _MOST_UNFOLDED:
            raise ModelError(
                f"subgraph '{name}' unfolds to {unfolded[index]} ops and tensors in {levels[index]}"
                f" levels; at most {_MOST_UNFOLDED} in {_MOST_BODY_LEVELS} are supported"
            )

    for index in range(len(file.subgraphs)):
        visit(index, ())


class _Converter:
    """Converts subgraphs once each; a body that two ops share becomes one shared object."""

    def __init__(self, file: TfliteFile, shapes: BoundShapes) -> None:
        self._file = file
        self._shapes = shapes
        self._graphs: dict[int, Graph] = {}
        self._idle_bytes: dict[int, int] = {}
        self._resource_bytes = self._bytes_per_resource()

    def graph(self, index: int) -> Graph:
        """Return the graph of subgraph `index`."""
        if index not in self._graphs:
            self._graphs[index] = self._convert(index)
        return self._graphs[index]

    def _convert(self, index: int) -> Graph:
        subgraph = self._file.subgraphs[index]
        tensors = self._tensors(index)
        order = control_inputs_of(self._file, index)
        aliases = kept_aliases(self._file, index)
        for op, earlier in enumerate(aliases.control_inputs):
            order[op] = tuple(sorted({*order[op], *earlier}))
        for tensor, (storage, offset) in aliases.storage.items():
            tensors[tensor] = replace(tensors[tensor], storage=storage, storage_offset=offset)
        names = _op_names(subgraph)
        parts = sub_buffers_of(self._file, subgraph, tensors)
        ops = tuple(
            self._op(op, names[i], order[i], parts[i], tensors)
            for i, op in enumerate(subgraph.operators)
        )
        return Graph(
            name=subgraph.name,
            framework="tflite",
            ops=ops,
            tensors=tuple(tensors),
            inputs=subgraph.inputs,
            outputs=subgraph.outputs,
            alignment=ALIGNMENT,
        )

    def _op(
        self,
        op: FileOperator,
        name: str,
        after: tuple[int, ...],
        parts: tuple[SubBuffer, ...],
        tensors: Sequence[Tensor],
    ) -> Op:
        inputs = [None if t == ABSENT else tensors[t] for t in op.inputs]
        outputs = [tensors[t] for t in op.outputs if t != ABSENT]
        converted = Op(
            name=name,
            kind=op.label,
            inputs=op.inputs,
            outputs=op.outputs,
            control_inputs=after,
            workspace_bytes=self._idle_body_bytes(op) + scratch_bytes(op.kind, inputs, outputs),
            in_place=in_place_pairs(op.kind, inputs, outputs),
            sub_buffers=parts,
            subgraphs=tuple(self.graph(b) for b in bodies_with_ops(self._file, op)),
            attributes=attributes_of(op),
        )
        return replace(converted, flops=op_flops(converted, tensors, "tflite"))

    def _idle_body_bytes(self, op: FileOperator) -> int:
        """Return what bodies without ops need: their values are copied in and out all the same."""
        idle = [b for b in op.bodies if not self._file.subgraphs[b].operators]
        for body in idle:
            if body not in self._idle_bytes:
                tensors, graph = self._tensors(body), self._file.subgraphs[body]
                used = {*graph.inputs, *graph.outputs}
                self._idle_bytes[body] = sum(round_up(tensors[t].bytes, ALIGNMENT) for t in used)
        return max((self._idle_bytes[body] for body in idle), default=0)

    def _tensors(self, index: int) -> list[Tensor]:
        subgraph = self._file.subgraphs[index]
        written = _writers(subgraph)
        read = {t for op in subgraph.operators for t in op.inputs}
        scratch = _scratch_inputs(subgraph)
        given, kept = set(subgraph.inputs), set(subgraph.outputs)
        handles = resource_states(self._file, index)
        first_of: dict[object, int] = {}
        tensors = []
        for t, tensor in enumerate(subgraph.tensors):
            shape = self._shapes.of[index][t]
            if len(shape) > _MOST_DIMENSIONS:
                raise ModelError(
                    f"tensor '{tensor.name}' has {len(shape)} dimensions;"
                    f" at most {_MOST_DIMENSIONS} are supported"
                )
            size = arena_bytes(tensor, shape)
            storage = t
            if t in handles:
                role, size = Role.STATE, self._resource_bytes.get(handles[t], 0)
                storage = first_of.setdefault(handles[t], t)
            elif tensor.is_variable:
                role = Role.STATE
            elif tensor.data_bytes:
                role, size = _constant_role(tensor), _constant_bytes(tensor, shape)
                storage = first_of.setdefault(tensor.buffer, t)
            elif t in given:
                role = Role.INPUT
            elif t in written or t in scratch:
                role = Role.OUTPUT if t in kept else Role.ACTIVATION
            else:
                if (t in read or t in kept) and size:
                    raise ModelError(
                        f"tensor '{tensor.name}' of '{subgraph.name}' is read, but no op writes"
                        " it and it holds no data"
                    )
                role, size = Role.CONSTANT, 0
            if t in written and role in (Role.INPUT, Role.PARAMETER, Role.CONSTANT):
                raise ModelError(
                    f"op {written[t]} ({subgraph.operators[written[t]].label}) of"
                    f" '{subgraph.name}' writes '{tensor.name}', which is a {role}"
                )
            tensors.append(
                Tensor(
                    name=tensor.name or f"tensor {t}",
                    shape=shape,
                    dtype=tensor.type.name,
                    bytes=size,
                    role=role,
                    storage=storage,
                )
            )
        return tensors

    def _bytes_per_resource(self) -> dict[object, int]:
        """Return the size of the value that each named variable holds."""
        sizes: dict[object, int] = {}
        for index, subgraph in enumerate(self._file.subgraphs):
            handles = resource_states(self._file, index)
            for op in subgraph.operators:
                values = {"READ_VARIABLE": op.outputs[:1], "ASSIGN_VARIABLE": op.inputs[1:2]}
                for value in values.get(op.kind, ()):
                    handle = handles.get(op.inputs[0]) if op.inputs else None
                    if handle and value != ABSENT:
                        shape = self._shapes.of[index][value]
                        size = arena_bytes(subgraph.tensors[value], shape)
                        sizes[handle] = max(sizes.get(handle, 0), size)
        return sizes


def _writers(subgraph: FileSubgraph) -> dict[int, int]:
    written: dict[int, int] = {}
    for position, op in enumerate(subgraph.operators):
        for t in op.outputs:
            if t in written and t != ABSENT and not subgraph.tensors[t].is_variable:
                raise ModelError(
                    f"tensor '{subgraph.tensors[t].name}' of '{subgraph.name}' is written twice,"
                    f" by op {written[t]} and op {position}"
                )
            written.setdefault(t, position)
    written.pop(ABSENT, None)
    return written


def _scratch_inputs(subgraph: FileSubgraph) -> set[int]:
    """Return the tensors that only custom ops read: accelerators use such ones as scratch.

    Builtin ops do not: LiteRT refuses to run one whose input was never written.
    """
    builtin = {t for op in subgraph.operators if op.kind != CUSTOM for t in op.inputs}
    custom = {t for op in subgraph.operators if op.kind == CUSTOM for t in op.inputs}
    return custom - builtin


def _constant_bytes(tensor: FileTensor, shape: Sequence[int]) -> int:
    if tensor.type.bits and not tensor.is_sparse and min(shape, default=0) >= 0:
        needed = packed_bytes(elements_of(tensor, shape), tensor.type.bits)
        if tensor.data_bytes < needed and tensor.buffer:
            raise ModelError(
                f"tensor '{tensor.name}' of shape {list(shape)} needs {needed} bytes of data;"
                f" buffer {tensor.buffer} has {tensor.data_bytes}"
            )
    return tensor.data_bytes


def _constant_role(tensor: FileTensor) -> Role:
    is_index = tensor.type.name in ("int32", "int64", "bool", "string", "uint32", "uint64")
    return Role.CONSTANT if is_index and not tensor.is_quantized else Role.PARAMETER


def _op_names(subgraph: FileSubgraph) -> list[str]:
    """Return one name per op: that of its first output where it is unique, else "3:ADD"."""
    wanted = [
        next((subgraph.tensors[t].name for t in op.outputs if t != ABSENT), "")
        for op in subgraph.operators
    ]
    counts: dict[str, int] = {}
    for name in wanted:
        counts[name] = counts.get(name, 0) + 1
    names = []
    for i, (name, op) in enumerate(zip(wanted, subgraph.operators, strict=True)):
        own = f"{i}:{op.label}"
        names.append(name if name and counts[name] == 1 and own not in counts else own)
    return names
