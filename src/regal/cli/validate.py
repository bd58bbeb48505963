"""`regal validate`: execute plans for real, compare with what was predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.cli import output
from regal.cost.profile import Profiles, read_profile
from regal.validation.executors import ExecutorOptions
from regal.validation.report import validation_text, validation_to_dict
from regal.validation.validate import ValidationOptions, validate_model

if TYPE_CHECKING:
    import argparse


def validate(arguments: argparse.Namespace) -> int:
    """Run `regal validate`: 0 when plans were executed, 1 when none could be."""
    profiles = tuple(read_profile(path) for path in arguments.profile)
    options = ValidationOptions(
        plans=arguments.plans,
        repeats=arguments.repeats,
        seed=arguments.seed,
        devices=arguments.devices,
        profile=Profiles(profiles) if profiles else None,
        executor=ExecutorOptions(
            invocations=arguments.invocations,
            seed=arguments.seed,
            timeout_s=arguments.timeout,
        ),
    )
    with output.progress("validating"):
        found = validate_model(
            arguments.model, options, shapes=dict(arguments.shape), dims=dict(arguments.dim)
        )
    document = validation_to_dict(found)
    output.print_result(document, validation_text(found), as_json=arguments.json)
    return 0 if any(not trial.measured.failure for trial in found.trials) else 1
