"""Where a training run writes what happened: JSON lines, and TensorBoard if it is installed."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.learning.board import Board

LOG = "metrics.jsonl"
BOARD = "tensorboard"


class Metrics:
    """Appends one row per event to a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lines = (folder / LOG).open("a")
        self._board: Board | None = None
        if find_spec("tensorboard") is not None:
            # Optional: the module imports it.
            from regal.learning.board import Board

            self._board = Board(folder / BOARD)

    def write(self, event: str, iteration: int, values: Mapping[str, float]) -> None:
        """Write the values of an event ("train", "valid"), rounded to 6 digits."""
        rounded = {name: float(f"{value:.6g}") for name, value in values.items()}
        row = {"event": event, "iteration": iteration, **rounded}
        self._lines.write(json.dumps(row) + "\n")
        self._lines.flush()
        if self._board is not None:
            tagged = {f"{event}/{name}": value for name, value in rounded.items()}
            self._board.scalars(iteration, tagged)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self._lines.close()
        if self._board is not None:
            self._board.close()
