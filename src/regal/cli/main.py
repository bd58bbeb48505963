"""Parse the command line and map errors to exit codes; the work is in `commands`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from regal import __version__
from regal.cli.options import (
    Parser,
    add_command,
    add_devices,
    add_json,
    add_model,
    add_output,
    add_search,
    checked,
    parse_count,
)
from regal.cli.parser_dataset import add_dataset
from regal.cli.parser_evaluate import add_evaluate
from regal.cli.parser_profile import add_profile, add_validate
from regal.errors import RegalError
from regal.units import parse_bytes, parse_seconds, parse_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

EPILOG = (
    "Results go to stdout (--json: one JSON object), progress to stderr. "
    "Exit 0: done and checked; 1: ran, but nothing fits or verification failed; "
    "2: wrong use or bad input."
)


# Where a command is, if not among the others.
MODULES = {
    "dataset": "regal.cli.dataset",
    "evaluate": "regal.cli.evaluate",
    "profile": "regal.cli.profile",
    "validate": "regal.cli.validate",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        arguments = build_parser().parse_args(argv)
        commands = import_module(MODULES.get(arguments.verb, "regal.cli.commands"))
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
        add_profile,
        add_validate,
        add_dataset,
        add_evaluate,
    ):
        add(verbs)
    return parser


def _optimize(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(verbs, "optimize", "find, check, apply and verify a plan")
    add_model(command)
    add_output(command, required=False, text="write the applied model here")
    add_devices(command)
    command.add_argument(
        "--method", default="regal", help="search method; regal compare lists them"
    )
    add_search(command)
    command.add_argument(
        "--capacity", type=checked(parse_bytes), metavar="BYTES",
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
    add_json(command)


def _inspect(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(verbs, "inspect", "say what the peak is made of and what could lower it")
    add_model(command)
    add_json(command)


def _convert(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(verbs, "convert", "write the graph as JSON; every command reads it back")
    add_model(command)
    add_output(command, required=True, text="graph file to write (.json)")
    command.add_argument("--text", action="store_true", help="write the readable text form instead")
    add_json(command)


def _apply(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(verbs, "apply", "write the model with a plan in it")
    add_model(command)
    command.add_argument("plan", type=Path, metavar="PLAN.json", help="plan file")
    add_output(command, required=True, text="model to write")
    add_json(command)


def _verify(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(verbs, "verify", "run two models in the real runtime and compare outputs")
    add_model(command)
    command.add_argument("optimized", type=Path, metavar="OUT", help="the other model")
    command.add_argument(
        "--seed", type=checked(parse_seed), default=0, help="of the inputs (default 0)"
    )
    command.add_argument(
        "--invocations", type=checked(parse_count), default=20, metavar="N",
        help="runs with new inputs, state carried over (default 20)",
    )  # fmt: skip
    add_json(command)


def _check(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(verbs, "check", "judge a plan with the independent checker")
    add_model(command)
    command.add_argument("plan", type=Path, metavar="PLAN.json", help="plan file")
    add_json(command)


def _compare(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(verbs, "compare", "run all methods side by side")
    add_model(command)
    add_devices(command)
    command.add_argument("--methods", metavar="A,B,...", help="only these methods")
    add_search(command)
    add_json(command)


def _allocate(verbs: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(verbs, "allocate", "assign offsets to buffers (minimalloc's CSV)")
    command.add_argument("file", type=Path, metavar="FILE.csv", help="id,lower,upper,size[,...]")
    command.add_argument(
        "--capacity", type=checked(parse_bytes), metavar="BYTES",
        help="decide whether the buffers fit; without it, minimize",
    )  # fmt: skip
    add_output(command, required=False, text="CSV with an offset column to write")
    command.add_argument(
        "--seed", type=checked(parse_seed), default=0, help="of every random choice (default 0)"
    )
    command.add_argument("--time", type=checked(parse_seconds), metavar="10s", help="time limit")
    add_json(command)
