"""The options of `regal train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regal.cli.options import add_command, add_json

if TYPE_CHECKING:
    import argparse

    from regal.cli.options import Parser


def add_train(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add `regal train CONFIG.toml`."""
    command = add_command(
        verbs, "train", "train a policy on the data set, and export it for --policy"
    )
    command.add_argument("config", type=Path, metavar="CONFIG.toml", help="docs/training.md")
    command.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FOLDER",
        help="for checkpoints, logs and the exported policy",
    )  # fmt: skip
    command.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
        help="override one value of the file, for example trainer.seed=1",
    )  # fmt: skip
    command.add_argument(
        "--resume", action="store_true",
        help="go on from the checkpoint in FOLDER, exactly as if it had not been interrupted",
    )  # fmt: skip
    add_json(command)
