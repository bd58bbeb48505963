"""A whole training run: from a configuration to an exported policy."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import torch

from regal.errors import UsageError
from regal.files import write_atomically
from regal.learning.actors import actors_of
from regal.learning.columns import ColumnNetwork, ColumnPolicy
from regal.learning.columns_environment import column_environment
from regal.learning.config import config_to_dict
from regal.learning.environment import GraphEnvironment, TaskEnvironment
from regal.learning.export import onnx_bytes, require_parity
from regal.learning.fusion import FusionNetwork, FusionPolicy
from regal.learning.fusion_environment import fusion_environment
from regal.learning.metrics import Metrics
from regal.learning.network import new_network, parameter_count
from regal.learning.options import INLINE, OFF_POLICY, REINFORCE
from regal.learning.paper import PaperPolicy
from regal.learning.prior_export import prior_onnx, require_prior_parity
from regal.learning.prior_network import with_fixed_arms
from regal.learning.prior_training import PriorTrainer, network_of
from regal.learning.toy import ToyEnvironment, ToyWorkload
from regal.learning.trainer import BEST, CHECKPOINT, Trainer
from regal.learning.workload import GraphWorkload
from regal.policy.model import COLUMNS, FUSION, PRIOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from regal.learning.actors import MakeEnvironment
    from regal.learning.options import TrainConfig
    from regal.learning.standing import Progress
    from regal.learning.types import Environment, Trainable
    from regal.learning.workload import Workload

CONFIG, POLICY = "config.json", "policy.onnx"
FIXED = "fixed.onnx"  # the default method's policy with arms that have learned nothing: a control
PARITY_SAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What a run left behind."""

    policy: Path  # the best network, exported
    sha256: str
    parameters: int
    parity: float  # largest difference between it and its export
    progress: Progress


def run_training(
    config: TrainConfig,
    folder: Path,
    *,
    resume: bool,
    report: Callable[[Progress], None],
    policy: Trainable | None = None,
    shared: GraphEnvironment | None = None,
) -> Trained:
    """Train, and export the network that was best on the valid side.

    Args:
        config: what to do.
        folder: for checkpoints, logs and the policy.
        resume: go on from the folder's checkpoint.
        report: is told about the progress, once per iteration.
        policy: what to train; None: the one that `config.policy` names.
        shared: by several runs on graphs: what it has built and searched serves again.

    Raises:
        UsageError: the folder has a checkpoint and `resume` is off, or has none and it is on.
    """
    if config.policy == PRIOR:
        return _run_prior(config, folder, resume=resume, report=report)
    _require_folder(folder, resume=resume)
    torch.set_num_threads(1)
    policy = policy or _policy_of(config)
    if config.trainer.start and not resume:
        _start_from(policy, Path(config.trainer.start))
    environment, make = _environment_of(config, shared)
    workload = _workload_of(config, environment)
    with actors_of(config.actors, make, environment) as actors, Metrics(folder) as metrics:
        trainer = Trainer(config, policy, workload, environment, actors)
        if resume:
            trainer.restore(folder / CHECKPOINT)
        _write_config(config, folder)
        progress = trainer.run(folder, metrics, report)
    policy.network.load_state_dict(torch.load(folder / BEST, weights_only=True))
    samples = [environment.inputs(spec) for spec in workload.valid[:PARITY_SAMPLES]]
    notes: dict[str, Any] = {
        "config": config_to_dict(config),
        "searches": progress.searches,
        "valid_gain": progress.best,
    }
    data = onnx_bytes(policy.network, policy.exported(), samples[0], notes)
    parity = require_parity(policy.exported(), data, samples)
    return _written(folder, data, policy.network, parity, progress)


