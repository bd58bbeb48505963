"""Parse the command line and map errors to exit codes; the work is in `commands`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from regal import __version__
from regal.errors import RegalError, UsageError
from regal.search.devices.objectives import Weights
from regal.units import parse_bytes, parse_seconds, parse_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

EPILOG = (
    "Results go to stdout (--json: one JSON object), progress to stderr. "
    "Exit 0: done and checked; 1: ran, but nothing fits or verification failed; "
    "2: wrong use or bad input."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        arguments = build_parser().parse_args(argv)
        commands = import_module("regal.cli.commands")
        code: int = getattr(commands, arguments.verb)(arguments)
        sys.stdout.flush()
        return code
    except RegalError as error:
        print(f"regal: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("regal: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output is gone (`regal ... | head`): nothing is left to say.
        sys.stderr.close()
        return 1
    except OSError as error:
        # Printing failed (a full disk behind `>`), or a folder for temporary files.
        what = f"'{error.filename}': " if error.filename else ""
        print(f"regal: error: {what}{error.strerror or error}", file=sys.stderr)
        _drop_output()
        return 2


def _drop_output() -> None:
    """Send what is left of stdout nowhere: Python would fail again when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Raise the error instead of printing the usage.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{message}; see {self.prog} --help")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; docs/cli.md is generated from it."""
    parser = Parser(
        prog="regal",
        description="Plan how a neural-network graph executes: less peak memory, "
        "checked, applied to the model, and verified in the real runtime.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"regal {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND", title="commands")
    for add in (
        _optimize,
        _inspect,
        _convert,
        _apply,
        _verify,
        _check,
        _compare,
        _allocate,
    ):
        add(verbs)
    return parser


def _optimize(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = _command(verbs, "optimize", "find, check, apply and verify a plan")
    _model(command)
    _output(command, required=False, text="write the applied model here")
    _devices(command)
    command.add_argument(
        "--method", default="regal", help="search method; regal compare lists them"
    )
    _search(command)
    command.add_argument(
        "--capacity", type=_value(parse_bytes), metavar="BYTES",
        help="arena that must not be exceeded (262144, 256K); exit 1 when no plan fits",
    )  # fmt: skip
    command.add_argument(
        "--ort-level",
        choices=["none", "basic", "extended"],
        default="none",
        help="ONNX: let ONNX Runtime optimize the model first, then plan (default none)",
    )
    command.add_argument("--plan", type=Path, metavar="FILE.json", help="also write the plan here")
    command.add_argument(
        "--report", type=Path, metavar="FILE.html", help="also write a page that shows the plan"
    )
    command.add_argument(
        "--trace", type=Path, metavar="FILE.json", help="also write a Chrome/Perfetto trace"
    )
    command.add_argument(
        "--header", type=Path, metavar="FILE.h",
        help="also write the plan as a C header (TFLite Micro)",
    )  # fmt: skip
    command.add_argument(
        "--in-place", action=argparse.BooleanOptionalAction, default=True,
        help="TFLite: ops may write over an input that dies; off for tuned kernels that "
        "do not survive it (verified here with the reference kernels)",
    )  # fmt: skip
    command.add_argument(
        "--sub-buffers", action=argparse.BooleanOptionalAction, default=True,
        help="TFLite: parts of concatenations and slices may lie inside the whole",
    )  # fmt: skip
    command.add_argument(
        "--verify", action=argparse.BooleanOptionalAction, default=True,
        help="run both models in the real runtime",
    )  # fmt: skip
    _json(command)


def _inspect(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = _command(verbs, "inspect", "say what the peak is made of and what could lower it")
    _model(command)
    _json(command)


def _convert(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = _command(verbs, "convert", "write the graph as JSON; every command reads it back")
    _model(command)
    _output(command, required=True, text="graph file to write (.json)")
    command.add_argument("--text", action="store_true", help="write the readable text form instead")
    _json(command)


def _apply(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = _command(verbs, "apply", "write the model with a plan in it")
    _model(command)
    command.add_argument("plan", type=Path, metavar="PLAN.json", help="plan file")
    _output(command, required=True, text="model to write")
    _json(command)


def _verify(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = _command(verbs, "verify", "run two models in the real runtime and compare outputs")
    _model(command)
    command.add_argument("optimized", type=Path, metavar="OUT", help="the other model")
    command.add_argument(
        "--seed", type=_value(parse_seed), default=0, help="of the inputs (default 0)"
    )
    command.add_argument(
        "--invocations", type=_value(_count), default=20, metavar="N",
        help="runs with new inputs, state carried over (default 20)",
    )  # fmt: skip
    _json(command)


def _check(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = _command(verbs, "check", "judge a plan with the independent checker")
    _model(command)
    command.add_argument("plan", type=Path, metavar="PLAN.json", help="plan file")
    _json(command)


def _compare(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = _command(verbs, "compare", "run all methods side by side")
    _model(command)
    _devices(command)
    command.add_argument("--methods", metavar="A,B,...", help="only these methods")
    _search(command)
    _json(command)


def _allocate(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = _command(verbs, "allocate", "assign offsets to buffers (minimalloc's CSV)")
    command.add_argument("file", type=Path, metavar="FILE.csv", help="id,lower,upper,size[,...]")
    command.add_argument(
        "--capacity", type=_value(parse_bytes), metavar="BYTES",
        help="decide whether the buffers fit; without it, minimize",
    )  # fmt: skip
    _output(command, required=False, text="CSV with an offset column to write")
    command.add_argument(
        "--seed", type=_value(parse_seed), default=0, help="of every random choice (default 0)"
    )
    command.add_argument("--time", type=_value(parse_seconds), metavar="10s", help="time limit")
    _json(command)


def _command(verbs: argparse._SubParsersAction[Parser], name: str, text: str) -> Parser:
    return verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")


def _model(command: Parser) -> None:
    command.add_argument(
        "model", type=Path, metavar="MODEL", help=".tflite, .onnx or graph .json file"
    )
    command.add_argument(
        "--shape", action="append", default=[], type=_value(_shape), metavar="NAME=DIMS",
        help="bind the shape of an input, for example input=1,3,224,224",
    )  # fmt: skip
    command.add_argument(
        "--dim", action="append", default=[], type=_value(_dim), metavar="NAME=N",
        help="bind a symbolic dimension, for example N=1",
    )  # fmt: skip


def _devices(command: Parser) -> None:
    command.add_argument(
        "--objective", choices=["memory", "time", "balanced"], default="memory",
        help="what to lower: the largest peak of a device, the running time, or both "
        "(default memory; on one device it is always memory)",
    )  # fmt: skip
    command.add_argument(
        "--weights", type=_value(_weights), default="time=1,memory=1", metavar="time=W,memory=W",
        help="of the objective balanced (default time=1,memory=1)",
    )  # fmt: skip
    command.add_argument(
        "--devices", metavar="N|PRESET|FILE.toml",
        help="a number of equal devices, a preset, or a TOML file (default: one, or what the "
        "file describes); docs/devices.md",
    )  # fmt: skip
    command.add_argument(
        "--profile", action="append", default=[], type=Path, metavar="FILE.json",
        help="measured op times (regal profile) that override the cost model",
    )  # fmt: skip


def _output(command: Parser, *, required: bool, text: str) -> None:
    command.add_argument("-o", "--out", type=Path, required=required, metavar="OUT", help=text)
    command.add_argument("--force", action="store_true", help="replace OUT if it exists")


def _search(command: Parser) -> None:
    command.add_argument(
        "--evaluations", type=_value(_count), metavar="N",
        help="search budget in simulated plans; the reproducible one",
    )  # fmt: skip
    command.add_argument(
        "--time", type=_value(parse_seconds), metavar="10s", help="search budget in time"
    )
    command.add_argument(
        "--seed", type=_value(parse_seed), default=0, help="of every random choice (default 0)"
    )
    command.add_argument(
        "--threads", type=_value(_count), default=1, metavar="N",
        help="changes the speed, never the result (default 1)",
    )  # fmt: skip


def _json(command: Parser) -> None:
    command.add_argument("--json", action="store_true", help="print exactly one JSON object")


def _value(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return `parse` with its error turned into one that argparse prints with the option."""

    def checked(text: str) -> T:
        try:
            return parse(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


def _count(text: str) -> int:
    if not _is_number(text) or not 0 < int(text) < 1 << 31:
        raise UsageError(f"'{text}' is not a whole number above 0")
    return int(text)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, _, dims = text.rpartition("=")
    parts = [part.strip() for part in dims.split(",")] if dims else []
    if not name or not all(_is_number(part) for part in parts):
        raise UsageError(f"'{text}' is not NAME=DIMS; write for example input=1,3,224,224")
    return name, tuple(int(part) for part in parts)


def _dim(text: str) -> tuple[str, int]:
    name, _, size = text.rpartition("=")
    if not name or not _is_number(size):
        raise UsageError(f"'{text}' is not NAME=N; write for example batch=1")
    return name, int(size)


def _weights(text: str) -> Weights:
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name.strip() not in ("time", "memory") or name.strip() in found:
            raise UsageError(f"'{text}' is not time=W,memory=W; write for example time=2,memory=1")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise UsageError(f"'{text}': '{value}' is not a number") from None
    return Weights(**found)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
