"""Give every dimension of every model input a number."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx

from regal.errors import ModelError, UsageError
from regal.frontends.onnx.tidy import initializer_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from onnx import ModelProto, TensorShapeProto, TypeProto, ValueInfoProto

MOST_DIMENSIONS = 64
LARGEST_DIMENSION = 1 << 48
# What exporters write when a dimension has no name; two of them need not be equal.
NAMELESS = frozenset({"", "None", "?", "-1", "unk"})
Dimension = int | str | None  # its size, its name, or nothing is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """The numbers behind the dimensions of the inputs.

    `names` maps a dimension's name to its size; `shapes` an input to all its dimensions.
    `fixed` holds only what the user or the file fixed, with None for a defaulted batch.
    """

    names: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, tuple[int | None, ...]]
    notes: tuple[str, ...]


def model_inputs(model: ModelProto) -> list[ValueInfoProto]:
    """Return the inputs that the caller must give: those that no initializer fills."""
    filled = initializer_names(model.graph)
    return [value for value in model.graph.input if value.name not in filled]


def bind(
    model: ModelProto, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]
) -> Bindings:
    """Return a number for every input dimension of `model`.

    `shapes` wins over the file, `dims` over names in the file. A free first dimension is a
    batch, and 1 if nothing says otherwise.

    Raises:
        UsageError: `shapes` or `dims` name something that the model does not have.
        ModelError: dimensions remain free; the message lists them all.
    """
    inputs = model_inputs(model)
    twice = [name for name, count in Counter(value.name for value in inputs).items() if count > 1]
    if twice:
        raise ModelError(f"input '{twice[0]}' is listed more than once")
    declared = {
        value.name: _declared(value)
        for value in inputs
        if (tensor := tensor_type(value.type)) is not None and tensor.elem_type
    }
    _require_known("input", shapes, declared)
    named = {d for row in declared.values() for d in row or () if isinstance(d, str)}
    names = _names_in(named)
    _require_known("dimension", dims, sorted(names | named))
    sizes = dict(dims)
    for name, shape in shapes.items():
        _learn(sizes, name, declared[name], shape)
    batches = {}
    for row in declared.values():
        first = row[0] if row else None
        if isinstance(first, str) and _size_of(first, sizes) is None:
            batches[first] = 1
    everything = sizes | batches
    complete: dict[str, tuple[int, ...]] = {}
    fixed: dict[str, tuple[int | None, ...]] = {}
    missing: list[str] = []
    for name, row in declared.items():
        given = shapes.get(name)
        if given is not None:
            fixed[name] = complete[name] = given
            continue
        if row is None:
            missing.append(f"{name} (rank unknown)")
            continue
        fixed[name] = tuple(_size_of(dimension, sizes) for dimension in row)
        planned = _with_batch(row, everything)
        missing += [
            f"{name}[{axis}]" + (f" '{row[axis]}'" if row[axis] else "")
            for axis, size in enumerate(planned)
            if size is None
        ]
        complete[name] = tuple(size for size in planned if size is not None)
    if missing:
        one = (
            "1 input dimension is" if len(missing) == 1 else f"{len(missing)} input dimensions are"
        )
        raise ModelError(
            f"{one} free: {', '.join(missing[:20])} - give --shape NAME=DIMS or --dim NAME=SIZE"
        )
    free = [name for name, row in fixed.items() if None in row]
    notes = (f"planned for batch size 1 of {', '.join(free)}",) if free else ()
    return Bindings(names=everything, shapes=complete, fixed=fixed, notes=notes)


def _with_batch(row: tuple[Dimension, ...], names: Mapping[str, int]) -> list[int | None]:
    """Return the sizes of a row; a first dimension without a name is a batch of 1."""
    sizes = [_size_of(dimension, names) for dimension in row]
    if row and row[0] is None:
        sizes[0] = 1
    return sizes


def tensor_type(value: TypeProto) -> TypeProto.Tensor | None:
    """Return the tensor that a type describes, looking into optional types, or None."""
    while value.WhichOneof("value") == "optional_type":
        value = value.optional_type.elem_type
    kind = value.WhichOneof("value")
    if kind == "tensor_type":
        return value.tensor_type
    return None


def set_shape(shape: TensorShapeProto, sizes: tuple[int | None, ...]) -> None:
    """Replace the dimensions of `shape`; where a size is None, what is there stays."""
    while len(shape.dim) < len(sizes):
        shape.dim.add()
    for dimension, size in zip(shape.dim, sizes, strict=True):
        if size is not None:
            dimension.dim_value = size


def bound_size(dimension: TensorShapeProto.Dimension, names: Mapping[str, int]) -> int | None:
    """Return the size of a dimension, if it is a number or a name with one."""
    return _size_of(_dimension(dimension), names)


def bound_copy(model: ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> ModelProto:
    """Return a copy of `model` whose inputs have exactly these shapes."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        tensor = tensor_type(value.type)
        if tensor is not None and value.name in shapes:
            set_shape(tensor.shape, shapes[value.name])
    return copy


