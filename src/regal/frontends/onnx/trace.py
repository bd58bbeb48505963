"""What one real run in ONNX Runtime tells: the shape of every result, and the order."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from regal.frontends.onnx.prepare import runnable_copy
from regal.frontends.onnx.runtime import RunRequest, run_in_child
from regal.frontends.onnx.tidy import bodies_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onnx import GraphProto, ModelProto

# Place and position of a node, spelled so that it survives as the name of a node.
Spot = tuple[tuple[tuple[int, int], ...], int]
KERNEL = "_kernel_time"


TypedShape = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class KernelRun:
    """The tensors of one run of one node; absent ones and other types are not listed."""

    inputs: tuple[TypedShape, ...]
    results: tuple[TypedShape, ...]
    ns: int  # of the kernel; ONNX Runtime counts whole microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A run of a model. `order` lists nodes as executed; those of bodies interleave."""

    reason: str = ""  # why there is none
    order: tuple[Spot, ...] = ()
    runs: Mapping[Spot, list[KernelRun]]
    strangers: int = 0  # kernels that ONNX Runtime added itself
    style: str = ""  # of the inputs on which it ran


def trace(
    model: ModelProto,
    path: Path,
    shapes: Mapping[str, tuple[int, ...]],
    *,
    seed: int,
    file_order: bool,
    timeout_s: float,
    invocations: int = 1,
    threads: int = 1,
) -> Trace:
    """Return what happened when ONNX Runtime ran `model` on seeded inputs.

    Args:
        model: as it would be written to `path`; external data lie beside that.
        path: of the model's file.
        shapes: dimensions of the inputs.
        seed: of the inputs.
        file_order: run nodes as listed, or in ONNX Runtime's default order.
        timeout_s: wall time that the child process may take.
        invocations: runs in a row.
        threads: within an operator.
    """
    named = runnable_copy(model)
    name_nodes(named.graph, ())
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        file = Path(folder, "model.onnx")
        file.write_bytes(named.SerializeToString())
        result = run_in_child(
            RunRequest(
                model=str(file),
                external_folder=str(path.parent.resolve()),
                file_order=file_order,
                shapes={name: list(shape) for name, shape in shapes.items()},
                seed=seed,
                invocations=invocations,
                threads=threads,
                profile_prefix=str(Path(folder, "profile")),
            ),
            timeout_s,
        )
        if not result.ran:
            return Trace(reason=result.reason, runs={})
        events = json.loads(Path(result.profile).read_text())
    return replace(read_profile(events), style=result.style)


def read_profile(events: list[dict[str, object]]) -> Trace:
    """Return the runs of nodes that `name_nodes` named, from a profile of ONNX Runtime."""
    order: list[Spot] = []
    runs: dict[Spot, list[KernelRun]] = {}
    strangers = 0
    for event in events:
        name = str(event.get("name", ""))
        if event.get("cat") != "Node" or not name.endswith(KERNEL):
            continue
        spot = _spot(name.removesuffix(KERNEL))
        if spot is None:
            strangers += 1
            continue
        order.append(spot)
        arguments = event.get("args")
        if isinstance(arguments, dict):
            run = KernelRun(
                _typed_shapes(arguments.get("input_type_shape")),
                _typed_shapes(arguments.get("output_type_shape")),
                1000 * _whole(event.get("dur")),
            )
            runs.setdefault(spot, []).append(run)
    return Trace(order=tuple(order), runs=runs, strangers=strangers)


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _typed_shapes(rows: object) -> tuple[TypedShape, ...]:
    """Return the (type, shape) of a row such as [{"float": [1, 3]}]."""
    listed = rows if isinstance(rows, list) else []
    return tuple((kind, tuple(shape)) for row in listed for kind, shape in row.items())


def name_nodes(graph: GraphProto, place: tuple[tuple[int, int], ...]) -> None:
    """Name the nodes of `graph`, which lies at `place`, and of its bodies by their positions."""
    for position, node in enumerate(graph.node):
        path = [f"{a}.{b}" for a, b in place]
        node.name = "regal:" + "/".join([*path, str(position)])
        for number, body in enumerate(bodies_of(node)):
            name_nodes(body, (*place, (position, number)))


def _spot(name: str) -> Spot | None:
    if not name.startswith("regal:"):
        return None
    *path, position = name.removeprefix("regal:").split("/")
    steps = [part.split(".") for part in path]
    if not position.isdecimal() or any(len(step) != 2 for step in steps):
        return None
    return tuple((int(a), int(b)) for a, b in steps), int(position)
