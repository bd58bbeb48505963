"""What kernels take on this machine: measured once, and kept on disk."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from regal.backends.torch.kernels import target_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

log = logging.getLogger("regal.torch")

SCHEMA = "regal.torch-times/1"


@dataclass(slots=True)
class Times:
    """Times that were measured, by what was called; new ones are appended to the file."""

    path: Path | None  # None: nothing is kept
    known: dict[str, int] = field(default_factory=dict)  # key of a call -> ns
    deadline: float = 0.0  # time.monotonic() after which nothing more is measured

    def allow(self, seconds: float) -> None:
        """Measure for so long from now on, in wall time."""
        self.deadline = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """Return whether the time for measuring is spent."""
        return time.monotonic() >= self.deadline

    def add(self, key: str, ns: int) -> None:
        """Note what a call takes."""
        self.known[key] = ns
        if self.path is None:
            return
        line = json.dumps([key, ns]) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:  # one write: whole or not at all
                file.write(line)
        except OSError as error:
            log.info("times are not remembered: %s", error)
            self.path = None


def times_at(folder: Path | None) -> Times:
    """Return the times that lie in a folder for this machine, this PyTorch and its threads.

    A broken line is as good as none.

    Args:
        folder: None: nothing is read and nothing is kept.
    """
    if folder is None:
        return Times(path=None)
    path = folder / f"times-{_machine()}.jsonl"
    return Times(path=path, known=_read(path))


def key_of_call(node: Node, kernel: str, args: Any, kwargs: Any) -> str:
    """Return what two calls have in common that take equally long.

    Args:
        node: of a trace; its target is the operator.
        kernel: name of the one that computes it.
        args: with nodes or tensors, real or fake, where the call has tensors.
        kwargs: the same.
    """
    name = getattr(target_of(node, kernel), "__name__", "")
    text = f"{node.target}|{kernel}|{name}|{_plain(args)}|{_plain(kwargs)}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _plain(value: Any) -> object:
    if isinstance(value, Node):
        return _plain(value.meta.get("val"))
    if isinstance(value, torch.Tensor):
        # Of axes with one element any stride is right.
        strides = [s if n > 1 else 0 for n, s in zip(value.shape, value.stride(), strict=True)]
        return f"{str(value.dtype)[6:]}{list(value.shape)}{strides}"
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return str(value)


def _read(path: Path) -> dict[str, int]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    return dict(row for row in map(_row, lines) if row is not None)


def _row(line: str) -> tuple[str, int] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, list) or len(row) != 2:
        return None
    key, ns = row
    return (key, ns) if isinstance(key, str) and type(ns) is int and ns >= 0 else None


def _machine() -> str:
    """Return what times depend on besides the call."""
    about: Mapping[str, object] = {
        "schema": SCHEMA,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
    }
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]


def _processor() -> str:
    return f"{platform.processor()}|{torch.backends.cpu.get_cpu_capability()}"
