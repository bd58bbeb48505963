"""Concrete shapes of all tensors: from the file, or as LiteRT infers them from `--shape`.

A runtime takes the file's `shape` as it is, whatever `shape_signature` leaves open. So only
sizes that the file does not state, and inputs that the user resizes, need more.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.child import run_module
from regal.errors import ModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.frontends.tflite.model import FileTensor, TfliteFile

Shape = tuple[int, ...]
_SECONDS_TO_INFER = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundShapes:
    """Shapes per subgraph and tensor. `resized` maps inputs of the main graph to new shapes."""

    of: tuple[tuple[Shape, ...], ...]
    resized: Mapping[str, Shape]


def bind_shapes(
    file: TfliteFile, path: Path, shapes: Mapping[str, Shape], dims: Mapping[str, int]
) -> BoundShapes:
    """Return the shape of every tensor once the inputs of the main graph are bound.

    An input whose shape is not stated in full takes it from `shapes`, or from `dims` under
    the name "INPUT[AXIS]"; an open batch dimension (axis 0) defaults to 1.

    Raises:
        UsageError: `shapes` or `dims` name something that the model does not have.
        ModelError: sizes stay open, or LiteRT cannot infer the rest; the message lists them.
    """
    main = file.subgraphs[0]
    inputs = {main.tensors[t].name: main.tensors[t] for t in main.inputs}
    _require_known_names(inputs, shapes, dims)
    wanted = {name: _input_shape(t, shapes, dims) for name, t in inputs.items()}
    open_sizes = [
        f"{name}[{axis}]" for name, shape in wanted.items() for axis, n in enumerate(shape) if n < 0
    ]
    if open_sizes:
        raise ModelError(
            f"sizes are open: {', '.join(open_sizes)} - bind them with --shape or --dim"
        )
    resized = {name: shape for name, shape in wanted.items() if shape != inputs[name].shape}
    stated = tuple(tuple(t.shape for t in s.tensors) for s in file.subgraphs)
    if not resized and not _open_tensors(file):
        return BoundShapes(of=stated, resized={})
    inferred = _inferred_shapes(file, path, resized)
    return BoundShapes(of=(inferred, *stated[1:]), resized=resized)


def _require_known_names(
    inputs: Mapping[str, FileTensor], shapes: Mapping[str, Shape], dims: Mapping[str, int]
) -> None:
    known = {f"{name}[{axis}]" for name, t in inputs.items() for axis in range(len(t.shape))}
    for what, names, allowed in (("shape", shapes, set(inputs)), ("dim", dims, known)):
        for name in names:
            if name not in allowed:
                listed = ", ".join(sorted(allowed)[:8]) or "none"
                raise UsageError(f"--{what} {name}: the model has no such input; known: {listed}")


def _input_shape(tensor: FileTensor, shapes: Mapping[str, Shape], dims: Mapping[str, int]) -> Shape:
    name = tensor.name
    given = shapes.get(name)
    if given is not None and len(given) != len(tensor.shape):
        raise UsageError(
            f"--shape {name}: {len(given)} sizes for an input of {len(tensor.shape)} dimensions"
        )
    bound = list(given if given is not None else tensor.shape)
    for axis, size in enumerate(bound):
        bound[axis] = dims.get(f"{name}[{axis}]", size)
        if bound[axis] < 0 and axis == 0:
            bound[axis] = 1
    if len(tensor.signature) == len(bound):
        for axis, (size, fixed) in enumerate(zip(bound, tensor.signature, strict=True)):
            if fixed >= 0 and size >= 0 and fixed != size:
                raise UsageError(
                    f"--shape {name}: size {size} at dimension {axis}; the model fixes it"
                    f" at {fixed}"
                )
    return tuple(bound)


def _open_tensors(file: TfliteFile) -> list[str]:
    return [
        t.name
        for subgraph in file.subgraphs
        for t in subgraph.tensors
        if any(size < 0 for size in t.shape) and t.data_bytes == 0
    ]


def _inferred_shapes(
    file: TfliteFile, path: Path, resized: Mapping[str, Shape]
) -> tuple[Shape, ...]:
    """Return the shapes of the main graph's tensors after LiteRT ran it once on zeros.

    In a child process with a time limit, because the runtime may crash on a bad model.
    """
    reason = "resized inputs" if resized else f"open sizes of '{_open_tensors(file)[0]}'"
    if any(op.bodies for op in file.subgraphs[0].operators):
        raise ModelError(f"{reason}: shapes inside of control flow cannot be inferred")
    request = json.dumps({"path": str(path), "shapes": {k: list(v) for k, v in resized.items()}})
    ended = run_module("regal.frontends.tflite.infer", [], _SECONDS_TO_INFER, stdin=request)
    lines = ended.stdout.splitlines()
    answer = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    if "shapes" not in answer:
        cause = answer.get("error") or f"it {ended.end}"
        raise ModelError(f"{reason}: LiteRT cannot infer shapes: {cause}")
    found = {int(index): tuple(shape) for index, shape in answer["shapes"].items()}
    return tuple(found.get(i, t.shape) for i, t in enumerate(file.subgraphs[0].tensors))
