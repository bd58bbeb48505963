"""What kernels take on this machine: measured once, and kept on disk."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.fx import Node

from regal.backends.torch.kernels import has_onednn, target_of
from regal.backends.torch.trial import clock_ns

log = logging.getLogger("regal.torch")

SCHEMA = "regal.torch-times/2"


@dataclass(slots=True)
class Times:
    """Times that were measured, by what was called; new ones are appended to the file."""

    path: Path | None  # None: nothing is kept
    known: dict[str, int] = field(default_factory=dict)  # key of a call -> ns
    deadline_ns: int = 0  # clock_ns() after which nothing more is measured
    was_cut: bool = False  # something was to be measured after that

    def allow(self, seconds: float) -> None:
        """Measure for so long from now on: other processes that are busy take nothing from it."""
        self.deadline_ns = clock_ns() + int(seconds * 1e9)
        self.was_cut = False

    @property
    def is_over(self) -> bool:
        """Return whether the time for measuring is spent."""
        return clock_ns() >= self.deadline_ns

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
    about = json.dumps({"schema": SCHEMA, **machine()})
    path = folder / f"times-{hashlib.sha256(about.encode()).hexdigest()[:16]}.jsonl"
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
    text = f"{node.target}|{kernel}|{name}|{plain(args)}|{plain(kwargs)}"
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def plain(value: Any) -> object:
    """Return a value with what matters of its tensors: dtype, sizes and strides."""
    if isinstance(value, Node):
        return plain(value.meta.get("val"))
    if isinstance(value, torch.Tensor):
        # Of axes with one element any stride is right.
        strides = [s if n > 1 else 0 for n, s in zip(value.shape, value.stride(), strict=True)]
        return f"{str(value.dtype)[6:]}{list(value.shape)}{strides}"
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
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


def machine() -> dict[str, object]:
    """Return what times depend on besides the call, by name."""
    onednn = torch.backends.mkldnn
    return {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "processor": _processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "onednn": has_onednn(),
        "precision": f"{onednn.matmul.fp32_precision}, {onednn.conv.fp32_precision}",
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


def _processor() -> str:
    """Return the name of the processor, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
