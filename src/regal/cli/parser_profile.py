"""The options of `regal profile` and `regal validate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regal.cli.options import (
    add_command,
    add_json,
    add_model,
    add_output,
    checked,
    parse_count,
)
from regal.units import parse_seconds, parse_seed

if TYPE_CHECKING:
    import argparse

    from regal.cli.options import Parser


def add_profile(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add `regal profile`."""
    command = add_command(verbs, "profile", "measure how long each op takes on this machine")
    add_model(command)
    add_output(command, required=True, text="profile to write (.json)")
    _measuring(command, what="of the inputs")
    command.add_argument(
        "--runs", type=checked(parse_count), default=20, metavar="N",
        help="runs that count (default 20)",
    )  # fmt: skip
    command.add_argument(
        "--warmup", type=checked(parse_count), default=3, metavar="N",
        help="runs before those (default 3)",
    )  # fmt: skip
    command.add_argument(
        "--threads", type=checked(parse_count), default=1, metavar="N",
        help="threads within an op (default 1)",
    )  # fmt: skip
    add_json(command)


def add_validate(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add `regal validate`."""
    command = add_command(
        verbs, "validate", "execute plans for real and compare with what was predicted"
    )
    add_model(command)
    command.add_argument(
        "--devices", default="1", help="what to predict for: see regal optimize (default 1)"
    )
    command.add_argument(
        "--profile", action="append", default=[], type=Path, metavar="FILE.json",
        help="predict with these measured op times; later files come first",
    )  # fmt: skip
    command.add_argument(
        "--plans", type=checked(parse_count), default=8, metavar="N",
        help="different plans to execute (default 8)",
    )  # fmt: skip
    command.add_argument(
        "--repeats", type=checked(parse_count), default=4, metavar="N",
        help="further runs of the first plan: the noise floor (default 4)",
    )  # fmt: skip
    command.add_argument(
        "--invocations", type=checked(parse_count), default=6, metavar="N",
        help="invocations per plan (default 6)",
    )  # fmt: skip
    _measuring(command, what="of plans and inputs")
    add_json(command)


def _measuring(command: Parser, what: str) -> None:
    command.add_argument("--seed", type=checked(parse_seed), default=0, help=f"{what} (default 0)")
    command.add_argument(
        "--timeout", type=checked(parse_seconds), default=300.0, metavar="5m",
        help="limit for each child process (default 5m)",
    )  # fmt: skip
