"""Whether two runs of a graph agree: equal up to the rounding of another order of additions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.utils._pytree import tree_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from regal.backends.torch.spreads import Spread

# Largest difference, as a share of the largest element of the reference.
TOLERANCES = {
    torch.float64: 1e-9,
    torch.float32: 1e-3,
    torch.float16: 2e-2,
    torch.bfloat16: 1e-1,
}
# The same in the mean over all elements: what is wrong in many places is wrong.
MEAN_SHARE = 0.1
# Of integers and truths: positions of nearly equal maxima, signs of nearly nothing.
MOST_CHANGED = 1e-3
# Of those that only the backward graph reads: equal maxima of a flat image are all right.
MOST_CHANGED_SAVED = 1e-2
NEARBY = 8.0
# Where many maxima are equal but for rounding (a pooled image that was enlarged before), so many
# positions differ from those in double precision, by the original and by the planned graph alike
# (BiFPN: 5 to 21 % by either). An original that differs in half of them would excuse anything.
NEARBY_SAVED = 2.0


def disagreement(
    reference: object,
    result: object,
    exact: Callable[[], object | None] | None = None,
    saved: frozenset[int] = frozenset(),
    spreads: Mapping[int, Spread] | None = None,
    lengths: Callable[[], Mapping[int, torch.Tensor]] | None = None,
) -> str:
    """Return where two results of a graph differ by more than rounding; "" if nowhere.

    A mean of what cancels out is nothing but rounding, whatever computes it. So where the two
    differ by more, both are compared with the same graph in double precision: the planned one may
    be NEARBY times as far from that as the original; of saved integers NEARBY_SAVED times as many
    may differ, unless that would be all of them. A mean that normalization subtracts may instead
    differ by the tolerance as a share of the spread around it, a sum as a share of the length of
    its terms.

    Args:
        reference: of the original graph.
        result: of the planned one.
        exact: computes what the original graph yields in double precision; None: it cannot.
        saved: positions of results that only the backward graph reads.
        spreads: position of a mean -> where its spread is found.
        lengths: computes position of a sum -> length of the terms of each.
    """
    left, right = tree_leaves(reference), tree_leaves(result)
    truth: list[object] | None = None
    if len(left) != len(right):
        return f"{len(right)} results instead of {len(left)}"
    for i, (a, b) in enumerate(zip(left, right, strict=True)):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            if a.shape != b.shape or a.dtype != b.dtype:
                return f"result {i} has another shape or dtype"
            most = MOST_CHANGED_SAVED if i in saved else MOST_CHANGED
            if found := _difference(a.detach(), b.detach(), most):
                spread = (spreads or {}).get(i)
                if spread and _is_small_beside(a, b, spread.deviation(left[spread.position])):
                    continue
                if truth is None:
                    whole = None if exact is None else exact()
                    truth = [None] * len(left) if whole is None else tree_leaves(whole)
                if _is_as_near(a, b, truth[i], is_saved=i in saved):
                    continue
                length = None if lengths is None else lengths().get(i)
                if length is None or not _is_small_beside(a, b, length.view_as(a)):
                    return f"result {i} {found}"
        elif type(a) is not type(b) or (not isinstance(a, torch.Tensor) and a != b):
            return f"result {i} is {b!r} instead of {a!r}"
    return ""


def _is_as_near(a: torch.Tensor, b: torch.Tensor, truth: object, *, is_saved: bool) -> bool:
    if not isinstance(truth, torch.Tensor) or truth.shape != a.shape:
        return False
    if is_saved and truth.dtype is a.dtype and not a.dtype.is_floating_point:
        return _changed(truth, b) <= NEARBY_SAVED * _changed(truth, a) < 1.0
    if truth.dtype is not torch.float64 or not a.is_floating_point():
        return False
    mine, other = _errors(truth, a.detach()), _errors(truth, b.detach())
    return other[0] <= NEARBY * mine[0] and other[1] <= NEARBY * mine[1]


def _is_small_beside(a: torch.Tensor, b: torch.Tensor, deviation: torch.Tensor) -> bool:
    """Return whether two results differ by the tolerance at most, as a share of the deviation."""
    if deviation.shape != a.shape or not a.is_floating_point():
        return False
    limit = TOLERANCES.get(a.dtype, 1e-1)
    off = (a.detach().double() - b.detach().double()).abs()
    shares = torch.where(off == 0.0, off, off / deviation)  # terms that are all zero say nothing
    # What is not finite compares as false.
    return bool(shares.max() <= limit) and bool(shares.mean() <= limit * MEAN_SHARE)


def _difference(a: torch.Tensor, b: torch.Tensor, most: float) -> str:
    if not a.numel() or torch.equal(a, b):
        return ""
    if a.is_complex():
        return _difference(torch.view_as_real(a), torch.view_as_real(b), most)
    if not a.is_floating_point():
        changed = _changed(a, b)
        return f"differs in {changed:.2%} of its elements" if changed > most else ""
    limit = TOLERANCES.get(a.dtype, 1e-1)
    largest, mean = _shares(a, b)
    if math.isinf(largest):
        return "differs where one of the two is not finite, or all of the original is zero"
    if largest > limit or mean > limit * MEAN_SHARE:
        return f"differs by {largest:.1e} of its largest element, {mean:.1e} in the mean"
    return ""


def _changed(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a != b).double().mean())


def _shares(a: torch.Tensor, b: torch.Tensor) -> tuple[float, float]:
    """Return the largest and the mean difference, as shares of the largest finite element."""
    largest, mean = _errors(a, b)
    if largest == 0.0:
        return 0.0, 0.0
    scale = float(torch.where(torch.isfinite(a), a.double().abs(), 0.0).max())
    return (largest / scale, mean / scale) if scale else (math.inf, math.inf)


def _errors(a: torch.Tensor, b: torch.Tensor) -> tuple[float, float]:
    """Return the largest and the mean difference; infinite where one of two is not finite."""
    finite = torch.isfinite(a)
    same = torch.where(finite, torch.isfinite(b), (a == b) | (a.isnan() & b.isnan()))
    if not bool(same.all()):
        return math.inf, math.inf
    off = torch.where(finite, (a.double() - b.double()).abs(), 0.0)
    return float(off.max()), float(off.mean())
