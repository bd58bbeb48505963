"""All schedules of tiny problems on several devices."""

from __future__ import annotations

from tests.baselines.devices.test_cp_sat import all_schedules, small_problems

__all__ = ["all_schedules", "small_problems"]
