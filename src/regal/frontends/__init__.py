"""Read model files into graphs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from regal.errors import ModelError, UsageError
from regal.frontends.protobuf_text import TEXT_SUFFIXES, may_be_onnx
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


TENSORFLOW = "regal.frontends.tensorflow"
ONNX = "regal.frontends.onnx"
SUFFIXES = {
    ".tflite": "regal.frontends.tflite",
    ".lite": "regal.frontends.tflite",
    ".onnx": ONNX,
    ".textproto": ONNX,
    ".prototxt": ONNX,
    ".pbtxt": ONNX,
    ".txtpb": ONNX,
    ".json": "regal.frontends.task_graphs",
    ".stg": "regal.frontends.task_graphs",
    ".txt": "regal.frontends.task_graphs",
    ".py": "regal.frontends.task_graphs",
    ".hlo": "regal.frontends.task_graphs",
    ".pb": TENSORFLOW,
    ".meta": TENSORFLOW,
    ".keras": TENSORFLOW,
    ".gz": TENSORFLOW,
    ".pt2": "regal.frontends.torch.pt2",
}


def output_file(out: Path, like: Path) -> Path:
    """Return the file that is written for a model like `like`: in a folder if that is one.

    Raises:
        UsageError: `out` has the ending of another kind of file.
    """
    require_ending(out, like)
    is_folder = holds_saved_model(like) and not _kinds(out)
    return out / "saved_model.pb" if is_folder else out


def require_ending(path: Path, like: Path) -> None:
    """Raise unless `path` may be the name of a file of the same kind as `like`.

    Endings that stand for no kind of model are free.

    Raises:
        UsageError: names both files.
    """
    kinds, wanted = _kinds(path), _kinds(like)
    if kinds and wanted and not kinds & wanted:
        raise UsageError(
            f"'{path}' has the ending of another kind of file than '{like}': expected {like.suffix}"
        )


def _kinds(path: Path) -> set[str]:
    """Return the modules that may read files with the ending of `path`; none: any may."""
    suffix = path.suffix.lower()
    if suffix in TEXT_SUFFIXES:
        return {SUFFIXES[suffix], TENSORFLOW}
    return {SUFFIXES[suffix]} if suffix in SUFFIXES else set()


def load(
    path: Path,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    dims: Mapping[str, int] | None = None,
) -> LoadedModel:
    """Return the checked model in the file at `path`.

    Args:
        path: a .tflite, .onnx, TensorFlow (.pb, .pbtxt, .meta, .keras), PyTorch (.pt2), graph
            .json or task graph file, or the folder of a SavedModel.
        shapes: input name -> shape, for inputs whose file shape is not fixed.
        dims: symbolic dimension name -> size.

    Raises:
        ModelError: the file is missing, broken, of an unknown kind, or not supported.
    """
    try:
        if not path.exists():
            raise ModelError(f"model file '{path}' does not exist")
        if not path.is_file() and not holds_saved_model(path):
            raise ModelError(f"model '{path}' is not a file")
    except OSError as error:
        raise ModelError(f"model file '{path}' cannot be read: {error.strerror}") from None
    try:
        name = _module_of(path)
        if name is None:
            if path.suffix.lower() == ".csv":
                raise ModelError(f"'{path}' is no model; regal allocate reads buffers from a .csv")
            known = ", ".join(SUFFIXES)
            raise ModelError(f"model file '{path}' has an unknown ending; known: {known}")
        frontend = cast("Frontend", import_module(name))
        return require_valid_model(frontend.load(path, shapes or {}, dims or {}))
    except OSError as error:
        raise ModelError(f"model file '{path}' cannot be read: {error.strerror}") from None


def files_beside(path: Path) -> list[Path]:
    """Return the files beside a model that hold its weights: external data of ONNX models.

    Raises:
        ModelError: the model cannot be read.
    """
    if not path.is_file() or _module_of(path) != ONNX:
        return []
    from regal.frontends.onnx.external import external_files

    return external_files(path)


def _module_of(path: Path) -> str | None:
    """Return the module that reads a file: by its ending, and its content where kinds share one.

    A folder is one that holds a SavedModel.
    """
    from regal.frontends.task_graphs.sniff import holds_task_graph

    if holds_saved_model(path):
        return TENSORFLOW
    if holds_task_graph(path):
        return "regal.frontends.task_graphs"
    if path.suffix.lower() in TEXT_SUFFIXES and not may_be_onnx(path):
        return TENSORFLOW
    return SUFFIXES.get(path.suffix.lower())


def holds_saved_model(path: Path) -> bool:
    """Return whether `path` is the folder of a SavedModel."""
    return any((path / name).is_file() for name in ("saved_model.pb", "saved_model.pbtxt"))
