"""Write output files whole or not at all, and never over an input."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from regal.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def read_file(path: Path, what: str) -> bytes:
    """Return the bytes of an input file; `what` names its kind in messages.

    Raises:
        UsageError: it does not exist, is a folder or device, or cannot be read.
    """
    require_file(path, what)
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{what} '{path}' cannot be read: {error.strerror}") from None


def read_text(path: Path, what: str) -> str:
    """Return the text of an input file; `what` names its kind in messages.

    Raises:
        UsageError: see `read_file`; or it is not UTF-8.
    """
    try:
        return read_file(path, what).decode()
    except UnicodeDecodeError:
        raise UsageError(f"{what} '{path}' is not UTF-8 text") from None


def require_file(path: Path, what: str) -> None:
    """Raise unless `path` is a file; `what` names its kind in messages.

    Raises:
        UsageError: it does not exist, is a folder or device, or its name cannot be looked up.
    """
    try:
        if not path.exists():
            raise UsageError(f"{what} '{path}' does not exist")
        if not path.is_file():
            raise UsageError(f"{what} '{path}' is not a file")
    except OSError as error:
        raise UsageError(f"{what} '{path}' cannot be read: {error.strerror}") from None


def require_writable(
    out: Path, *, inputs: Iterable[Path], force: bool, makes_folder: bool = False
) -> None:
    """Raise unless `out` may be written: its folder exists, it is no input, and is new.

    What lies in a folder that is an input is input, too. Devices and pipes are refused even with
    `force`: they would be replaced by a plain file. With `makes_folder` the folder may be new.

    Raises:
        UsageError: says which rule is broken.
    """
    try:
        if not (makes_folder and not out.parent.exists() and out.parent.parent.is_dir()):
            _require_writable(out, inputs, force=force)
    except OSError as error:
        raise UsageError(f"output '{out}' cannot be written: {error.strerror}") from None


def _require_writable(out: Path, inputs: Iterable[Path], *, force: bool) -> None:
    if not out.parent.is_dir():
        raise UsageError(f"output folder '{out.parent}' does not exist")
    if out.is_dir():
        raise UsageError(f"output '{out}' is a folder, expected a file name")
    if out.exists() and not out.is_file():
        raise UsageError(f"output '{out}' is a device or pipe, expected a file name")
    for path in inputs:
        if path.exists() and out.exists() and _is_of(out, path):
            raise UsageError(f"output '{out}' is the input; an input is never overwritten")
    if out.exists() and not force:
        raise UsageError(f"output '{out}' exists; pass --force to replace it")


def _is_of(out: Path, path: Path) -> bool:
    """Return whether `out` is `path`, or lies in that folder."""
    return path.samefile(out) or (path.is_dir() and path.resolve() in out.resolve().parents)


def write_all(
    files: Mapping[str, bytes], out: Path, *, inputs: Iterable[Path], force: bool
) -> None:
    """Write a model and what lies beside it: name "" is `out`, other names are its neighbors.

    Folders are made where they are missing. A neighbor that exists with the same bytes is left
    alone: a model that is written beside its original shares the external data.

    Raises:
        UsageError: a neighbor exists with other bytes and `force` is off; nothing is written then.
    """
    inputs = tuple(inputs)
    new: dict[Path, bytes] = {}
    for name, data in files.items():
        path = out.parent / name if name else out
        if name and path.is_file() and path.read_bytes() == data:
            continue
        if name and path.parent.is_dir():
            require_writable(path, inputs=inputs, force=force)
        new[path] = data
    for path, data in new.items():
        _make_folder(path.parent)
        write_atomically(path, data)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"folder '{folder}' cannot be made: {error.strerror}") from None


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to a temporary file beside `path`, then rename it.

    Raises:
        UsageError: the file system refuses; nothing half-written is left.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UsageError(f"output '{path}' cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except OSError as error:
        raise UsageError(f"output '{path}' cannot be written: {error.strerror}") from None
    finally:
        # Gone once it was renamed; still here after an error or Ctrl-C.
        Path(name).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
