"""Where rows come from: the commit, the version, the machine."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import regal

CPU_INFO = Path("/proc/cpuinfo")
GIT_SECONDS = 10


def commit() -> str:
    """Return the commit of the checkout that this package lies in, "" if it lies in none.

    A "+" behind it says that files differ from the commit. Row files do not count: they grow.
    """
    folder = Path(regal.__file__).parents[2]
    if not (folder / ".git").exists():
        return ""
    found = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", "src", "native")
    return found + ("+" if found and changed else "")


def machine() -> dict[str, Any]:
    """Return what timings depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def load() -> float:
    """Return how many processes wait for a core, the mean over a minute; -1: unknown."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return -1.0


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True, text=True, timeout=GIT_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    try:
        lines = CPU_INFO.read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
