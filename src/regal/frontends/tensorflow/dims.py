"""Give every dimension of every input of an entry a number."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from regal.errors import ModelError, UsageError
from regal.frontends.tensorflow.light import Bound
from regal.frontends.tensorflow.ops import HANDLES, base_type
from regal.frontends.tensorflow.schema import REF
from regal.frontends.tensorflow.values import LARGEST_DIMENSION, Partial, full, require_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from regal.frontends.tensorflow.flat import Edge, Flat

PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2", "_Arg"})
# Up to this version of the graph format, a scalar shape may stand for an unknown one.
# Source: shape function of Placeholder, tensorflow/core/ops/array_ops.cc.
LAST_AMBIGUOUS_PRODUCER = 21
BATCH = "batch"  # the name of all open first dimensions, for --dim
MOST_RANK = 4  # that is tried for an input about which nothing is known


@dataclass(frozen=True, slots=True)
class Input:
    """An input of an entry: `names` are those by which a user may call it, its own first."""

    node: int
    names: tuple[str, ...]
    shape: Partial | None


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user says about dimensions, and what of it was of use."""

    shapes: Mapping[str, tuple[int, ...]]
    dims: Mapping[str, int]


def inputs_of(
    flat: Flat, producer: int, signature: Mapping[str, tuple[str, Partial | None]]
) -> list[Input]:
    """Return the inputs of an entry that take values: no handles.

    Args:
        flat: the entry.
        producer: version of the graph format that wrote the file.
        signature: tensor name -> (its name in the signature, the shape stated there).
    """
    found = []
    for position, node in enumerate(flat.nodes):
        if node.kind not in PLACEHOLDERS or not node.results or node.results[0] in HANDLES:
            continue
        shape = _declared(flat, position, producer)
        name, stated = signature.get(f"{node.name}:0", ("", None))
        if stated is not None and (shape is None or shape.count(None) > stated.count(None)):
            shape = stated
        names = (node.name, f"{node.name}:0", *([name] if name else []))
        found.append(Input(position, names, shape))
    return found


def _declared(flat: Flat, position: int, producer: int) -> Partial | None:
    node = flat.nodes[position]
    who = f"input '{node.name}'"
    attributes = node.proto.attr
    shape = None
    if "shape" in attributes:
        shape = require_shape(attributes["shape"].shape, who)
        if shape == () and producer <= LAST_AMBIGUOUS_PRODUCER:
            shape = None
    listed = attributes["_output_shapes"].list.shape if "_output_shapes" in attributes else ()
    if shape is None and len(listed) == 1:
        shape = require_shape(listed[0], who)
    return shape


def bind_inputs(
    inputs: Iterable[Input], wishes: Wishes
) -> tuple[dict[int, Partial | None], list[str]]:
    """Return the shape of each input as far as the user and the file fix it, and notes.

    An open first dimension is a batch of 1 unless the user says otherwise.

    Raises:
        UsageError: a wish does not fit its input.
        ModelError: dimensions remain open; the message lists them all.
    """
    bound: dict[int, Partial | None] = {}
    missing: list[str] = []
    batches: list[str] = []
    for given in inputs:
        shape = _wished(given, wishes)
        if shape and shape[0] is None:
            shape = (wishes.dims.get(BATCH, 1), *shape[1:])
            if BATCH not in wishes.dims:
                batches.append(given.names[-1])
        bound[given.node] = shape
        missing += [
            f"{given.names[-1]}[{axis}]" for axis, size in enumerate(shape or ()) if size is None
        ]
    if missing:
        one = (
            "1 input dimension is" if len(missing) == 1 else f"{len(missing)} input dimensions are"
        )
        raise ModelError(
            f"{one} free: {', '.join(missing[:20])} - give --shape NAME=DIMS or --dim NAME[AXIS]=N"
        )
    notes = [f"planned for batch size 1 of {', '.join(batches[:8])}"] if batches else []
    return bound, notes


def _wished(given: Input, wishes: Wishes) -> Partial | None:
    """Return the shape of an input with what the user fixed."""
    shape = given.shape
    asked = next((wishes.shapes[name] for name in given.names if name in wishes.shapes), None)
    if asked is not None:
        fits = shape is None or len(shape) == len(asked)
        if fits and shape is not None:
            fits = all(size in (None, want) for size, want in zip(shape, asked, strict=True))
        if not fits:
            said = ",".join("?" if size is None else str(size) for size in shape or ())
            raise UsageError(
                f"input '{given.names[-1]}' has the shape {said};"
                f" {','.join(map(str, asked))} does not fit"
            )
        return asked
    if shape is None:
        return None
    return tuple(
        next(
            (wishes.dims[f"{n}[{axis}]"] for n in given.names if f"{n}[{axis}]" in wishes.dims),
            size,
        )
        if size is None
        else size
        for axis, size in enumerate(shape)
    )


