"""How a model is measured."""

from __future__ import annotations

from dataclasses import dataclass

from regal.errors import UsageError

MOST_RUNS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileOptions:
    """How often a model runs, and within which limits."""

    runs: int = 20
    warmup: int = 3
    threads: int = 1
    seed: int = 0
    timeout_s: float = 300.0  # for each child process

    def __post_init__(self) -> None:
        if not 1 <= self.runs <= MOST_RUNS or not 0 <= self.warmup <= MOST_RUNS:
            raise UsageError(
                f"profile: {self.runs} runs after {self.warmup} of warm-up;"
                f" give 1 to {MOST_RUNS} runs"
            )
