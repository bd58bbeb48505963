"""Find model files of the shared corpus, which lies beside the checkout."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "corpus"
CORPUS = Path(os.environ.get("REGAL_CORPUS", BESIDE))


def corpus_file(name: str) -> Path:
    """Return the path of a corpus file such as "tflite/mlct_resnet8_int8.tflite"."""
    path = CORPUS / name
    if not path.exists():
        pytest.skip("the shared corpus is not beside this checkout")
    return path
