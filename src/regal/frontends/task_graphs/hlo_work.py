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


def flops_of(
    module: Module, computation: Computation, instruction: Instruction, level: int = 0
) -> int:
    """Return the operations of an instruction: two per multiplication and addition of products.

    Loops count once, since their number of turns is not in the file. What calls a computation
    for each element (a reduction, a sort) counts one operation per element read.
    """
    if level > MOST_LEVELS:
        return 0
    if instruction.opcode in RUNS_ITS_CALLS:
        return sum(
            flops_of(module, module.computations[called], inner, level + 1)
            for called in instruction.calls
            if called in module.computations
            for inner in module.computations[called].instructions
        )
    if instruction.opcode in WITHOUT_FLOPS:
        return 0
    shapes = {other.name: other.shape for other in computation.instructions}
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


def temporary_bytes(module: Module, instruction: Instruction, level: int = 0) -> int:
    """Return the most bytes alive inside the computations that an instruction runs, in file order.

    What they are given is not counted: it is alive outside. Inside of fusions nothing is.
    """
    if level > MOST_LEVELS or instruction.opcode not in RUNS_ITS_CALLS - {"fusion"}:
        return 0
    return max(
        (
            _peak(module, module.computations[called], level)
            for called in instruction.calls
            if called in module.computations
        ),
        default=0,
    )


def _peak(module: Module, computation: Computation, level: int) -> int:
    last = {}
    for step, instruction in enumerate(computation.instructions):
        for operand in (*instruction.operands, instruction.name):
            last[operand] = step
    alive: dict[str, int] = {}
    most = 0
    for step, instruction in enumerate(computation.instructions):
        if instruction.opcode not in ("parameter", "constant", "tuple", "get-tuple-element"):
            alive[instruction.name] = instruction.shape.bytes
        inside = temporary_bytes(module, instruction, level + 1)
        most = max(most, sum(alive.values()) + inside)
        for name in [name for name in alive if last[name] == step]:
            del alive[name]
    return most
