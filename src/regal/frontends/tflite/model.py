"""A .tflite file as plain data: what planning reads, and where the backend rewrites."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tflite.flatbuffer import Reader
from regal.frontends.tflite.schema import (
    BODY_FIELDS,
    CUSTOM,
    DATA_TYPES,
    FILE_IDENTIFIER,
    OPTIONS_2_FIELD,
    OPTIONS_FIELD,
    BufferField,
    DataType,
    ModelField,
    OperatorCodeField,
    OperatorField,
    SubgraphField,
    TensorField,
    builtin_name,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.frontends.tflite.flatbuffer import Table

NO_DATA = (0, 0)
OFFLINE_PLAN = "OfflineMemoryAllocation"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTensor:
    """One tensor of a subgraph, as the file states it."""

    name: str
    shape: tuple[int, ...]  # may hold -1
    signature: tuple[int, ...]  # like shape, -1 where the size is open; () when not given
    type: DataType
    buffer: int
    data_bytes: int  # > 0: a constant
    is_variable: bool
    is_quantized: bool
    is_sparse: bool
    scale: float  # per-tensor quantization; 0.0 when there is none
    zero_point: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOperator:
    """One operator; `bodies` are the subgraphs that it runs."""

    kind: str  # "CONV_2D", "CUSTOM"
    custom_code: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    bodies: tuple[int, ...]
    options: Table | None
    table: Table

    @property
    def label(self) -> str:
        """Return the kind; custom operators with their name."""
        return f"{self.kind}:{self.custom_code}" if self.kind == CUSTOM else self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSubgraph:
    """One subgraph; `operators_at` is the first byte of its list of operator offsets."""

    name: str
    tensors: tuple[FileTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[FileOperator, ...]
    operators_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMetadata:
    """A named buffer that is not a tensor's."""

    name: str
    buffer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSignature:
    """A named entry point; `arguments` names its inputs, by tensor."""

    key: str
    subgraph: int
    arguments: Mapping[int, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TfliteFile:
    """The whole file. `buffers` are (first byte, length) in `data`."""

    data: bytes = field(repr=False)
    root: Table
    buffers: tuple[tuple[int, int], ...]
    buffer_tables: tuple[Table, ...]
    subgraphs: tuple[FileSubgraph, ...]
    metadata: tuple[FileMetadata, ...]
    signatures: tuple[FileSignature, ...]

    def buffer_data(self, index: int) -> memoryview:
        """Return the bytes of a buffer."""
        start, size = self.buffers[index]
        return memoryview(self.data)[start : start + size]

    def custom_codes(self) -> frozenset[str]:
        """Return the names of all custom operators in use."""
        return frozenset(
            op.custom_code
            for subgraph in self.subgraphs
            for op in subgraph.operators
            if op.kind == CUSTOM
        )


def parse_tflite(data: bytes) -> TfliteFile:
    """Return the file's content with every offset and index checked.

    Raises:
        ModelError: the bytes are no TFLite model, or a broken one.

    Cost: linear in the size of the file, whatever it claims to hold.
    """
    if len(data) < 8 or data[4:8] != FILE_IDENTIFIER:
        found = data[4:8].decode("latin-1").encode("unicode_escape").decode()
        raise ModelError(
            f"not a TFLite model: the identifier at bytes 4-7 is '{found}', not 'TFL3'"
        )
    reader = Reader(data)
    root = reader.root()
    buffer_tables = tuple(root.tables(ModelField.BUFFERS))
    buffers = tuple(_buffer(table) for table in buffer_tables)
    codes = [_operator_code(table) for table in root.tables(ModelField.OPERATOR_CODES)]
    tables = root.tables(ModelField.SUBGRAPHS)
    if not tables:
        raise ModelError("model has no subgraph")
    subgraphs = tuple(
        _subgraph(table, index, len(tables), codes, buffers) for index, table in enumerate(tables)
    )
    _require_own_operator_lists(subgraphs)
    return TfliteFile(
        data=data,
        root=root,
        buffers=buffers,
        buffer_tables=buffer_tables,
        subgraphs=subgraphs,
        metadata=tuple(_metadata(t, len(buffers)) for t in root.tables(ModelField.METADATA)),
        signatures=tuple(
            _signature(t, len(tables)) for t in root.tables(ModelField.SIGNATURE_DEFS)
        ),
    )


def _buffer(table: Table) -> tuple[int, int]:
    start, size = table.vector(BufferField.DATA, 1)
    # Files above 2 GB keep their data behind the flatbuffer; offsets 0 and 1 mean "not so".
    offset = table.u64(BufferField.OFFSET)
    if offset > 1:
        start, size = offset, table.u64(BufferField.SIZE)
        if start + size > len(table.reader.data):
            raise table.reader.broken(f"a buffer needs bytes [{start}, {start + size})")
    return (start, size) if size else NO_DATA


def _operator_code(table: Table) -> tuple[str, str]:
    # Codes above 126 do not fit the old field, which then holds 127.
    code = max(
        table.i8(OperatorCodeField.DEPRECATED_BUILTIN_CODE),
        table.i32(OperatorCodeField.BUILTIN_CODE),
    )
    return builtin_name(code), table.text(OperatorCodeField.CUSTOM_CODE)


def _metadata(table: Table, n_buffers: int) -> FileMetadata:
    name, buffer = table.text(0), table.u32(1)
    if buffer >= n_buffers:
        raise ModelError(f"metadata '{name}' uses buffer {buffer}; there are {n_buffers}")
    return FileMetadata(name=name, buffer=buffer)


def _signature(table: Table, n_subgraphs: int) -> FileSignature:
    key, subgraph = table.text(2), table.u32(4)
    if subgraph >= n_subgraphs:
        raise ModelError(f"signature '{key}' runs subgraph {subgraph}; there are {n_subgraphs}")
    arguments = {t.u32(1): t.text(0) for t in table.tables(0)}
    return FileSignature(key=key, subgraph=subgraph, arguments=arguments)


def _subgraph(
    table: Table,
    index: int,
    n_subgraphs: int,
    codes: list[tuple[str, str]],
    buffers: tuple[tuple[int, int], ...],
) -> FileSubgraph:
    name = table.text(SubgraphField.NAME) or f"subgraph {index}"
    tensors = tuple(
        _tensor(t, f"tensor {i} of '{name}'", buffers)
        for i, t in enumerate(table.tables(SubgraphField.TENSORS))
    )
    start, _ = table.vector(SubgraphField.OPERATORS, 4)
    operators = tuple(
        _operator(t, f"op {i} of '{name}'", codes, len(tensors), n_subgraphs)
        for i, t in enumerate(table.tables(SubgraphField.OPERATORS))
    )
    return FileSubgraph(
        name=name,
        tensors=tensors,
        inputs=_indices(table, SubgraphField.INPUTS, f"inputs of '{name}'", len(tensors)),
        outputs=_indices(table, SubgraphField.OUTPUTS, f"outputs of '{name}'", len(tensors)),
        operators=operators,
        operators_at=start,
    )


def _tensor(table: Table, what: str, buffers: tuple[tuple[int, int], ...]) -> FileTensor:
    name = table.text(TensorField.NAME)
    code, buffer = table.i8(TensorField.TYPE), table.u32(TensorField.BUFFER)
    if not 0 <= code < len(DATA_TYPES):
        raise ModelError(f"{what} ('{name}') has the unknown type {code}")
    if buffer >= len(buffers) and buffer:
        raise ModelError(f"{what} ('{name}') uses buffer {buffer}; there are {len(buffers)}")
    data_bytes = buffers[buffer][1] if buffers else 0
    if table.u32(TensorField.EXTERNAL_BUFFER):
        data_bytes = max(data_bytes, 1)  # its size is stated beside the model only
    scale, zero_point, is_quantized = _quantization(table)
    return FileTensor(
        name=name,
        shape=table.integers(TensorField.SHAPE),
        signature=table.integers(TensorField.SHAPE_SIGNATURE),
        type=DATA_TYPES[code],
        buffer=buffer,
        data_bytes=data_bytes,
        is_variable=table.i8(TensorField.IS_VARIABLE) != 0,
        is_quantized=is_quantized,
        is_sparse=table.slot(TensorField.SPARSITY) != 0,
        scale=scale,
        zero_point=zero_point,
    )


def _quantization(table: Table) -> tuple[float, int, bool]:
    quantization = table.table(TensorField.QUANTIZATION)
    if quantization is None:
        return 0.0, 0, False
    scales, n_scales = quantization.vector(2, 4)
    zeros, n_zeros = quantization.vector(3, 8)
    if n_scales == 0:
        return 0.0, 0, False
    view = memoryview(table.reader.data)
    scale = view[scales : scales + 4].cast("f")[0] if n_scales == 1 else 0.0
    zero = int.from_bytes(view[zeros : zeros + 8], "little", signed=True) if n_zeros == 1 else 0
    return scale, zero, True


def _operator(
    table: Table, what: str, codes: list[tuple[str, str]], n_tensors: int, n_subgraphs: int
) -> FileOperator:
    code = table.u32(OperatorField.OPCODE_INDEX)
    if code >= len(codes):
        raise ModelError(f"{what} has operator code {code}; there are {len(codes)}")
    kind, custom_code = codes[code]
    what = f"{what} ({kind})"
    bodies, options = _bodies(table, kind, what, n_subgraphs)
    return FileOperator(
        kind=kind,
        custom_code=custom_code,
        inputs=_indices(table, OperatorField.INPUTS, f"inputs of {what}", n_tensors, True),
        outputs=_indices(table, OperatorField.OUTPUTS, f"outputs of {what}", n_tensors, True),
        bodies=bodies,
        options=options,
        table=table,
    )


def _bodies(
    table: Table, kind: str, what: str, n_subgraphs: int
) -> tuple[tuple[int, ...], Table | None]:
    options_field, fields = BODY_FIELDS.get(kind, (OPTIONS_FIELD, ()))
    if kind == "STABLEHLO_CASE":
        options_field = OPTIONS_2_FIELD
    options = table.table(options_field)
    if kind == "STABLEHLO_CASE" and options:
        bodies = options.integers(0)
    elif fields and options is None:
        raise ModelError(f"{what} does not say which subgraph it runs")
    else:
        bodies = tuple(options.i32(f) for f in fields) if options else ()
    for body in bodies:
        if not 0 <= body < n_subgraphs:
            raise ModelError(f"{what} runs subgraph {body}; there are {n_subgraphs}")
    return bodies, options


def _indices(
    table: Table, field_number: int, what: str, n_tensors: int, optional: bool = False
) -> tuple[int, ...]:
    indices = table.integers(field_number)
    lowest = -1 if optional else 0
    for index in indices:
        if not lowest <= index < n_tensors:
            raise ModelError(f"{what} name tensor {index}; there are {n_tensors}")
    return indices


def _require_own_operator_lists(subgraphs: tuple[FileSubgraph, ...]) -> None:
    """Reject files in which rewriting one operator list would change something else."""
    lists = sorted(
        (s.operators_at, s.operators_at + 4 * len(s.operators), s.name)
        for s in subgraphs
        if s.operators
    )
    for (_, end, name), (start, _, other) in pairwise(lists):
        if start < end:
            raise ModelError(f"subgraphs '{name}' and '{other}' share their list of operators")
    for subgraph in subgraphs:
        end = subgraph.operators_at + 4 * len(subgraph.operators)
        for op in subgraph.operators:
            if subgraph.operators and op.table.position < end:
                raise ModelError(
                    f"subgraph '{subgraph.name}': an operator lies before byte {end},"
                    " where the list of operators ends"
                )
