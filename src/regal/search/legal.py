"""Refuse orders that a search cannot start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def require_legal(problem: _native.OrderProblem, order: Sequence[int] | NDArray[np.int64]) -> None:
    """Raise unless `order` holds each op once, every op behind those that it needs.

    Raises:
        PlanError: says which rule is broken.
    """
    no_pairs = np.empty((0, 3), np.int64)
    verdict = _native.check_order(problem, np.asarray(order, np.int64), no_pairs)
    if verdict.fault is _native.OrderFault.NOT_A_PERMUTATION:
        raise PlanError(f"order of {len(order)} steps is no permutation of {problem.n_ops} ops")
    if verdict.fault is not _native.OrderFault.NONE:
        raise PlanError(f"op {verdict.first} runs before op {verdict.second}, which it needs")
