"""Read model files into graphs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from regal.errors import ModelError, UsageError
from regal.graph.check import require_valid_model

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Protocol

    from regal.graph.types import LoadedModel

    class Frontend(Protocol):
        """A module that reads one kind of file."""

        def load(
            self, path: Path, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]
        ) -> LoadedModel:
            """Return the model in the file at `path`, its unknown dims bound."""


SUFFIXES = {
    ".tflite": "regal.frontends.tflite",
    ".lite": "regal.frontends.tflite",
    ".onnx": "regal.frontends.onnx",
    ".textproto": "regal.frontends.onnx",
    ".prototxt": "regal.frontends.onnx",
    ".pbtxt": "regal.frontends.onnx",
    ".txtpb": "regal.frontends.onnx",
    ".json": "regal.frontends.task_graphs",
    ".stg": "regal.frontends.task_graphs",
    ".txt": "regal.frontends.task_graphs",
    ".py": "regal.frontends.task_graphs",
    ".hlo": "regal.frontends.task_graphs",
}


def require_ending(path: Path, like: Path) -> None:
    """Raise unless `path` may be the name of a file of the same kind as `like`.

    Endings that stand for no kind of model are free.

    Raises:
        UsageError: names both files.
    """
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is not None and kind != SUFFIXES.get(like.suffix.lower(), kind):
        raise UsageError(
            f"'{path}' has the ending of another kind of file than '{like}': expected {like.suffix}"
        )


def load(
    path: Path,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> LoadedModel:
    """Return the checked model in the file at `path`.

    Args:
        path: a .tflite, .onnx (or ONNX text), graph .json or task graph file.
        shapes: input name -> shape, for inputs whose file shape is not fixed.
        dims: symbolic dimension name -> size.

    Raises:
        ModelError: the file is missing, broken, of an unknown kind, or not supported.
    """
    try:
        if not path.exists():
            raise ModelError(f"model file '{path}' does not exist")
        if not path.is_file():
            raise ModelError(f"model '{path}' is not a file")
    except OSError as error:
        raise ModelError(f"model file '{path}' cannot be read: {error.strerror}") from None
    try:
        name = _module_of(path)
        if name is None:
            known = ", ".join(SUFFIXES)
            raise ModelError(f"model file '{path}' has an unknown ending; known: {known}")
        frontend = cast("Frontend", import_module(name))
        return require_valid_model(frontend.load(path, shapes or {}, dims or {}))
    except OSError as error:
        raise ModelError(f"model file '{path}' cannot be read: {error.strerror}") from None


def _module_of(path: Path) -> str | None:
    """Return the module that reads a file: by its ending, and its content where kinds share one."""
    from regal.frontends.task_graphs.sniff import holds_task_graph

    if holds_task_graph(path):
        return "regal.frontends.task_graphs"
    return SUFFIXES.get(path.suffix.lower())
