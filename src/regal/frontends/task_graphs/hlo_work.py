"""How much an HLO instruction computes, and what memory its loops need."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regal.frontends.task_graphs.hlo import Computation, Instruction, Module

MOST_LEVELS = 64  # of computations that call computations

# They move or describe data, or only start and end what others do.
WITHOUT_FLOPS = frozenset({
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "copy", "broadcast",
    "reshape", "transpose", "slice", "dynamic-slice", "dynamic-update-slice", "concatenate",
    "gather", "pad", "iota", "reverse", "copy-start", "copy-done", "after-all", "infeed",
    "outfeed", "send", "send-done", "recv", "recv-done", "domain", "partition-id", "replica-id",
    "all-gather", "all-to-all", "collective-permute", "optimization-barrier", "convert",
    "bitcast-convert", "rng-get-and-update-state", "custom-call",
})  # fmt: skip
RUNS_ITS_CALLS = frozenset({"fusion", "call", "while", "conditional", "async-start"})


class Work:
    """What the instructions of a module compute; each called computation is looked at once."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._flops: dict[str, int] = {}
        self._bytes: dict[str, int] = {}

    def flops(self, computation: Computation, instruction: Instruction, level: int = 0) -> int:
        """Return the operations of an instruction: two per multiplication and addition.

        Loops count once, since their number of turns is not in the file. What calls a
        computation for each element (a reduction, a sort) counts one operation per element read.
        """
        if instruction.opcode in RUNS_ITS_CALLS:
            return sum(self._flops_inside(called, level) for called in instruction.calls)
        if instruction.opcode in WITHOUT_FLOPS:
            return 0
        shapes = computation.shapes
        read = [shapes[operand] for operand in instruction.operands if operand in shapes]
        made = instruction.shape.elements
        if instruction.opcode == "dot" and read:
            sizes = read[0].dimensions
            return 2 * made * prod(sizes[i] for i in instruction.contracted if i < len(sizes))
        if instruction.opcode == "convolution" and len(read) == 2:
            kernel = read[1].dimensions
            outputs = kernel[instruction.features] if instruction.features < len(kernel) else 1
            return 2 * made * prod(kernel) // max(1, outputs)
        if instruction.opcode == "reduce-window":
            return made * instruction.window
        if instruction.calls and read:
            return max(made, read[0].elements)
        return made

    def temporary_bytes(self, instruction: Instruction, level: int = 0) -> int:
        """Return the most bytes alive inside of what an instruction runs, in file order.

        What it is given is not counted: it is alive outside. Inside of fusions nothing is.
        """
        if instruction.opcode not in RUNS_ITS_CALLS or instruction.opcode == "fusion":
            return 0
        return max((self._bytes_inside(called, level) for called in instruction.calls), default=0)

    def _flops_inside(self, called: str, level: int) -> int:
        computation = self._module.computations.get(called)
        if computation is None or level > MOST_LEVELS:
            return 0
        if called not in self._flops:
            self._flops[called] = 0  # what calls itself adds nothing
            self._flops[called] = sum(
                self.flops(computation, inner, level + 1) for inner in computation.instructions
            )
        return self._flops[called]

    def _bytes_inside(self, called: str, level: int) -> int:
        computation = self._module.computations.get(called)
        if computation is None or level > MOST_LEVELS:
            return 0
        if called not in self._bytes:
            self._bytes[called] = 0
            self._bytes[called] = self._peak(computation, level)
        return self._bytes[called]

    def _peak(self, computation: Computation, level: int) -> int:
        last: dict[str, int] = {}
        for step, instruction in enumerate(computation.instructions):
            for operand in (*instruction.operands, instruction.name):
                last[operand] = step
        ending: dict[int, int] = {}  # step -> bytes that are free after it
        live = most = 0
        for step, instruction in enumerate(computation.instructions):
            if instruction.opcode not in ("parameter", "constant", "tuple", "get-tuple-element"):
                size = instruction.shape.bytes
                live += size
                end = last[instruction.name]
                ending[end] = ending.get(end, 0) + size
            most = max(most, live + self.temporary_bytes(instruction, level + 1))
            live -= ending.pop(step, 0)
        return most
