"""How long the default search takes, and how long reading a model and starting the command take.

    python benchmarks/search_time.py [MODEL_OR_FOLDER ...] [--sizes 100 500 5000] [--anytime 10]

Synthetic graphs and model files (default: those that ship), one thread, nothing set but the seed.
Seconds are CPU time of the search alone, the median of `--repeats`. Targets: 1 s up to 500 ops, 5 s
at 5,000. Beyond that `--time SECONDS` must hold: those graphs get `--anytime` seconds of wall time.
Then the seconds of reading each file, with the run that some ONNX files take to find their shapes,
and of `regal --help`; targets: 0.5 s for 4 MB, 0.3 s. Open dimensions of files are bound as in
`corpus.py`. With `--strict` a missed target is status 1.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from synthetic import FAMILIES, Sketch, random_wiring

from corpus import BINDINGS, SUFFIXES
from regal.errors import RegalError
from regal.frontends import load
from regal.options import Options
from regal.pipeline import search
from regal.search.portfolio import default_evaluations, regal
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from regal._native import OrderProblem
    from regal.graph.types import LoadedModel

T = TypeVar("T")

SHIPPED = Path(__file__).resolve().parents[1] / "examples" / "models"
HARD_NODES = 128  # random wiring of that many nodes per stage is what the proof cannot do
LIMITS = ((510, 1.0), (5_100, 5.0))  # ops (families round), CPU seconds
HEAD = "| graph | ops | peak over its bound | CPU s | target | wall s |\n|-|-:|-:|-:|-:|-:|"
READ_HEAD = "| file | MB | CPU s | wall s |\n|-|-:|-:|-:|"
READ_TARGET, HELP_TARGET = 0.5, 0.3
MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """CPU and wall seconds of a call."""

    cpu: float
    wall: float


def main() -> int:
    """Print the tables; return 1 if a target is missed and that matters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[SHIPPED])
    parser.add_argument("--sizes", nargs="*", type=int, default=[100, 500, 1_000, 5_000, 100_000])
    parser.add_argument("--anytime", type=float, default=10.0, help="seconds beyond 5,000 ops")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--strict", action="store_true", help="status 1 for a missed target")
    arguments = parser.parse_args()
    files = list(model_files(arguments.paths))
    print(HEAD)
    missed = 0
    for family, make in {**FAMILIES, f"wiring, {HARD_NODES} wide": hard_wiring}.items():
        for size in arguments.sizes:
            problem = make(size).problem()
            missed += not search_row(family, problem, arguments.anytime, arguments.repeats)
    for path in files:
        missed += not model_row(path, arguments.repeats)
    print(f"\n{READ_HEAD}")
    for path in files:
        missed += not read_row(path, arguments.repeats)
    missed += not help_row(max(arguments.repeats, 5))
    print(f"\n{missed} targets missed" if missed else "\nall targets met")
    return 1 if missed and arguments.strict else 0


def search_row(name: str, problem: OrderProblem, anytime: float, repeats: int) -> bool:
    """Print the row of a synthetic graph; return whether its target is met."""
    n = problem.n_ops
    limit = limit_of(n)
    evaluations = default_evaluations(n)
    budget = Budget(evaluations=evaluations) if limit else Budget(seconds=anytime)
    runs, outcome = repeated(
        lambda: regal(problem, budget, seed=0, threads=1, stop_at=0), repeats if limit else 1
    )
    over = outcome.peak_bytes / max(1, outcome.lower_bound)
    return print_row(name, n, over, runs, anytime)


def hard_wiring(n_ops: int) -> Sketch:
    """Return RandWire-like stages of 128 nodes: 386 ops each."""
    return random_wiring(n_ops, nodes=HARD_NODES)


