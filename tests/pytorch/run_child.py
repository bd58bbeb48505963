"""Run checks that need PyTorch in a child process: it does not stand beside all other libraries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def results_of(
    module: str, *arguments: str, path: Path | None = None, preload: str = ""
) -> dict[str, Any]:
    """Return what `python -m module` prints as JSON on its last line.

    Args:
        module: with the checks.
        arguments: on its command line.
        path: a folder to find packages in, before all others.
        preload: a shared library.
    """
    environment = dict(os.environ)
    paths = [str(path)] if path is not None else []
    environment["PYTHONPATH"] = os.pathsep.join([*paths, str(ROOT), *sys.path])
    if preload:
        environment["LD_PRELOAD"] = preload
    run = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found
