"""`regal train`: train a policy, with progress, and export the best one."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from regal.errors import UsageError
from regal.policy.model import FUSION

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from regal.learning.standing import Progress

NEEDS = ("torch", "onnxscript")


def train(arguments: argparse.Namespace) -> int:
    """Run `regal train`."""
    missing = [name for name in NEEDS if find_spec(name) is None]
    if missing:
        raise UsageError(f"training needs {', '.join(missing)} - pip install 'regal[train]'")
    # Torch takes seconds to load: only this command pays for it.
    from regal.learning.config import read_config
    from regal.learning.run import run_training

    config = read_config(arguments.config, arguments.overrides)
    done = run_training(config, arguments.out, resume=arguments.resume, report=_show)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    document = {
        "folder": str(arguments.out),
        "policy": str(done.policy),
        "sha256": done.sha256,
        "iterations": done.progress.iteration,
        "searches": done.progress.searches,
        "valid_gain": done.progress.best,
        "parameters": done.parameters,
        "parity": done.parity,
        "seconds": round(done.progress.seconds, 3),
    }
    text = (
        f"trained       {document['iterations']:,} iterations, {document['searches']:,} searches\n"
        f"valid gain    {100 * done.progress.best:+.2f} % over no policy\n"
        f"written       {done.policy} ({done.parameters:,} parameters)\n"
        f"use it with   {use_of(config.policy, done.policy)}"
    )
    print(json.dumps(document) if arguments.json else text)
    return 0


def use_of(kind: str, policy: Path) -> str:
    """Return what plans with a policy; kind: `policy` of its configuration."""
    if kind == FUSION:
        return f"plan_fusion(problem, policy='{policy}') in Python"
    method = " --method regal-paper" if kind == "paper" else ""
    return f"regal optimize MODEL --devices 2{method} --policy {policy}"


def _show(progress: Progress) -> None:
    """Print where the run is: one line that is rewritten on a terminal, else one per iteration."""
    line = (
        f"iteration {progress.iteration}/{progress.iterations}"
        f"  searches {progress.searches:,}"
        f"  reward {100 * progress.reward:+.2f} %"
        f"  valid {100 * progress.valid:+.2f} % (best {100 * progress.best:+.2f} %)"
        f"  {progress.seconds:.0f} s"
    )
    end = "\r" if sys.stderr.isatty() else "\n"
    print(line, end=end, file=sys.stderr, flush=True)
