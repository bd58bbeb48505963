"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from regal.errors import UsageError
from regal.search.devices.objectives import Weights
from regal.units import parse_seconds, parse_seed

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Raise the error instead of printing the usage.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{message}; see {self.prog} --help")


def add_command(verbs: argparse._SubParsersAction[Parser], name: str, text: str) -> Parser:
    """Return the parser of a new command."""
    return verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")


def add_model(command: Parser) -> None:
    """Add MODEL, and how its unknown dimensions are bound."""
    command.add_argument(
        "model",
        type=Path,
        metavar="MODEL",
        help="TensorFlow, .onnx, .tflite, .pt2, graph .json or task-graph file",
    )  # fmt: skip
    command.add_argument(
        "--shape", action="append", default=[], type=checked(parse_shape), metavar="NAME=DIMS",
        help="bind the shape of an input, for example input=1,3,224,224",
    )  # fmt: skip
    command.add_argument(
        "--dim", action="append", default=[], type=checked(parse_dim), metavar="NAME=N",
        help="bind a symbolic dimension, for example N=1",
    )  # fmt: skip


def add_devices(command: Parser) -> None:
    """Add what a schedule is searched for, and on which devices."""
    command.add_argument(
        "--objective", choices=["memory", "time", "balanced"], default="memory",
        help="what to lower: the largest peak of a device, the running time, or both "
        "(default memory; on one device it is always memory)",
    )  # fmt: skip
    command.add_argument(
        "--weights", type=checked(parse_weights), default="time=1,memory=1",
        metavar="time=W,memory=W",
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


def add_output(command: Parser, *, required: bool, text: str) -> None:
    """Add OUT and --force."""
    command.add_argument("-o", "--out", type=Path, required=required, metavar="OUT", help=text)
    command.add_argument("--force", action="store_true", help="replace OUT if it exists")


def add_search(command: Parser) -> None:
    """Add budget, seed and threads."""
    command.add_argument(
        "--evaluations", type=checked(parse_count), metavar="N",
        help="search budget in simulated plans; the reproducible one",
    )  # fmt: skip
    command.add_argument(
        "--time", type=checked(parse_seconds), metavar="10s", help="search budget in time"
    )
    command.add_argument(
        "--seed", type=checked(parse_seed), default=0, help="of every random choice (default 0)"
    )
    command.add_argument(
        "--threads", type=checked(parse_count), default=1, metavar="N",
        help="changes the speed, never the result (default 1)",
    )  # fmt: skip
    command.add_argument(
        "--policy", default="default", metavar="none|untrained|default|FILE",
        help="what guides the methods that learn, on several devices (default: what ships)",
    )  # fmt: skip


def add_json(command: Parser) -> None:
    """Add --json."""
    command.add_argument("--json", action="store_true", help="print exactly one JSON object")


def checked(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return `parse` with its error turned into one that argparse prints with the option."""

    def parsed(text: str) -> T:
        try:
            return parse(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def parse_count(text: str) -> int:
    """Return a whole number above 0 and below 2^31."""
    if not _is_number(text) or not 0 < int(text) < 1 << 31:
        raise UsageError(f"'{text}' is not a whole number above 0 and below 2^31")
    return int(text)


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the name and the sizes of NAME=DIMS."""
    name, _, dims = text.rpartition("=")
    parts = [part.strip() for part in dims.split(",")] if dims else []
    if not name or not all(_is_number(part) for part in parts):
        raise UsageError(f"'{text}' is not NAME=DIMS; write for example input=1,3,224,224")
    return name, tuple(int(part) for part in parts)


def parse_dim(text: str) -> tuple[str, int]:
    """Return the name and the size of NAME=N."""
    name, _, size = text.rpartition("=")
    if not name or not _is_number(size):
        raise UsageError(f"'{text}' is not NAME=N; write for example batch=1")
    return name, int(size)


def parse_weights(text: str) -> Weights:
    """Return the weights of time=W,memory=W."""
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
