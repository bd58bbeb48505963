"""The one graph representation: what every frontend produces and every search reads.

All objects are frozen and hold plain numbers. Indices are positions in `Graph.ops` and
`Graph.tensors`. The order of `Graph.ops` is the order of the file: the "before".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.devices.types import System

AttributeValue = int | float | str | bool | tuple[int, ...]

# (inner tensor, outer tensor, offset): the kernel survives `inner` lying inside `outer`, `offset`
# bytes after its start, where both hold the same bytes: a part of a concatenation, a slice.
SubBuffer = tuple[int, int, int]

ABSENT = -1  # an optional input that the op does not get


class Role(StrEnum):
    """What a tensor is to its graph, and with that whether it counts in the peak."""

    INPUT = "input"  # given by the caller; counts from step 0 to its last reader
    OUTPUT = "output"  # made by an op and returned; counts to the end
    ACTIVATION = "activation"  # made by an op and read by others; counts
    PARAMETER = "parameter"  # trained weights; reported apart, never in the peak
    CONSTANT = "constant"  # other fixed data; reported apart, never in the peak
    STATE = "state"  # variables, resources; reported apart, never in the peak
    CAPTURED = "captured"  # in a body: a value of the outer graph, counted there


COUNTED_ROLES = frozenset({Role.INPUT, Role.OUTPUT, Role.ACTIVATION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One value of the graph.

    Tensors with equal `storage` share memory (views, reshapes, in-place state): the storage
    lives over the hull of all their uses. `storage_offset` is where a sub-buffer begins.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str  # "float32", "int8", "int4", "bool", "string", "resource", ...
    bytes: int  # bytes it takes in memory; 0 where the runtime keeps it elsewhere
    role: Role
    storage: int
    storage_offset: int = 0
    # What sending it to another device takes, where the file says so; else the link decides.
    transfer_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operator.

    `inputs` may hold ABSENT. Values that the bodies of an If or While capture from this
    graph are the last `captures` inputs. `control_inputs` are ops that must run earlier
    although no tensor says so (state order, side effects). With several devices, ops of one
    `colocation` group run on one device, and an op with `devices` only on devices of these
    kinds. `times_ns` are running times that the file itself gives, by kind of device; the
    key "" stands for every kind that is not named.
    """

    name: str
    kind: str  # the framework's own name: "CONV_2D", "Conv"
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    control_inputs: tuple[int, ...] = ()
    captures: int = 0
    workspace_bytes: int = 0
    flops: int = 0
    # (input position, output position): the op may write that output over that input.
    in_place: tuple[tuple[int, int], ...] = ()
    sub_buffers: tuple[SubBuffer, ...] = ()
    subgraphs: tuple[Graph, ...] = ()
    colocation: str = ""  # name of the group; "" = none
    devices: tuple[str, ...] = ()  # kinds of devices that can run it; () = all
    times_ns: Mapping[str, int] = field(default_factory=dict)
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A computation graph: one entry point of a model, or the body of a control-flow op."""

    name: str
    framework: str  # "tflite", "onnx", "tensorflow", "graph"
    ops: tuple[Op, ...]
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    alignment: int = 16  # bytes; every offset is a multiple of it
    # True where the runtime itself writes in place when it can (ONNX Runtime); then the
    # "before" counts it too. False where in-place happens only if the plan says so (TFLM).
    in_place_by_runtime: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """A model file that was read: its entry graphs, and what the backend needs to write it back.

    `entries[0]` is the main graph. Further entries are other signatures of the same file;
    one entry runs at a time.
    """

    framework: str
    entries: tuple[Graph, ...]
    source: object  # the frontend's own parsed form; only its backend looks inside
    system: System | None = None  # devices that the file itself describes (task graphs)

    @property
    def graph(self) -> Graph:
        """Return the main entry."""
        return self.entries[0]
