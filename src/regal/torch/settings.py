"""What a user of the PyTorch backend may choose."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from regal.errors import UsageError
from regal.search.devices.objectives import require_objective

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPILE_SECONDS = 30.0
SECONDS = 1.5  # a graph of 2,000 operators is planned within 2 s, reading and judging included


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to plan the graphs of one compiled model; options of `torch.compile` are its fields."""

    # "time" and "balanced" fuse, lay out and choose kernels: results are equal up to rounding
    objective: str = "memory"
    budget: int | None = None  # evaluations per graph; None: by its size
    seconds: float | None = SECONDS  # wall time per graph; None: no limit
    cache: bool | str | Path = True  # a folder; True: the user's own; False: none
    memory_limit: int | None = None  # bytes that activations may take: recompute what is cheap
    compile_seconds: float = COMPILE_SECONDS  # wall time per graph for the groups of its kernels
    seed: int = 0
    threads: int = 1


def settings_of(options: Mapping[str, object] | None) -> Settings:
    """Return the settings that `torch.compile(..., options=...)` names.

    Raises:
        UsageError: an option is unknown, or its value is none that it may have.
    """
    known = [field.name for field in fields(Settings)]
    given = dict(options or {})
    for name in given:
        if name not in known:
            raise UsageError(f"unknown option '{name}'; known: {', '.join(known)}")
    for name in ("budget", "memory_limit", "seed", "threads"):
        if name in given:
            _require_int(name, given[name])
    _require_seconds("seconds", given.get("seconds"))
    _require_seconds("compile_seconds", given.get("compile_seconds", COMPILE_SECONDS))
    if not isinstance(given.get("cache", True), bool | str | Path) or given.get("cache") == "":
        raise UsageError(f"option 'cache' is {given['cache']!r}; give a folder, True or False")
    settings = Settings(**given)  # type: ignore[arg-type]  # each was looked at
    require_objective(settings.objective)
    return settings


def _require_seconds(name: str, value: object) -> None:
    if value is None and name == "seconds":
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not value >= 0:  # type: ignore[operator]  # a number
        kind = "a number, 0 or more" + (", or None" if name == "seconds" else "")
        raise UsageError(f"option '{name}' is {value!r}; give {kind}")


def _require_int(name: str, value: object) -> None:
    if value is None and name in ("budget", "memory_limit"):
        return
    least = 0 if name in ("seed", "memory_limit") else 1
    if type(value) is not int or value < least:
        raise UsageError(f"option '{name}' is {value!r}; give a whole number, {least} or more")
