"""Run a module of this package in a process of its own: what runs there may crash or never end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRun:
    """How a child process ended, and what it said."""

    end: str  # "" if it ended well, else in words
    stdout: str
    stderr: str


def installed(*packages: str) -> str:
    """Return name and version of the first of these packages that is there, "" if none is."""
    for package in packages:
        try:
            return f"{package} {version(package)}"
        except PackageNotFoundError:
            continue
    return ""


def run_module(
    module: str,
    arguments: Sequence[str],
    timeout_s: float,
    *,
    stdin: str = "",
    preload: Path | None = None,
) -> ChildRun:
    """Return what became of `python -m module`; crashes and time-outs are results.

    Args:
        module: its full name; it is found as this process would find it.
        arguments: on its command line.
        timeout_s: wall time after which it is killed.
        stdin: what it can read.
        preload: a shared library to load before all others.
    """
    environment = child_environment()
    if preload is not None:
        environment["LD_PRELOAD"] = str(preload)
    try:
        done = subprocess.run(
            module_command(module, arguments),
            env=environment,
            input=stdin.encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        return ChildRun(
            end=f"did not finish within {timeout_s:g} s",
            stdout=_text(expired.stdout),
            stderr=_text(expired.stderr),
        )
    end = end_of(done.returncode)
    return ChildRun(end=end, stdout=_text(done.stdout), stderr=_text(done.stderr))


def module_command(module: str, arguments: Sequence[str] = ()) -> list[str]:
    """Return the command line that runs `module` in a child."""
    # -P: no module from the folder that the user happens to be in.
    return [sys.executable, "-P", "-m", module, *arguments]


def child_environment() -> dict[str, str]:
    """Return the environment in which a child finds the modules that this process finds."""
    environment = dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    return environment


@contextmanager
def hidden_from_ctrl_c() -> Iterator[None]:
    """Processes that are started inside never see Ctrl-C: it is for this one, which ends them.

    They inherit the blocked signal. Ignoring it once they run would come too late: until then
    they print where they were interrupted. Here it waits for the end of the block, so that none
    is left half started.
    """
    pressed: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()  # others cannot catch signals
    handler = signal.getsignal(signal.SIGINT)
    if is_main:
        signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if is_main:
            signal.signal(signal.SIGINT, handler)
        if pressed:
            signal.raise_signal(signal.SIGINT)


def end_of(status: int) -> str:
    """Return in words how a child ended, or "" if it ended well."""
    if status >= 0:
        return f"ended with status {status}" if status else ""
    known = {int(number): number.name for number in signal.Signals}
    return f"crashed with {known.get(-status, f'signal {-status}')}"


def _text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace")
