"""Read .keras files by letting Keras read them, in a child process."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

from regal.child import run_module
from regal.errors import ModelError
from regal.frontends.tensorflow.native import one_line, require_tensorflow
from regal.frontends.tensorflow.read import GraphFile, graph_file_of
from regal.frontends.tensorflow.schema import parse

LONGEST_RUN = 180.0  # seconds; importing Keras takes 5, a large model some more


def read_keras_file(path: Path) -> GraphFile:
    """Return the call of the model in a .keras file.

    Raises:
        BackendError: tensorflow is not installed.
        ModelError: it is no .keras file, or Keras does not read it.
    """
    require_tensorflow()
    if not zipfile.is_zipfile(path):
        raise ModelError(f"'{path}' is no .keras file: it is no zip archive")
    with tempfile.TemporaryDirectory(prefix="regal-") as folder:
        result = Path(folder, "model.meta")
        arguments = [str(path.resolve()), str(result)]
        run = run_module("regal.frontends.tensorflow.keras_child", arguments, LONGEST_RUN)
        if not result.is_file():
            said = run.stderr.strip().splitlines()
            reason = f": {one_line(said[-1])}" if said else ""
            raise ModelError(f"Keras does not read '{path}' ({run.end}{reason})")
        return graph_file_of("Keras", parse("MetaGraphDef", result.read_bytes()))
