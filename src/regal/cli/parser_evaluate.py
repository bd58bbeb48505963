"""The options of `regal evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regal.cli.options import add_command, add_json, checked, parse_count

if TYPE_CHECKING:
    import argparse

    from regal.cli.options import Parser

RESULTS = Path("benchmarks/results")
PAGE = Path("docs/results.md")


def add_evaluate(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add `regal evaluate`."""
    command = add_command(
        verbs, "evaluate", "run methods on many graphs side by side, and make tables of the rows"
    )
    command.add_argument(
        "suite", nargs="?", metavar="SUITE",
        help="a suite that ships or a TOML file, docs/evaluate.md; with --table: only its tables",
    )  # fmt: skip
    command.add_argument(
        "--results", type=Path, default=RESULTS, metavar="FOLDER",
        help=f"rows are kept in FOLDER/NAME.jsonl; what is there is not run again"
        f" (default {RESULTS})",
    )  # fmt: skip
    command.add_argument(
        "--workers", type=checked(parse_count), default=1, metavar="N",
        help="processes that run methods (default 1)",
    )  # fmt: skip
    command.add_argument("--retry", action="store_true", help="run again what failed before")
    command.add_argument(
        "--set", type=Path, metavar="FOLDER",
        help="folder of a data set that was built (default: the one that ships)",
    )  # fmt: skip
    command.add_argument(
        "--files", action="append", default=[], type=Path, metavar="FOLDER",
        help="where files are that a suite names (default: here); may be given more than once",
    )  # fmt: skip
    command.add_argument(
        "--policies", action="append", default=[], type=Path, metavar="FOLDER",
        help="where policies are that a suite names NAME.onnx; may be given more than once",
    )  # fmt: skip
    command.add_argument(
        "--pack", action="store_true", help="pack the rows of the suite, FOLDER/NAME.jsonl.gz"
    )
    command.add_argument(
        "--plots", type=Path, metavar="FOLDER", help="also write curves and gains as SVG"
    )
    command.add_argument(
        "--table", action="store_true",
        help="run nothing: write the tables of the rows into a page, between its markers",
    )  # fmt: skip
    command.add_argument(
        "--page", type=Path, default=PAGE, metavar="FILE.md", help=f"for --table (default {PAGE})"
    )
    command.add_argument("--list", action="store_true", help="print the suites that ship")
    add_json(command)
