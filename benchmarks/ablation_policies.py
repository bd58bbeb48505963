"""Train the paper's policy in variants, each with the same number of searches, on the train side.

Usage: python -m benchmarks.ablation_policies FOLDER [--only NAME,NAME] [--seeds 0,1]
       [--iterations 12] [--rows benchmarks/results/training.jsonl]

FOLDER/runs/NAME-SEED keeps each run: one that was interrupted, or had fewer iterations, goes on;
one that is done is not run again. FOLDER/NAME.onnx is the policy of seed 0, FOLDER/NAME-SEED.onnx
of the others.
The validations of all runs in FOLDER go to the rows, in place of older ones of the same runs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.training_rows import BASE, REINFORCE, ROWS, VARIANTS, keep_rows, rows_of_log

from regal.files import write_atomically
from regal.learning.config import read_config
from regal.learning.environment import GraphEnvironment
from regal.learning.metrics import LOG
from regal.learning.run import POLICY, run_training
from regal.learning.trainer import CHECKPOINT
from regal.learning.workload import TRAIN, entries_of
from regal.policy.model import PolicyNetwork

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from regal.learning.options import TrainConfig
    from regal.learning.standing import Progress

ROOT = Path(__file__).parents[1]
PAPER = ROOT / "configs" / "paper.toml"
ITERATIONS = 12  # of 512 searches: about 40 s of one core
SEEDS = (0, 1)
# Short runs: larger steps than configs/paper.toml, and a mean of the weights over fewer of them.
SHORT = ("learner.learning_rate=0.008", "learner.average=0.96")
# Replay takes three steps per iteration, the others one: the mean is over as many iterations,
# 0.885 = 0.96 to the third.
ONE_STEP = "learner.average=0.885"
# What each variant changes of configs/paper.toml.
CHANGES: Final[Mapping[str, tuple[str, ...]]] = {
    BASE: (),
    REINFORCE: ("learner.algorithm=reinforce", ONE_STEP),
    # Its gradients are noisier: still larger steps, as on the toy.
    "es": ("learner.algorithm=es", ONE_STEP, "learner.learning_rate=0.03", "learner.deviation=1.0"),
    "preference": ("learner.algorithm=preference", ONE_STEP),
    "graph-blind": ("network.sees_graph=false",),
    "no-variations": ("data.varied=0",),
    "data-50": (),
    "data-25": (),
    "independent": ("trainer.correlation=0",),
}
SHARES: Final[Mapping[str, float]] = {"data-50": 0.5, "data-25": 0.25}  # of the training graphs


def main() -> None:
    """Train what is missing, write the policies and the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(VARIANTS))
    parser.add_argument("--seeds", default=",".join(map(str, SEEDS)))
    parser.add_argument("--iterations", type=int, default=ITERATIONS)
    parser.add_argument("--rows", type=Path, default=ROWS)
    arguments = parser.parse_args()
    environment = GraphEnvironment()
    # Seeds outside: an early end leaves one run of every variant.
    for seed in map(int, arguments.seeds.split(",")):
        for name in arguments.only.split(","):
            train(name, seed, arguments.folder, arguments.iterations, environment)
            logs = sorted(arguments.folder.glob(f"runs/*/{LOG}"))
            keep_rows(arguments.rows, [row for log in logs for row in rows_of_log(log)])


def train(
    name: str, seed: int, folder: Path, iterations: int, environment: GraphEnvironment
) -> None:
    """Train a variant, unless that is done; put its policy into the folder."""
    run = folder / "runs" / f"{name}-{seed}"
    if iterations_of(run) < iterations:
        config = config_of_variant(name, seed, iterations)
        run_training(
            config,
            run,
            resume=(run / CHECKPOINT).exists(),
            report=show(run.name),
            shared=environment,
        )
    policy = folder / (f"{name}-{seed}.onnx" if seed else f"{name}.onnx")
    write_atomically(policy, (run / POLICY).read_bytes())


def iterations_of(run: Path) -> int:
    """Return how many iterations a run's policy was asked to have; 0 if there is none yet."""
    if not (run / POLICY).exists():
        return 0
    about = PolicyNetwork((run / POLICY).read_bytes(), run.name).about
    count: int = about["notes"]["config"]["trainer"]["iterations"]
    return count


def config_of_variant(name: str, seed: int, iterations: int) -> TrainConfig:
    """Return the configuration of a variant: configs/paper.toml but for what it is about."""
    overrides = [
        f"trainer.seed={seed}",
        f"trainer.iterations={iterations}",
        "trainer.valid_every=12",
        "trainer.checkpoint_every=6",
        "trainer.patience=0",
        *SHORT,
        *CHANGES[name],
    ]
    if name in SHARES:
        graphs = len(entries_of(TRAIN, read_config(PAPER).data))
        overrides.append(f"data.limit={round(SHARES[name] * graphs)}")
    return read_config(PAPER, overrides)


def show(name: str) -> Callable[[Progress], None]:
    """Return what prints where a run is."""

    def report(progress: Progress) -> None:
        print(
            f"{name} {progress.iteration}/{progress.iterations}"
            f" reward {progress.reward:+.4f} valid {progress.valid:+.4f}"
            f" {progress.seconds:.0f} s",
            file=sys.stderr,
            flush=True,
        )

    return report


if __name__ == "__main__":
    main()