def _run_prior(
    config: TrainConfig, folder: Path, *, resume: bool, report: Callable[[Progress], None]
) -> Trained:
    """Train the policy of the default method; see `run_training`."""
    if config.learner.algorithm not in (OFF_POLICY, REINFORCE):
        raise UsageError(
            f"config: '{PRIOR}' does not learn by '{config.learner.algorithm}';"
            f" learner.algorithm is {OFF_POLICY} or {REINFORCE}"
        )
    if config.actors.kind != INLINE:
        raise UsageError(f"config: '{PRIOR}' searches in this process: actors.kind is {INLINE}")
    _require_folder(folder, resume=resume)
    torch.set_num_threads(1)
    with Metrics(folder) as metrics:
        trainer = PriorTrainer(config, lambda text: print(text, file=sys.stderr, flush=True))
        if resume:
            trainer.restore(folder / CHECKPOINT)
        _write_config(config, folder)
        if not resume:
            trainer.start()
        progress = trainer.run(folder, metrics, report)
    best = torch.load(folder / BEST, weights_only=False)
    network = network_of(best)
    notes = {
        "config": config_to_dict(config),
        "searches": progress.searches,
        "valid_gain": progress.best,
        "chosen": best["chosen"],
    }
    data = prior_onnx(network, notes)
    parity = require_prior_parity(network, data)
    write_atomically(folder / FIXED, prior_onnx(with_fixed_arms(network), notes))
    return _written(folder, data, network, parity, progress)


def _write_config(config: TrainConfig, folder: Path) -> None:
    settings = json.dumps(config_to_dict(config), indent=2)
    write_atomically(folder / CONFIG, f"{settings}\n".encode())


def _written(
    folder: Path, data: bytes, network: nn.Module, parity: float, progress: Progress
) -> Trained:
    """Write the exported policy; return what the run left behind."""
    write_atomically(folder / POLICY, data)
    return Trained(
        policy=folder / POLICY,
        sha256=hashlib.sha256(data).hexdigest(),
        parameters=parameter_count(network),
        parity=parity,
        progress=progress,
    )


def _require_folder(folder: Path, *, resume: bool) -> None:
    if (folder / CHECKPOINT).exists() != resume:
        raise UsageError(
            f"folder '{folder}' has a checkpoint; go on with --resume, or use another folder"
            if not resume
            else f"folder '{folder}' has no checkpoint to resume from"
        )


def _start_from(policy: Trainable, path: Path) -> None:
    """Give the policy the weights of another run.

    Raises:
        UsageError: they cannot be read, or are of another network.
    """
    try:
        policy.network.load_state_dict(torch.load(path, weights_only=True))
    except (OSError, RuntimeError, UnpicklingError) as error:
        text = " ".join(str(error).split())[:120]
        raise UsageError(f"weights '{path}' do not fit: {text}") from None


def _policy_of(config: TrainConfig) -> Trainable:
    imitates = config.learner.imitation > 0 or config.trainer.warmup > 0
    if config.policy in (COLUMNS, FUSION) and imitates:
        raise UsageError(
            f"config: '{config.policy}' has no keys to imitate: no imitation, no warmup"
        )
    if config.policy == FUSION:
        fusion = FusionNetwork(config.network, config.trainer.seed)
        return FusionPolicy(fusion, correlation=config.trainer.correlation)
    if config.policy == COLUMNS:
        columns = ColumnNetwork(config.network, config.trainer.seed)
        return ColumnPolicy(columns, config.columns)
    if config.policy != "paper":
        raise UsageError(
            f"config: unknown policy '{config.policy}'; known: paper, {PRIOR}, {COLUMNS}, {FUSION}"
        )
    network = new_network(config.network, config.trainer.seed)
    return PaperPolicy(network, correlation=config.trainer.correlation)


def _environment_of(
    config: TrainConfig, shared: GraphEnvironment | None
) -> tuple[Environment, MakeEnvironment]:
    if config.data.problem == "toy":
        return ToyEnvironment(), ToyEnvironment
    if config.policy == COLUMNS:
        return column_environment(), column_environment
    if config.policy == FUSION:
        return fusion_environment(), fusion_environment
    return shared or GraphEnvironment(), GraphEnvironment


def _workload_of(config: TrainConfig, environment: Environment) -> Workload:
    if isinstance(environment, TaskEnvironment):
        return GraphWorkload(config.data, config.search, environment)
    return ToyWorkload()