def _declared(value: ValueInfoProto) -> tuple[Dimension, ...] | None:
    tensor = tensor_type(value.type)
    if tensor is None or not tensor.HasField("shape"):
        return None
    if len(tensor.shape.dim) > MOST_DIMENSIONS:
        raise ModelError(
            f"input '{value.name}' has {len(tensor.shape.dim)} dimensions;"
            f" at most {MOST_DIMENSIONS} are supported"
        )
    return tuple(_dimension(d) for d in tensor.shape.dim)


def _dimension(dimension: TensorShapeProto.Dimension) -> Dimension:
    if dimension.WhichOneof("value") == "dim_value":
        return dimension.dim_value if dimension.dim_value >= 0 else None
    return None if dimension.dim_param in NAMELESS else dimension.dim_param


def _names_in(expressions: set[str]) -> set[str]:
    return {name for text in expressions for name in re.findall(r"[A-Za-z_][\w.]*", text)}


def _size_of(dimension: Dimension, names: Mapping[str, int]) -> int | None:
    """Return a dimension's size; names like "past+length" are sums of named sizes."""
    if not isinstance(dimension, str):
        return dimension
    if dimension in names:
        return names[dimension]
    terms = [term.strip() for term in dimension.split("+")]
    sizes = [int(t) if t.isdecimal() and len(t) < 16 else names.get(t) for t in terms]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(terms) > 1 else None


def _learn(
    sizes: dict[str, int],
    name: str,
    row: tuple[Dimension, ...] | None,
    shape: tuple[int, ...],
) -> None:
    """Note what `--shape` says about named dimensions; refuse it where it cannot be."""
    if row is None:
        return
    if len(row) != len(shape):
        raise UsageError(
            f"input '{name}' has {len(row)} dimensions, the shape given for it {len(shape)}"
        )
    for dimension, size in zip(row, shape, strict=True):
        if not isinstance(dimension, str):
            continue
        if sizes.setdefault(dimension, size) != size:
            raise UsageError(
                f"dimension '{dimension}' of input '{name}' is {size} here"
                f" and {sizes[dimension]} elsewhere"
            )


def _require_known(
    what: str,
    given: Mapping[str, int] | Mapping[str, tuple[int, ...]],
    known: Iterable[str],
) -> None:
    names = list(known)
    for name, value in given.items():
        if name not in names:
            listed = ", ".join(names[:20]) or "none"
            raise UsageError(f"the model has no {what} '{name}'; it has: {listed}")
        for size in value if isinstance(value, tuple) else (value,):
            if not isinstance(size, int) or not 0 <= size <= LARGEST_DIMENSION:
                raise UsageError(f"{what} '{name}': {size} is no size of a dimension")
