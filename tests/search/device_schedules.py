"""Tiny problems of which all schedules can be tried."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tests.baselines.devices.test_cp_sat import all_schedules
from tests.device_problems import TinyDevices, random_devices

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["all_schedules", "small_problems"]


def small_problems(count: int) -> Iterator[tuple[int, TinyDevices]]:
    """Yield random problems whose schedules can all be tried, with their seeds."""
    found = 0
    for seed in itertools.count():
        tiny = random_devices(seed, most_ops=4, most_devices=2)
        if tiny.n_ops >= 2 and len(tiny.reads) <= 4:
            yield seed, tiny
            found += 1
        if found == count:
            return
