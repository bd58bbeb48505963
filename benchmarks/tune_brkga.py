"""Tune BRKGA for several devices on training graphs alone; write the choice with its evidence.

    python benchmarks/tune_brkga.py CORPUS_FOLDER --objective time [--out benchmarks/out/tune_time]

Training graphs are the `.tflite` and `.onnx` files of the families in `TRAINING`, with at least 20
ops; every other file stays unseen, above all those of `tf/` and `sched/`. Three rounds with rising
evaluations: random settings beside the defaults, then the better ones, then the best. A setting is
worth the mean, over graphs, systems and seeds, of the logarithm of its value over that of the
defaults at the same evaluations and seed. What comes out goes into `search/devices/brkga.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from device_baselines import Case, case_of, graphs

from regal import _native
from regal.devices.presets import system_named
from regal.search.devices.brkga import DeviceBrkgaOptions, DeviceProposal, run_device_brkga
from regal.search.devices.compact import compact_devices
from regal.search.devices.objectives import OBJECTIVES, Weights, objective_of
from regal.search.types import Budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal._native import CompactDevices
    from regal.search.devices.types import Objective

TRAINING = ("coral_", "fdl_", "light_", "mlon_")  # half of the families of tflite/ and onnx/
SYSTEMS = ("2", "gpu-nvlink-4", "cpu:4")
LEAST_OPS = 20
# (settings that enter, evaluations, seeds) of each round.
ROUNDS = ((64, 300, 1), (16, 1_000, 2), (6, 5_000, 3))
RESAMPLES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is tuned. `shape`: random keys come from Beta(shape, shape); 1 is uniform."""

    decoder: str
    population: int = 40
    elites: int = 8
    mutants: int = 5
    elite_bias: float = 0.7
    restart_after: int = 0
    shape: float = 1.0

    @property
    def options(self) -> DeviceBrkgaOptions:
        """Return the options that the search takes."""
        return DeviceBrkgaOptions(
            decoder=getattr(_native.DeviceDecoder, self.decoder),
            population=self.population,
            elites=self.elites,
            mutants=self.mutants,
            elite_bias=self.elite_bias,
            restart_after=self.restart_after,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One training graph on one system."""

    name: str
    compact: CompactDevices
    objective: Objective


def main() -> int:
    """Tune one objective."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--objective", choices=OBJECTIVES, default="time")
    parser.add_argument("--decoders", nargs="*", default=["EFT", "INHERIT"])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-ops", type=int, default=1_000)
    parser.add_argument("--resume", action="store_true", help="use the rows of an earlier run")
    arguments = parser.parse_args()
    out = arguments.out or Path(f"benchmarks/out/tune_{arguments.objective}")
    out.parent.mkdir(parents=True, exist_ok=True)
    problems = training_problems(arguments.corpus, arguments.objective, arguments.most_ops)
    print(f"{len(problems)} training problems: {', '.join(p.name for p in problems)}")
    defaults = Setting(decoder=arguments.decoders[0])
    settings = [defaults, *random_settings(arguments.decoders, ROUNDS[0][0] - 1, arguments.seed)]
    report: list[dict[str, Any]] = []
    names = digest(problems)
    done = earlier_rows(out.with_suffix(".jsonl"), names) if arguments.resume else {}
    with out.with_suffix(".jsonl").open("a" if arguments.resume else "w") as stream:
        for entries, evaluations, seeds in ROUNDS:
            settings = settings[:entries]
            started = time.process_time()
            worth = {}
            for setting in dict.fromkeys([defaults, *settings]):
                worth[setting] = done.get((evaluations, setting), np.empty(0))
                if worth[setting].shape == (len(problems), seeds):
                    continue
                worth[setting] = values = measured(problems, setting, evaluations, seeds)
                row = {
                    "problems": names,
                    "evaluations": evaluations,
                    **asdict(setting),
                    "values": values.tolist(),
                }
                stream.write(json.dumps(row) + "\n")
                stream.flush()
            gains = {s: np.log(v / worth[defaults]).mean(axis=1) for s, v in worth.items()}
            settings = sorted(gains, key=lambda s: float(gains[s].mean()))
            for setting in settings[:8]:
                low, high = interval(gains[setting])
                report.append(
                    {
                        "evaluations": evaluations,
                        "seeds": seeds,
                        "gain_percent": percent(float(gains[setting].mean())),
                        "interval": [percent(low), percent(high)],
                        **asdict(setting),
                    }
                )
                print(json.dumps(report[-1]), flush=True)
            print(f"round of {evaluations}: {time.process_time() - started:.0f} CPU s", flush=True)
    out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
    return 0


