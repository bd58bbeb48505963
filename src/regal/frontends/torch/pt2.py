"""Files of torch.export (.pt2) -> LoadedModel. PyTorch is imported when the first one is read."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, is_zipfile

from regal.errors import ModelError, UsageError
from regal.graph.types import LoadedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import torch

# Loggers that PyTorch tells why a file cannot be read.
LOGS = ("torch.export", "torch._export.serde.serialize")


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchSource:
    """A program as read, and the numbers that its symbolic sizes stand for."""

    path: Path
    program: torch.export.ExportedProgram
    sizes: Mapping[str, int]


def load(path: Path, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]) -> LoadedModel:
    """Return the program in a file of `torch.export.save`.

    Symbolic sizes are those of the example that was exported, unless `shapes` (of inputs) or
    `dims` (of symbols) say otherwise.

    Raises:
        ModelError: PyTorch is missing, or the file is none that it reads.
        UsageError: `shapes` or `dims` name something that the program does not have, or sizes
            that it does not allow.
    """
    program = read_program(path)
    from regal.frontends.torch.trace import program_graph

    sizes = bound_sizes(program, shapes, dims)
    graph = program_graph(program, path.stem, number_of=number_with(sizes))
    source = TorchSource(path=path, program=program, sizes=sizes)
    return LoadedModel(framework="torch", entries=(graph,), source=source)


def read_program(path: Path) -> torch.export.ExportedProgram:
    """Return the program in a file.

    Raises:
        ModelError: PyTorch is missing, or the file is none that it reads.
    """
    try:
        import torch
    except ImportError:
        raise ModelError(
            f"'{path}' is a PyTorch program, and torch is not installed: install regal[torch]"
        ) from None
    from torch._export.verifier import SpecViolationError

    if not is_zipfile(path):
        raise ModelError(f"'{path}' is no archive: expected a file of torch.export.save")
    # What PyTorch raises on files that are broken, older, or something else.
    refusals = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, EOFError)
    others = (BadZipFile, ImportError, AssertionError, UnpicklingError, ArithmeticError)
    told = _Told()
    logs = [logging.getLogger(name) for name in LOGS]
    for log in logs:
        log.addFilter(told)
    try:
        return torch.export.load(path)
    except (*refusals, *others, SpecViolationError) as error:
        reason = _first_line(told.cause or error)
        raise ModelError(f"PyTorch cannot read '{path}': {reason}") from None
    finally:
        for log in logs:
            log.removeFilter(told)


def bound_sizes(
    program: torch.export.ExportedProgram,
    shapes: Mapping[str, tuple[int, ...]],
    dims: Mapping[str, int],
) -> dict[str, int]:
    """Return symbol -> size, for the symbols that `shapes` and `dims` fix.

    Raises:
        UsageError: a name is unknown, or a size is outside the range that was exported.
    """
    import torch

    inputs = {
        node.name: node.meta["val"]
        for node in program.graph.nodes
        if node.op == "placeholder" and node.name in program.graph_signature.user_inputs
    }
    ranges = {str(symbol): limits for symbol, limits in program.range_constraints.items()}
    _require_known("dimension", dims, ranges)
    _require_known("input", shapes, inputs)
    sizes = dict(dims)
    for name, shape in shapes.items():
        value = inputs[name]
        if not isinstance(value, torch.Tensor) or len(shape) != value.dim():
            raise UsageError(f"input '{name}' has no {len(shape)} dimensions: it is {value}")
        for axis, (size, wanted) in enumerate(zip(value.shape, shape, strict=True)):
            symbol = str(size)
            if symbol in ranges:
                sizes.setdefault(symbol, wanted)
            if (sizes[symbol] if symbol in ranges else size) != wanted:
                raise UsageError(
                    f"input '{name}': dimension {axis} is {sizes.get(symbol, size)}, not {wanted}"
                )
    for symbol, size in sizes.items():
        if not ranges[symbol].lower <= size <= ranges[symbol].upper:
            raise UsageError(
                f"dimension '{symbol}' is {size}; the program was exported for"
                f" {ranges[symbol].lower} to {ranges[symbol].upper}"
            )
    return sizes


def number_with(sizes: Mapping[str, int]) -> Callable[[Any], int]:
    """Return a function from a size to its number; symbols not in `sizes` are as exported."""

    def number_of(size: Any) -> int:
        if type(size) is int:
            return size
        from torch.fx.experimental.symbolic_shapes import optimization_hint

        expression = size.node.expr
        known = {s: sizes[str(s)] for s in expression.free_symbols if str(s) in sizes}
        rest = expression.free_symbols - set(known)
        if rest and not known:
            return int(optimization_hint(size, fallback=1))
        environment = size.node.shape_env
        known |= {s: environment.optimization_hint(s, fallback=1) for s in rest}
        return int(expression.subs(known))

    return number_of


def _require_known(what: str, given: Mapping[str, object], known: Mapping[str, object]) -> None:
    for name in given:
        if name not in known:
            raise UsageError(
                f"the program has no {what} '{name}'; it has: {', '.join(known) or 'none'}"
            )


class _Told(logging.Filter):
    """Keeps what PyTorch logs, a traceback, before it raises an error that says to look there."""

    def __init__(self) -> None:
        super().__init__()
        self.cause: BaseException | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False: the record is not shown."""
        error = record.exc_info[1] if record.exc_info else None
        while error is not None:
            self.cause, error = error, error.__cause__
        return False


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