def model_row(path: Path, repeats: int) -> bool:
    """Print the row of a model file: what `regal optimize` searches; return as above."""
    try:
        model = read(path)
    except RegalError as error:
        print(f"| {path.name} | | refused: {error} | | | |", flush=True)
        return True
    # Bodies of control flow are searched, too; a target is for the ops of all entries.
    n = sum(len(entry.ops) for entry in model.entries)
    runs, plan = repeated(lambda: search(model, Options()), repeats)
    worst = max(plan.plans, key=lambda each: each.peak_bytes)
    return print_row(path.name, n, worst.peak_bytes / max(1, worst.peak_bound), runs, 0.0)


def print_row(name: str, n_ops: int, over: float, runs: list[Timed], anytime: float) -> bool:
    """Print a row with the median run; return whether its target is met."""
    cpu = statistics.median(run.cpu for run in runs)
    wall = statistics.median(run.wall for run in runs)
    limit = limit_of(n_ops)
    # The clock is asked between pieces of work, so a run may end a little later.
    is_met = cpu <= limit if limit else wall <= 1.5 * anytime
    target = f"<= {limit:g}" if limit else f"--time {anytime:g}"
    cells = (name, f"{n_ops:,}", f"{over:.4f}", f"{cpu:.2f}", target, f"{wall:.2f}")
    print(f"| {' | '.join(cells)} |{'' if is_met else ' missed'}", flush=True)
    return is_met


def read_row(path: Path, repeats: int) -> bool:
    """Print how long reading takes; return whether it is fast enough for the size."""
    try:
        runs, _ = repeated(lambda: read(path), repeats + 1)
    except RegalError:
        return True
    size = path.stat().st_size / MIB
    cpu = statistics.median(run.cpu for run in runs[1:])  # the first one imports the frontend
    wall = statistics.median(run.wall for run in runs[1:])
    is_met = cpu <= READ_TARGET * max(1.0, size / 4)
    print(f"| {path.name} | {size:.2f} | {cpu:.3f} | {wall:.3f} |{'' if is_met else ' missed'}")
    return is_met


def help_row(repeats: int) -> bool:
    """Print how long `regal --help` takes from start to end; return whether it is in time."""
    cpu, wall = [], []
    for _ in range(repeats):
        before, started = child_seconds(), time.perf_counter()
        subprocess.run([sys.executable, "-m", "regal", "--help"], capture_output=True, check=True)
        wall.append(time.perf_counter() - started)
        cpu.append(child_seconds() - before)
    seconds = statistics.median(cpu)
    row = f"| `regal --help` | | {seconds:.3f} | {statistics.median(wall):.3f} |"
    print(row + ("" if seconds <= HELP_TARGET else " missed"))
    return seconds <= HELP_TARGET


def limit_of(n_ops: int) -> float:
    """Return the CPU seconds that a search may take; 0: any."""
    return next((seconds for most, seconds in LIMITS if n_ops <= most), 0.0)


def model_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files given, and the models in the folders given."""
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (each for each in inside if each.suffix in SUFFIXES)


def read(path: Path) -> LoadedModel:
    """Return the model, its open dimensions bound."""
    words = BINDINGS.get(path.name, [])
    shapes: dict[str, tuple[int, ...]] = {}
    dims: dict[str, int] = {}
    for option, text in zip(words[::2], words[1::2], strict=True):
        name, _, value = text.partition("=")
        if option == "--shape":
            shapes[name] = tuple(int(size) for size in value.split(","))
        else:
            dims[name] = int(value)
    return load(path, shapes, dims)


def repeated(call: Callable[[], T], repeats: int) -> tuple[list[Timed], T]:
    """Return the seconds of each call, child processes included, and what the last one returned."""
    runs = []
    for _ in range(repeats):
        cpu, wall = time.process_time() + child_seconds(), time.perf_counter()
        result = call()
        used = time.process_time() + child_seconds() - cpu
        runs.append(Timed(cpu=used, wall=time.perf_counter() - wall))
    return runs, result


def child_seconds() -> float:
    """Return the CPU seconds of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
