"""Run measurements of PyTorch models in children that are forked after the packages are loaded."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MODES = ("inference", "training")
ROOT = Path(__file__).parents[1]
METER = ROOT / "src" / "regal" / "_heap_meter.so"
# The C library keeps what is freed: which peer pays for new pages, up to a third of its time, would
# depend on what the others freed before.
KEPT = {"MALLOC_TRIM_THRESHOLD_": str(8 << 30), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)}


def preload_meter(module: str) -> None:
    """Start `python -m module` again with the heap meter, unless it is there or was not built."""
    if not METER.is_file() or os.environ.get("LD_PRELOAD") == str(METER):
        return
    environment = {**os.environ, "LD_PRELOAD": str(METER)}
    environment["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    os.execve(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]], environment)


def load_packages() -> None:
    """Import what children need, before any of them is forked and any thread is started."""
    from regal.data.tracers.torch_common import import_torchvision

    import_torchvision()
    import timm  # noqa: F401
    import torch._dynamo
    import torch._inductor.memory
    import transformers  # noqa: F401

    torch.set_num_threads(1)


def forked(
    measure: Callable[..., dict[str, Any]], *args: Any, about: dict[str, Any], seconds: float
) -> dict[str, Any]:
    """Return the row that `measure(*args)` makes in a child; `about` and why, where it fails."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_run, args=(theirs, measure, args))
    child.start()
    theirs.close()
    try:
        row = ours.recv() if ours.poll(seconds) else {"failed": f"took more than {seconds:g} s"}
    except EOFError:
        row = {"failed": "the process ended without a row"}
    child.kill()
    child.join()
    return about | row


def collect(
    module: str,
    names: Sequence[str],
    rows: Path,
    measure: Callable[..., dict[str, Any]],
    line_of: Callable[[dict[str, Any]], str],
    seconds: float,
) -> None:
    """Add the rows of all models in both modes that a file lacks, one child each."""
    preload_meter(module)
    done = {(row["name"], row["mode"]) for row in read(rows)}
    missing = [(n, m) for n in names for m in MODES if (n, m) not in done]
    if missing:
        load_packages()
    for name, mode in missing:
        about = {"name": name, "mode": mode}
        row = forked(measure, name, mode, about=about, seconds=seconds)
        add(rows, row, line_of(row))


def _run(pipe: Any, measure: Any, args: Any) -> None:
    try:
        pipe.send(measure(*args))
    except Exception as error:
        pipe.send({"failed": f"{type(error).__name__}: {error}"[:300]})


class Heap:
    """The heap of this process, where the meter is loaded."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self.library = library if hasattr(library, "regal_heap_reset") else None
        if self.library is not None:
            self.library.regal_heap_live.restype = ctypes.c_int64
            self.library.regal_heap_peak.restype = ctypes.c_int64

    def peak_of(self, run: Callable[[], Any]) -> int:
        """Return how far the heap rises above what it is now while `run` runs."""
        assert self.library is not None
        self.library.regal_heap_reset()
        before = int(self.library.regal_heap_live())
        run()
        return int(self.library.regal_heap_peak()) - before


def run_child(program: str, name: str, *mode: str, timeout_s: float) -> dict[str, Any]:
    """Return the row that `python -m program --one name mode` prints, or why there is none.

    A process of its own, not a forked one: for what starts threads, or compiles in them.
    """
    environment = os.environ | KEPT
    environment["PYTHONPATH"] = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    if METER.is_file():
        environment["LD_PRELOAD"] = str(METER)
    command = [sys.executable, "-m", program, "--one", name, *mode]
    try:
        run = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=timeout_s
        )
    except subprocess.TimeoutExpired:
        return {"name": name, "failed": f"took more than {timeout_s} s"}
    lines = [line for line in run.stdout.splitlines() if line.startswith("{")]
    reason = " | ".join(run.stderr.strip().splitlines()[-2:])[-300:]
    return json.loads(lines[-1]) if lines else {"name": name, "failed": reason}


def read(rows: Path) -> list[dict[str, Any]]:
    """Return the rows of a file; none where there is no file."""
    if not rows.is_file():
        return []
    return [json.loads(line) for line in rows.read_text().splitlines() if line.strip()]


def add(rows: Path, row: dict[str, Any], line: str) -> None:
    """Add a row to a file, and show it as `line`."""
    with rows.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(line, file=sys.stderr, flush=True)
