"""Write output files whole or not at all, and never over an input."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from regal.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def require_writable(out: Path, *, inputs: Iterable[Path], force: bool) -> None:
    """Raise unless `out` may be written: its folder exists, it is no input, and is new.

    Raises:
        UsageError: says which rule is broken.
    """
    if not out.parent.is_dir():
        raise UsageError(f"output folder '{out.parent}' does not exist")
    if out.is_dir():
        raise UsageError(f"output '{out}' is a folder, expected a file name")
    for path in inputs:
        if path.exists() and out.exists() and path.samefile(out):
            raise UsageError(f"output '{out}' is the input; an input is never overwritten")
    if out.exists() and not force:
        raise UsageError(f"output '{out}' exists; pass --force to replace it")


def write_all(
    files: Mapping[str, bytes], out: Path, *, inputs: Iterable[Path], force: bool
) -> None:
    """Write a model and what lies beside it: name "" is `out`, other names are its neighbors.

    A neighbor that exists with the same bytes is left alone: a model that is written beside its
    original shares the external data.

    Raises:
        UsageError: a neighbor exists with other bytes and `force` is off.
    """
    inputs = tuple(inputs)
    for name, data in files.items():
        path = out.with_name(name) if name else out
        if name and path.is_file() and path.read_bytes() == data:
            continue
        if name:
            require_writable(path, inputs=inputs, force=force)
        write_atomically(path, data)


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
        os.unlink(name)
        raise UsageError(f"output '{path}' cannot be written: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
