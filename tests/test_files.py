"""Output files are written whole or not at all, and never over an input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from regal.errors import UsageError
from regal.files import require_writable, write_all

if TYPE_CHECKING:
    from pathlib import Path


def test_one_neighbor_in_the_way_keeps_all_from_being_written(tmp_path: Path) -> None:
    out = tmp_path / "m.onnx"
    (tmp_path / "m.b.onnx").write_bytes(b"of the user")
    files = {"m.a.onnx": b"a", "folder/m.c.onnx": b"c", "m.b.onnx": b"b", "": b"whole"}
    with pytest.raises(UsageError, match=r"output '.*m\.b\.onnx' exists; pass --force"):
        write_all(files, out, inputs=[], force=False)
    assert [path.name for path in tmp_path.iterdir()] == ["m.b.onnx"]
    write_all(files, out, inputs=[], force=True)
    assert {name: (tmp_path / (name or "m.onnx")).read_bytes() for name in files} == files


def test_what_lies_in_a_folder_that_is_an_input_is_never_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    (folder / "variables").mkdir(parents=True)
    (folder / "variables" / "index").write_bytes(b"")
    for out in (folder / "variables" / "index", tmp_path / "saved" / ".." / "saved" / "variables"):
        with pytest.raises(UsageError, match=r"an input is never overwritten|is a folder"):
            require_writable(out, inputs=[folder], force=True)
    require_writable(folder / "new", inputs=[folder], force=False)


def test_one_folder_may_be_new_but_not_two(tmp_path: Path) -> None:
    new = tmp_path / "a" / "saved_model.pb"
    require_writable(new, inputs=[], force=False, makes_folder=True)
    with pytest.raises(UsageError, match=r"output folder '.*/a' does not exist"):
        require_writable(new, inputs=[], force=False)
    with pytest.raises(UsageError, match=r"output folder '.*/a/b' does not exist"):
        require_writable(
            tmp_path / "a" / "b" / "saved_model.pb", inputs=[], force=False, makes_folder=True
        )
