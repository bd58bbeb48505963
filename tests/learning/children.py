"""Checks that need torch run in a child process, where no OR-tools is loaded."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.learning.standing import Progress

ROOT = Path(__file__).parents[2]


def needs(*packages: str) -> pytest.MarkDecorator:
    """Return a mark that skips where one of the packages is not installed."""
    missing = [name for name in packages if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def run_checks(module: str, *names: str) -> None:
    """Run checks of a module beside this one, all in one process: torch takes seconds to load."""
    done = subprocess.run(
        [sys.executable, "-m", f"tests.learning.{module}", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    passed = [line for line in done.stdout.splitlines() if line.startswith("passed")]
    assert passed == [f"passed {name}" for name in names]


def run_named(checks: Mapping[str, object]) -> None:
    """Run, in the child, the checks that the command line names; `checks` are its globals."""
    import torch  # only the child has it

    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        check = checks[name]
        assert callable(check)
        check()
        print("passed", name)


def ignore(progress: Progress) -> None:
    """Do nothing; what a training run tells."""
