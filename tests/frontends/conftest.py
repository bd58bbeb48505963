"""Fixtures of the frontends' tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frontends.tensorflow_models import Loader, Reader


@pytest.fixture(scope="session")
def reader() -> Iterator[Reader]:
    """Yield the one TensorFlow process of the session."""
    found = Reader()
    yield found
    found.close()


@pytest.fixture
def loader(reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loader:
    """Return something that loads TensorFlow graphs without starting a process each time."""
    monkeypatch.setattr("regal.frontends.tensorflow.loading.native_tensorflow", reader.shared)
    return Loader(tmp_path, reader.models)
