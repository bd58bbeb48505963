"""Tiny problems on several devices, with the figures of all their schedules."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tests.baselines.devices.test_cp_sat import all_schedules
from tests.device_problems import random_devices

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.device_problems import TinyDevices

__all__ = ["all_schedules", "small_problems"]


def small_problems(count: int) -> Iterator[tuple[int, TinyDevices]]:
    """Yield (seed, problem) for random problems whose schedules can all be tried."""
    problems = (
        (seed, random_devices(seed, most_ops=4, most_devices=2)) for seed in itertools.count()
    )
    small = ((seed, tiny) for seed, tiny in problems if tiny.n_ops >= 2 and len(tiny.reads) <= 4)
    yield from itertools.islice(small, count)
