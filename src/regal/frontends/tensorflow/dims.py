"""Give every dimension of every input of an entry a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.errors import ModelError, UsageError
from regal.frontends.tensorflow.assume import comes_from_outside
from regal.frontends.tensorflow.flat import edge_name
from regal.frontends.tensorflow.light import Bound
from regal.frontends.tensorflow.ops import HANDLES
from regal.frontends.tensorflow.roles import INPUTS, is_no_op
from regal.frontends.tensorflow.schema import REF
from regal.frontends.tensorflow.values import LARGEST_DIMENSION, Partial, require_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from regal.frontends.tensorflow.flat import Edge, Flat

# Up to this version of the graph format, a scalar shape may stand for an unknown one.
# Source: shape function of Placeholder, tensorflow/core/ops/array_ops.cc.
LAST_AMBIGUOUS_PRODUCER = 21
BATCH = "batch"  # the name of all open first dimensions, for --dim


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
        if node.kind not in INPUTS or not node.results or node.results[0] in HANDLES:
            continue
        shape = _declared(flat, position, producer)
        name, stated = signature.get(f"{node.name}:0", ("", None))
        if stated is not None and _is_clearer(stated, shape):
            shape = stated
        names = (node.name, f"{node.name}:0", *([name] if name else []))
        found.append(Input(position, names, shape))
    return found


def _is_clearer(stated: Partial, shape: Partial | None) -> bool:
    """Return whether a signature says more about a shape than the node of the input."""
    if shape is None:
        return True
    return len(stated) == len(shape) and stated.count(None) < shape.count(None)


def _declared(flat: Flat, position: int, producer: int) -> Partial | None:
    node = flat.nodes[position]
    who = f"input '{node.name}'"
    attributes = node.proto.attr
    shape = None
    if "shape" in attributes:
        shape = require_shape(attributes["shape"].shape, who)
        if shape == () and producer <= LAST_AMBIGUOUS_PRODUCER:
            shape = None
    if shape is None and "_output_shapes" in attributes:
        listed = attributes["_output_shapes"].list.shape
        if len(listed) == 1:
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


def require_known(wishes: Wishes, inputs: Iterable[Input], sources: Iterable[str] = ()) -> None:
    """Raise if the user names something that no entry has, or a size that cannot be.

    Args:
        wishes: what the user says.
        inputs: those of all entries.
        sources: tensors whose shapes the user may say although they are no inputs.

    Raises:
        UsageError: names it, and what there is.
    """
    inputs, sources = list(inputs), list(sources)
    names = {name for given in inputs for name in given.names} | set(sources)
    free = {
        f"{name}[{axis}]"
        for given in inputs
        for name in given.names
        for axis, size in enumerate(given.shape or ())
        if size is None
    }
    shown = list(dict.fromkeys(given.names[-1] for given in inputs))
    _require(wishes.shapes, names, "input", [*shown, *sources])
    _require(wishes.dims, free | {BATCH}, "free dimension", [BATCH, *sorted(free)])
    for name, sizes in [*wishes.shapes.items(), *((n, (d,)) for n, d in wishes.dims.items())]:
        for size in sizes:
            if not 0 <= size <= LARGEST_DIMENSION:
                raise UsageError(f"'{name}': {size} is no size of a dimension")


def wished_results(flat: Flat, wishes: Wishes) -> dict[Edge, Bound]:
    """Return the shapes that the user gives to results of nodes, by names such as "node:0"."""
    found = {}
    for edge in source_edges(flat):
        name = edge_name(flat, edge)
        if name in wishes.shapes:
            found[edge] = Bound(wishes.shapes[name])
    return found


def source_edges(flat: Flat) -> list[Edge]:
    """Return what comes from outside, but not as an input: from queues, iterators, parsers."""
    return [
        (position, k)
        for position, node in enumerate(flat.nodes)
        if comes_from_outside(node) and node.kind not in INPUTS and not is_no_op(node)
        for k, dtype in enumerate(node.results)
        if dtype not in HANDLES and dtype < REF
    ]


def _require(given: Iterable[str], known: set[str], what: str, shown: list[str]) -> None:
    for name in given:
        if name not in known:
            raise UsageError(
                f"the model has no {what} '{name}'; it has: {', '.join(shown[:20]) or 'none'}"
            )
