"""What runs in a child process: one .pt2 program, on inputs drawn from a seed.

Usage: python -m regal.backends.torch.child RESULT.json, the request as JSON on stdin.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.export.graph_signature import InputKind
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from regal.backends.torch.tracker import MemoryTracker
from regal.backends.torch.verify import ProgramRequest, ProgramRun
from regal.errors import RegalError
from regal.files import write_atomically
from regal.frontends.torch.pt2 import bound_sizes, number_with, read_program

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def main() -> None:
    """Read the request, run it, and write the result."""
    request = ProgramRequest(**json.loads(sys.stdin.read()))
    torch.set_num_threads(1)
    result = run(request)
    write_atomically(Path(sys.argv[1]), json.dumps(asdict(result)).encode())
    sys.stdout.flush()
    os._exit(0)


def run(request: ProgramRequest) -> ProgramRun:
    """Return what PyTorch made of the request; a refusal is a result too."""
    try:
        program = read_program(Path(request.model))
        return _run(program, request)
    except (RegalError, RuntimeError, ValueError, TypeError, LookupError) as error:
        return ProgramRun(reason=" ".join(str(error).split())[:300] or type(error).__name__)


def _run(program: ExportedProgram, request: ProgramRequest) -> ProgramRun:
    shapes = {name: tuple(shape) for name, shape in request.shapes.items()}
    sizes = bound_sizes(program, shapes, request.dims)
    module = program.module()
    digests, peaks, heaps = [], [], []
    for number in range(request.invocations):
        args, kwargs = inputs_of(program, sizes, request.seed + number)
        torch.manual_seed(request.seed + number)
        tracker, heap = MemoryTracker(), _heap_meter()
        with torch.no_grad():
            if number % 2 and heap is not None:  # the tracker itself takes heap
                before = heap()
                outputs = module(*args, **kwargs)
                heaps.append(heap() - before)
            else:
                with tracker:
                    outputs = module(*args, **kwargs)
                peaks.append(tracker.peak_bytes)
        state = [value for _, value in sorted(module.state_dict().items())]
        digests.append([digest(leaf) for leaf in (*tree_leaves(outputs), *state)])
    return ProgramRun(
        ran=True,
        digests=digests,
        peak_bytes=max(peaks),
        heap_peak_bytes=max(heaps[1:] or heaps, default=-1),
    )


def inputs_of(
    program: ExportedProgram, sizes: dict[str, int], seed: int
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments for a program: floats are drawn, other values are those of its example.

    Raises:
        ValueError: the file has no example, or it does not fit the sizes that were asked for.
    """
    if program.example_inputs is None:
        raise ValueError("the file holds no example inputs: whole numbers cannot be made up")
    leaves, form = tree_flatten(program.example_inputs)
    # The signature lists numbers and texts by value, not by name.
    specs = program.graph_signature.input_specs
    names = {each.arg.name for each in specs if each.kind is InputKind.USER_INPUT}
    given = [node for node in program.graph.nodes if node.name in names]
    number_of = number_with(sizes)
    generator = torch.Generator().manual_seed(seed)
    made = [_value(leaf, node.meta.get("val"), number_of, generator)
            for leaf, node in zip(leaves, given, strict=True)]  # fmt: skip
    args, kwargs = tree_unflatten(made, form)
    return args, kwargs


def _value(leaf: Any, fake: Any, number_of: Any, generator: torch.Generator) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    shape = tuple(number_of(size) for size in fake.shape)
    if leaf.is_floating_point() or leaf.is_complex():
        return torch.randn(shape, dtype=leaf.dtype, generator=generator)
    if shape == tuple(leaf.shape):
        order = torch.randperm(leaf.numel(), generator=generator)
        return leaf.flatten()[order].reshape(shape)
    if leaf.numel() == 0:
        return leaf.new_zeros(shape)
    at = torch.randint(leaf.numel(), shape, generator=generator)
    return leaf.flatten()[at]


def digest(value: object) -> str:
    """Return a digest of type, shape and every bit of an output."""
    if not isinstance(value, torch.Tensor):
        return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
    data = value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    text = f"{value.dtype}{tuple(value.shape)}"
    return hashlib.sha256(text.encode() + data).hexdigest()[:16]


def _heap_meter() -> Any:
    """Return a function that tells the live heap first and its peak since then after; or None."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "regal_heap_peak"):
        return None
    for function in (library.regal_heap_live, library.regal_heap_peak):
        function.restype = ctypes.c_int64
    calls: list[int] = []

    def tell() -> int:
        if calls:
            return int(library.regal_heap_peak())
        calls.append(1)
        library.regal_heap_reset()
        return int(library.regal_heap_live())

    return tell


if __name__ == "__main__":
    main()
