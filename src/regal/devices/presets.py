"""Systems by name: what `--devices` takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regal.devices.toml import read_system
from regal.devices.types import MOST_DEVICES
from regal.errors import UsageError

if TYPE_CHECKING:
    from regal.devices.types import System

SUFFIX = ".toml"
FOLDER = Path(__file__).with_name("presets")
ONE = "cpu"  # what "1" stands for
MANY = "gpu-pcie-2"  # what "2", "3", ... are copies of


def system_named(text: str) -> System:
    """Return the system that `text` names.

    Args:
        text: "1" (a CPU), a number N of equal GPUs, a preset, "PRESET:N" for N devices like the
            preset's first one, or the path of a .toml file (also with ":N").

    Raises:
        UsageError: there is no such preset (the message lists them), or the file is wrong.
    """
    if text.isascii() and text.isdigit():
        copies = device_count(text)
        return read_system(_preset(ONE)) if copies == 1 else read_system(_preset(MANY), copies)
    name, colon, count = text.rpartition(":")
    if not colon or text.lower().endswith(SUFFIX):
        return read_system(_path(text, text))
    return read_system(_path(name, text), device_count(count, text))


def system_file(text: str) -> Path | None:
    """Return the file of the user that `text` names, if it names one."""
    name, _, _ = text.rpartition(":")
    path = next((part for part in (text, name) if part.lower().endswith(SUFFIX)), None)
    return None if path is None else Path(path)


def preset_names() -> tuple[str, ...]:
    """Return the names of all presets, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}")))


def device_count(text: str, whole: str = "") -> int:
    """Return the number of devices in `text`; messages speak of `whole`, what it is a part of.

    Raises:
        UsageError: not a whole number from 1 to MOST_DEVICES.
    """
    is_number = text.isascii() and text.isdigit() and len(text) < 10
    if not is_number or not 1 <= int(text) <= MOST_DEVICES:
        raise UsageError(f"devices '{whole or text}': give a number from 1 to {MOST_DEVICES}")
    return int(text)


def _path(name: str, text: str) -> Path:
    if name.lower().endswith(SUFFIX):
        return Path(name)
    if name not in preset_names():
        known = ", ".join(preset_names())
        raise UsageError(
            f"unknown devices '{text}'; give a number, a .toml file, or one of {known} (:N for N"
            " devices like its first)"
        )
    return _preset(name)


def _preset(name: str) -> Path:
    return FOLDER / f"{name}{SUFFIX}"
