"""HLO modules, whatever form they were read from, and their entry computation as a graph."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.task_graphs.fields import MOST_BYTES
from regal.frontends.task_graphs.hlo_work import Work
from regal.frontends.task_graphs.tasks import TaskGraph

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.graph.types import Graph

BITS = {
    "pred": 8, "s1": 1, "s2": 2, "s4": 4, "s8": 8, "s16": 16, "s32": 32, "s64": 64,
    "u1": 1, "u2": 2, "u4": 4, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
    "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128,
    "f8e5m2": 8, "f8e4m3": 8, "f8e4m3fn": 8, "f8e4m3b11fnuz": 8, "f8e3m4": 8,
    "f8e5m2fnuz": 8, "f8e4m3fnuz": 8, "f4e2m1fn": 4, "f8e8m0fnu": 8,
    "token": 0, "opaque": 0,
}  # fmt: skip

# They name values anew: what they make is what they read.
RENAMING = frozenset({"tuple", "get-tuple-element", "optimization-barrier", "bitcast"})


@dataclass(frozen=True, slots=True)
class Shape:
    """An array, or a tuple of shapes: then `parts` is not None."""

    dtype: str
    dimensions: tuple[int, ...] = ()
    parts: tuple[Shape, ...] | None = None

    @property
    def leaves(self) -> tuple[Shape, ...]:
        """Return the arrays of a tuple, depth first."""
        if self.parts is None:
            return (self,)
        return tuple(leaf for part in self.parts for leaf in part.leaves)

    @property
    def elements(self) -> int:
        """Return the elements of all arrays."""
        return sum(prod(leaf.dimensions) for leaf in self.leaves)

    @property
    def bytes(self) -> int:
        """Return the bytes of all arrays, each rounded up."""
        return sum(-(-prod(leaf.dimensions) * BITS[leaf.dtype] // 8) for leaf in self.leaves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction; operands and computations by name."""

    name: str
    opcode: str
    shape: Shape
    operands: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()  # control predecessors
    calls: tuple[str, ...] = ()
    index: int = 0  # of a get-tuple-element, or the number of a parameter
    contracted: tuple[int, ...] = ()  # dimensions of the first operand that a dot sums over
    window: int = 1  # elements of the window of a convolution or pooling
    features: int = 0  # dimension of the output features in the kernel of a convolution


@dataclass(frozen=True, slots=True, kw_only=True)
class Computation:
    """Instructions, operands first."""

    name: str
    instructions: tuple[Instruction, ...]
    root: str
    shapes: Mapping[str, Shape]  # of each instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """All computations of a program."""

    name: str
    computations: Mapping[str, Computation]
    entry: str


def computation_of(name: str, instructions: Sequence[Instruction], root: str) -> Computation:
    """Return a computation; its instructions come operands first."""
    return Computation(
        name=name,
        instructions=tuple(instructions),
        root=root,
        shapes={instruction.name: instruction.shape for instruction in instructions},
    )


def graph_of(module: Module, name: str) -> Graph:
    """Return the entry computation as a graph: one op per instruction that does something.

    Parameters of the entry are its inputs, constants are constants, tuples and bitcasts are
    other names of what they read. The work of an op is that of the computations that it calls.

    Raises:
        ModelError: names the instruction.
    """
    entry = module.computations[module.entry]
    graph = TaskGraph(module.name)
    work = Work(module)
    values: dict[str, tuple[int, ...]] = {}  # instruction -> its leaves
    tasks: dict[str, int] = {}
    for instruction in entry.instructions:
        where = f"'{name}': instruction '{instruction.name}'"
        if instruction.shape.bytes >= MOST_BYTES:
            raise ModelError(f"{where} makes {instruction.shape.bytes} bytes; at most 2^60")
        for operand in instruction.operands:
            if operand not in values:
                raise ModelError(f"{where} reads '{operand}' before anything makes it")
        read = [value for operand in instruction.operands for value in values[operand]]
        if instruction.opcode in ("parameter", "constant"):
            values[instruction.name] = _given(graph, instruction)
        elif instruction.opcode in RENAMING:
            values[instruction.name] = _renamed(instruction, entry, values, where)
        else:
            task = tasks[instruction.name] = graph.task(
                instruction.name,
                instruction.opcode,
                flops=min(work.flops(entry, instruction), MOST_BYTES),
                workspace_bytes=min(work.temporary_bytes(instruction), MOST_BYTES),
            )
            for value in read:
                graph.read(task, value)
            values[instruction.name] = _made(graph, task, instruction)
    for instruction in entry.instructions:
        for earlier in instruction.waits:
            if earlier in tasks and instruction.name in tasks:
                graph.wait(tasks[instruction.name], tasks[earlier])
    for value in values.get(entry.root, ()):
        graph.keep(value)
    return graph.model().graph


def _given(graph: TaskGraph, instruction: Instruction) -> tuple[int, ...]:
    leaves = instruction.shape.leaves
    add = graph.input if instruction.opcode == "parameter" else graph.constant
    return tuple(
        add(_leaf_name(instruction, i), leaf.bytes, shape=leaf.dimensions, dtype=leaf.dtype)
        for i, leaf in enumerate(leaves)
    )


def _made(graph: TaskGraph, task: int, instruction: Instruction) -> tuple[int, ...]:
    return tuple(
        graph.value(
            task,
            leaf.bytes,
            name=_leaf_name(instruction, i),
            shape=leaf.dimensions,
            dtype=leaf.dtype,
        )
        for i, leaf in enumerate(instruction.shape.leaves)
    )


def _leaf_name(instruction: Instruction, leaf: int) -> str:
    is_array = instruction.shape.parts is None
    return instruction.name if is_array else f"{instruction.name}{{{leaf}}}"


def _renamed(
    instruction: Instruction,
    entry: Computation,
    values: Mapping[str, tuple[int, ...]],
    where: str,
) -> tuple[int, ...]:
    """Return the leaves that an instruction picks from what it reads."""
    read = tuple(value for operand in instruction.operands for value in values[operand])
    if instruction.opcode != "get-tuple-element":
        return read
    parts = entry.shapes[instruction.operands[0]].parts if instruction.operands else None
    if parts is None or not 0 <= instruction.index < len(parts):
        raise ModelError(f"{where} takes part {instruction.index} of what is no such tuple")
    first = sum(len(part.leaves) for part in parts[: instruction.index])
    return read[first : first + len(parts[instruction.index].leaves)]
