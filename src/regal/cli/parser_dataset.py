"""The options of `regal dataset`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regal.cli.options import add_command, add_json, add_output, checked, parse_count

if TYPE_CHECKING:
    import argparse

    from regal.cli.options import Parser


def add_dataset(verbs: argparse._SubParsersAction[Parser]) -> None:
    """Add `regal dataset build|info|list|get|split`."""
    command = add_command(verbs, "dataset", "the data set of real graphs: build it, look at it")
    actions = command.add_subparsers(
        dest="action",
        required=True,
        metavar="ACTION",
        title="actions",
        help="what to do with it",
        parser_class=type(command),
    )
    _build(actions)
    _info(actions)
    _list(actions)
    _get(actions)
    _split(actions)


def _build(actions: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(
        actions, "build", "trace architectures into graphs, and make a set of them"
    )
    command.add_argument(
        "folder", type=Path, metavar="FOLDER",
        help="where graphs and log are kept; a build that was stopped goes on from there",
    )  # fmt: skip
    command.add_argument(
        "--sources", metavar="A,B,...",
        help="only these, for example torch/timm,jax/flax (default: all that are installed)",
    )  # fmt: skip
    command.add_argument(
        "--only", metavar="TEXT", help="only items whose key contains this text"
    )  # fmt: skip
    command.add_argument(
        "--batch", type=checked(parse_count), metavar="N",
        help="trace at this batch size (default: 1 for inference, 4 or 8 for training)",
    )  # fmt: skip
    command.add_argument(
        "--most", type=checked(parse_count), metavar="N",
        help="stop after the first N items; families take turns",
    )  # fmt: skip
    command.add_argument(
        "--workers", type=checked(parse_count), default=1, metavar="N",
        help="processes that trace (default 1)",
    )  # fmt: skip
    command.add_argument(
        "--retry", action="store_true", help="trace again what failed before"
    )  # fmt: skip
    add_json(command)


def _info(actions: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(actions, "info", "print counts and histograms")
    _set(command)
    command.add_argument(
        "--plots", type=Path, metavar="FOLDER", help="also write the histograms as SVG"
    )
    add_json(command)


def _list(actions: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(actions, "list", "print the keys of the graphs, one a line")
    _set(command)
    command.add_argument(
        "--split", choices=["train", "valid", "test", "transfer"], help="only this side"
    )  # fmt: skip
    command.add_argument(
        "--only", metavar="TEXT", help="only graphs whose key or family contains this text"
    )
    add_json(command)


def _get(actions: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(
        actions, "get", "write a graph as a graph file, which all other commands read"
    )
    command.add_argument(
        "key", metavar="KEY", help="for example torch/torchvision/resnet18/inference-b1"
    )
    _set(command)
    add_output(command, required=True, text="write the graph file here (.json)")
    add_json(command)


def _split(actions: argparse._SubParsersAction[Parser]) -> None:
    command = add_command(actions, "split", "print the sides of the split, and prove it clean")
    _set(command)
    add_json(command)


def _set(command: Parser) -> None:
    command.add_argument(
        "--set", type=Path, metavar="FOLDER",
        help="folder of a set that was built (default: the one that ships)",
    )  # fmt: skip
