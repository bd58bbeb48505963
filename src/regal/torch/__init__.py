"""PyTorch models that take less memory or time: `torch.compile(model, backend="regal")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.torch.settings import COMPILE_SECONDS, SECONDS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["optimize"]


def optimize(
    model: Any,
    *,
    objective: str = "memory",
    budget: int | None = None,
    compile_seconds: float = COMPILE_SECONDS,
    seconds: float | None = SECONDS,
    cache: bool | str | Path = True,
    memory_limit: int | None = None,
    seed: int = 0,
    dynamic: bool | None = None,
    fullgraph: bool = False,
) -> Any:
    """Return a module or function that computes what `model` does, with less memory or faster.

    It is `torch.compile` with this backend: graphs are captured when it is first called, for
    inference and for training; what cannot be planned runs as it was, and a log says why.

    Args:
        model: a module or a function of tensors.
        objective: "memory": order and frees, bit for bit equal; "time" or "balanced": groups,
            layouts and kernels as measured on this machine, equal up to rounding.
        budget: plans to try per graph; None: by its size.
        compile_seconds: wall time per graph for compiling its groups.
        seconds: wall time of the search per graph; None: no limit.
        cache: where orders are remembered: a folder, True for the user's own, False for nowhere.
        memory_limit: bytes that a training step may take: what is cheap is computed again.
        seed: of the search.
        dynamic: of `torch.compile`: whether sizes may change.
        fullgraph: of `torch.compile`: whether it is an error to capture less than all.

    Raises:
        UsageError: an option has a value that it cannot have.
        ImportError: torch is not installed.
    """
    import torch

    from regal.torch.backend import regal
    from regal.torch.settings import settings_of

    options: dict[str, object] = {
        "objective": objective,
        "budget": budget,
        "compile_seconds": compile_seconds,
        "seconds": seconds,
        "cache": cache,
        "memory_limit": memory_limit,
        "seed": seed,
    }
    settings_of(options)
    return torch.compile(
        model, backend=regal, options=options, dynamic=dynamic, fullgraph=fullgraph
    )