def digest(problems: Sequence[Problem]) -> str:
    """Return what tells these problems from others."""
    return hashlib.sha256("\n".join(problem.name for problem in problems).encode()).hexdigest()[:16]


def earlier_rows(path: Path, problems: str) -> dict[tuple[int, Setting], np.ndarray]:
    """Return the values of an earlier run on the same problems by evaluations and setting.

    A last row that the end of that run cut off is removed from the file.
    """
    if not path.exists():
        return {}
    lines = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    path.write_text("".join(lines))
    rows = {}
    for line in lines:
        row = json.loads(line)
        evaluations, values = row.pop("evaluations"), np.array(row.pop("values"))
        if row.pop("problems", problems) == problems:
            rows[evaluations, Setting(**row)] = values
    return rows


def training_problems(corpus: Path, objective: str, most_ops: int) -> list[Problem]:
    """Return the training graphs on each system."""
    files = sorted(
        str(path)
        for folder in ("tflite", "onnx")
        for path in (corpus / folder).iterdir()
        if path.name.startswith(TRAINING)
    )
    problems = []
    for name, devices, graph, _ in graphs(files, SYSTEMS):
        if isinstance(graph, str) or not LEAST_OPS <= len(graph.ops) <= most_ops:
            continue
        case = case_of(name, graph, system_named(devices))
        problems.append(
            Problem(
                name=f"{name} on {case.system}",
                compact=compact_devices(case.problem),
                objective=weighted(case, objective),
            )
        )
    return problems


def weighted(case: Case, objective: str) -> Objective:
    """Return the objective, weighted as for this graph."""
    return objective_of(
        objective,
        Weights(),
        before_time_ns=case.before_time_ns,
        before_peak_bytes=case.before_peak_bytes,
    )


def random_settings(decoders: Sequence[str], count: int, seed: int) -> list[Setting]:
    """Return settings drawn at random, without repeats."""
    rng = random.Random(seed)
    settings: dict[Setting, None] = {}
    while len(settings) < count:
        population = rng.choice([16, 24, 32, 40, 60, 100])
        setting = Setting(
            decoder=rng.choice(list(decoders)),
            population=population,
            elites=max(1, round(population * rng.choice([0.1, 0.15, 0.2, 0.3]))),
            mutants=round(population * rng.choice([0.0, 0.05, 0.1, 0.15, 0.25])),
            elite_bias=rng.choice([0.5, 0.6, 0.7, 0.8, 0.9]),
            restart_after=rng.choice([0, 0, 20, 50]),
            shape=rng.choice([1.0, 1.0, 2.0, 4.0, 8.0, 16.0]),
        )
        settings[setting] = None
    return list(settings)


def measured(
    problems: Sequence[Problem], setting: Setting, evaluations: int, seeds: int
) -> np.ndarray:
    """Return the value that the setting reaches, per problem and seed."""
    values = np.empty((len(problems), seeds))
    for row, problem in enumerate(problems):
        genes = _native.GeneLayout(problem.compact.problem, setting.options.decoder).size
        shape = np.full(genes, setting.shape)
        for seed in range(seeds):
            found = run_device_brkga(
                problem.compact,
                problem.objective,
                Budget(evaluations=evaluations),
                seed=seed,
                options=replace(setting.options),
                proposal=DeviceProposal(alpha=shape, beta=shape) if setting.shape != 1 else None,
            )
            figures = _native.simulate_devices(problem.compact.problem, found.schedule)
            if figures is None:
                raise SystemExit(f"{problem.name}: a schedule waits in a circle")
            value = problem.objective.value(figures.time, figures.most)
            values[row, seed] = max(value, 1e-9) * (2 if figures.overflow > 0 else 1)
    return values


def interval(gains: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean, by resampling the problems."""
    rng = np.random.default_rng(0)
    means = gains[rng.integers(len(gains), size=(RESAMPLES, len(gains)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def percent(log_ratio: float) -> float:
    """Return a mean logarithm as a percentage below (-) or above the defaults."""
    return round(100 * (math.exp(log_ratio) - 1), 3)


if __name__ == "__main__":
    raise SystemExit(main())
