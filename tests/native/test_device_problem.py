"""What the kernel makes of the rows of a problem on several devices, and what it refuses."""

from regal._native import DeviceFault
from tests.device_problems import pair_of_devices


def test_devices_are_one_class_only_if_nothing_changes_when_they_swap() -> None:
    assert pair_of_devices().native().device_class.tolist() == [0, 0]
    for other in (
        {"durations": ((3, 3), (2, 1))},
        {"capacity": (10, 11)},
        {"links": ((-1, 0), (1, -1)), "transfers": ((1, 4, 1), (1, 4, 1))},
        {"latency": ((0, 9), (8, 0))},
        {"reads": ((1, 1),)},  # nothing reads x: it lies on device 0
    ):
        assert pair_of_devices(**other).native().device_class.tolist() == [0, 1], other


def test_every_broken_problem_is_refused_with_its_fault() -> None:
    huge = 1 << 60
    for change, fault, guilty in (
        ({"reads": ((0, 3),)}, DeviceFault.BAD_INDEX, 0),
        ({"producers": (-1, 0, 2)}, DeviceFault.BAD_INDEX, 2),
        ({"outputs": frozenset({3})}, DeviceFault.BAD_INDEX, 0),
        ({"links": ((-1, 1), (0, -1))}, DeviceFault.BAD_INDEX, -1),
        ({"links": ((0, 0), (0, -1))}, DeviceFault.BAD_INDEX, 0),
        ({"resident_users": ((0, 0),)}, DeviceFault.BAD_INDEX, 0),
        ({"bytes": (5, 0, 4)}, DeviceFault.NEGATIVE_SIZE, 1),
        ({"capacity": (10, -1)}, DeviceFault.NEGATIVE_SIZE, 1),
        ({"durations": ((3, 3), (2, 0))}, DeviceFault.BAD_TIME, 1),
        ({"transfers": ((1, 0, 1),)}, DeviceFault.BAD_TIME, 1),
        ({"latency": ((0, -1), (9, 0))}, DeviceFault.BAD_TIME, 1),
        ({"bytes": (huge, huge, 4)}, DeviceFault.TOO_LARGE, 1),
        ({"durations": ((huge, 3), (2, huge + 1))}, DeviceFault.TOO_LARGE, 1),
        ({"controls": ((1, 0),)}, DeviceFault.CYCLE, 0),
        ({"in_place": ((0, 0, 1),)}, DeviceFault.BAD_IN_PLACE, 0),
        ({"durations": ((3, -1), (-1, 2)), "groups": (4, 4)}, DeviceFault.NO_DEVICE, 0),
    ):
        verdict, _ = pair_of_devices(**change).verdict_and_native()
        assert verdict.fault is fault, change
        assert verdict.guilty == guilty, change