def require_known(wishes: Wishes, inputs: Iterable[Input]) -> None:
    """Raise if the user names something that no entry has, or a size that cannot be.

    Raises:
        UsageError: names it, and what there is.
    """
    inputs = list(inputs)
    names = {name for given in inputs for name in given.names}
    free = {
        f"{name}[{axis}]"
        for given in inputs
        for name in given.names
        for axis, size in enumerate(given.shape or ())
        if size is None
    }
    shown = list(dict.fromkeys(given.names[-1] for given in inputs))
    _require(wishes.shapes, names, "input", shown)
    _require(wishes.dims, free | {BATCH}, "free dimension", [BATCH, *sorted(free)])
    for name, sizes in [*wishes.shapes.items(), *((n, (d,)) for n, d in wishes.dims.items())]:
        for size in sizes:
            if not 0 <= size <= LARGEST_DIMENSION:
                raise UsageError(f"'{name}': {size} is no size of a dimension")


def _require(given: Iterable[str], known: set[str], what: str, shown: list[str]) -> None:
    for name in given:
        if name not in known:
            raise UsageError(
                f"the model has no {what} '{name}'; it has: {', '.join(shown[:20]) or 'none'}"
            )


def bound_edges(
    flat: Flat,
    shapes: Mapping[int, Partial | None],
    inferred: Callable[[Mapping[Edge, Bound]], Mapping[Edge, Partial | None]],
    refusal: Callable[[Mapping[Edge, Bound], list[int]], str],
) -> tuple[dict[Edge, Bound], list[str]]:
    """Return a full shape for every input, and notes on those whose rank nobody knows.

    Such an input takes the shape that a Reshape of it yields; else the lowest rank of ones,
    from a scalar on, that TensorFlow's rules for its readers accept.

    Args:
        flat: the entry.
        shapes: what is fixed; None where not even the rank is known.
        inferred: what TensorFlow infers under some bounds.
        refusal: what TensorFlow says against some nodes under some bounds, or "".

    Raises:
        ModelError: no such shape fits an input.
    """
    bound: dict[Edge, Bound] = {}
    for node, shape in shapes.items():
        whole = full(shape)
        if whole is not None:
            bound[node, 0] = Bound(whole)
    unknown = [node for node, shape in shapes.items() if shape is None]
    if not unknown:
        return bound, []
    found = inferred(bound)
    notes = []
    for node in unknown:
        shape = _from_reshape(flat, node, found)
        readers = [i for i, n in enumerate(flat.nodes) if any(p == node for p, _ in n.inputs)]
        if shape is None:
            shape = _lowest_rank(node, bound, readers, refusal)
        if shape is None:
            raise ModelError(
                f"nothing is known about the shape of input '{flat.nodes[node].name}'"
                f" - give --shape {flat.nodes[node].name}=DIMS"
            )
        bound[node, 0] = Bound(shape)
        said = ",".join(map(str, shape)) or "scalar"
        notes.append(
            f"input '{flat.nodes[node].name}' has no shape in the file: planned for {said}"
        )
    return bound, notes


def _from_reshape(
    flat: Flat, node: int, found: Mapping[Edge, Partial | None]
) -> tuple[int, ...] | None:
    for position, reader in enumerate(flat.nodes):
        if reader.kind == "Reshape" and reader.inputs[0][0] == node:
            shape = found.get((position, 0))
            if shape and prod(size or 1 for size in shape) > 1:
                return tuple(1 if size is None else size for size in shape)
    return None


def _lowest_rank(
    node: int,
    bound: Mapping[Edge, Bound],
    readers: list[int],
    refusal: Callable[[Mapping[Edge, Bound], list[int]], str],
) -> tuple[int, ...] | None:
    for rank in range(MOST_RANK + 1):
        shape = (1,) * rank
        if not refusal({**bound, (node, 0): Bound(shape)}, readers):
            return shape
    return None


def is_value(dtype: int) -> bool:
    """Return whether a tensor of this type is fed as a value, not as a handle."""
    return base_type(dtype) not in HANDLES and dtype < REF
