"""Judge results that differ: by rounding, and by more."""

from __future__ import annotations

import math
from typing import Any

import torch

from regal.backends.torch.agreement import disagreement
from regal.backends.torch.exact import InDouble, wide_args
from regal.backends.torch.spreads import spreads_of
from tests.pytorch.fused_checks import traced


def agreements() -> dict[str, str]:
    """Judge pairs of results."""
    a = torch.arange(1, 9, dtype=torch.float32)
    noise, other = torch.tensor([3e-9, -2e-9]), torch.tensor([1e-9, 4e-9])
    exact = torch.zeros(2, dtype=torch.float64) + 1e-17
    first, second = torch.arange(8), torch.tensor([1, 1, 2, 3, 4, 5, 6, 7])
    # Of the exact run: an eighth differs from the second; all but one do. Wrong in all positions.
    near, far, reverse = torch.tensor([1, 1, 2, 3, 4, 5, 6, 6]), second.roll(1), first.flip(0)
    return {
        "equal": disagreement([a], [a.clone()]),
        "rounding": disagreement([a], [a * (1 + 1e-6)]),
        "one percent": disagreement([a], [a * 1.01]),
        "one nan": disagreement([a], [torch.where(a == 3, torch.nan, a)]),
        "zero": disagreement([a * 0], [a]),
        "same nan": disagreement([a / 0 - a / 0], [a / 0 - a / 0]),
        "other dtype": disagreement([a], [a.double()]),
        "fewer": disagreement([a, a], [a]),
        "noise": disagreement([noise], [other]),
        "noise beside the exact result": disagreement([noise], [other], lambda: [exact]),
        "more noise": disagreement([noise], [other * 20], lambda: [exact]),
        "nothing but rounding, then not a number": disagreement(
            [noise], [noise * math.nan], lambda: [exact]
        ),
        "exactly zero": disagreement([noise], [noise + 1], lambda: [exact * 0]),
        "wrong beside the exact result": disagreement([noise], [other + 1], lambda: [exact]),
        "saved ties": disagreement([second], [first], lambda: [near], frozenset({0})),
        "saved wrong": disagreement([second], [reverse], lambda: [first], frozenset({0})),
        "saved without a witness": disagreement([second], [reverse], lambda: [far], frozenset({0})),
        "ties for the caller": disagreement([second], [first], lambda: [near]),
    }


def means() -> dict[str, Any]:
    """Judge means that normalization subtracts: of values that cancel out, spread around zero."""

    def function(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> Any:
        made = torch.ops.aten._native_batch_norm_legit_functional.default(
            x, None, None, mean, var, True, 0.1, 1e-5
        )
        torch.ops.aten.copy_.default(mean, made[3])
        torch.ops.aten.copy_.default(var, made[4])
        return made[0], made[1], made[2], made[1] * 2

    x = torch.randn(4, 3, 8, 8)
    x -= x.mean((0, 2, 3), keepdim=True)
    state = torch.zeros(3), torch.ones(3)
    module = traced(function, x, *state)
    spreads = spreads_of(module)
    results = [*function(x, *state), *state]  # state is written
    found: dict[str, Any] = {"at": {i: each.position for i, each in spreads.items()}}

    def verdict(position: int, error: float) -> str:
        other = list(results)
        other[position] = other[position] + error
        return disagreement(results, other, spreads=spreads)

    for name, position in {"batch": 1, "running": 4, "no mean": 3}.items():
        found[name] = [verdict(position, error) for error in (1e-5, 1e-2, float("nan"))]
    return found


def sums() -> dict[str, Any]:
    """Judge gradients of biases: of terms that cancel out, and of all others."""

    def function(gradient: torch.Tensor, x: torch.Tensor, w: torch.Tensor) -> Any:
        parts = torch.ops.aten.convolution_backward.default(
            gradient, x, w, [3], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]
        )
        return parts[0], parts[2], gradient.sum((0, 2, 3), keepdim=True).view(3)

    gradient = torch.randn(4, 3, 8, 8)
    gradient -= gradient.mean((0, 2, 3), keepdim=True)
    args = gradient, torch.randn(4, 2, 8, 8), torch.randn(3, 2, 3, 3)
    run = InDouble(traced(function, *args))
    exact = run.run(*wide_args(list(args)))
    results = function(*args)
    length = gradient.double().square().sum((0, 2, 3)).sqrt()
    found: dict[str, Any] = {
        "lengths": {i: float((each - length).abs().max()) for i, each in run.lengths.items()}
    }

    def verdict(position: int, error: float) -> str:
        other = list(results)
        other[position] = other[position] + error
        return disagreement(results, other, lambda: exact, lengths=lambda: run.lengths)

    for name, position in {"bias": 1, "sum": 2, "no sum": 0}.items():
        found[name] = [verdict(position, error) for error in (1e-4, 1.0, float("nan"))]
    zero, some = torch.tensor([0.0, 1e-9]), torch.tensor([0.0, 5e-6])
    beside = {0: torch.tensor([0.0, 1.0])}
    found["terms of zeros"] = [
        disagreement([zero], [other], lengths=lambda: beside) for other in (some, some + 1e-6)
    ]
    counts = torch.tensor([100, 200])
    many = {0: torch.tensor([1e6, 1e6])}
    found["counts"] = disagreement([counts], [counts + 1], lengths=lambda: many)
    return found
