"""How to optimize: one field per option of the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regal.search.devices.objectives import Weights

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to optimize; the command line has one option per field."""

    objective: str = "memory"  # "time", "balanced"
    weights: Weights = field(default_factory=Weights)  # of "balanced"
    devices: str | None = None  # a number, a preset, a .toml file; None: those of the file, or one
    profiles: tuple[Path, ...] = ()  # measured op times that override the roofline
    method: str = "regal"
    policy: str = "default"  # "none", "untrained", or a file
    evaluations: int | None = None
    seconds: float | None = None
    seed: int = 0
    threads: int = 1
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    capacity: int | None = None
    ort_level: str = "none"  # "basic", "extended": ONNX Runtime optimizes the model first
    in_place: bool = True  # may ops write over an input that dies?
    sub_buffers: bool = True  # may parts of concatenations and slices lie inside the whole?
    verify: bool = True
    force: bool = False
