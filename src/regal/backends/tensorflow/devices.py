"""How TensorFlow calls the devices of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.backends.tensorflow.cluster import worker_device
from regal.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.devices.types import System


def tensorflow_devices(system: System) -> tuple[str, ...]:
    """Return TensorFlow's name of each device of `system`: "/device:GPU:0" for the first GPU.

    Kinds are numbered one by one; a kind that TensorFlow does not know, such as "npu", needs a
    plugin that registers it under that name.
    """
    count: dict[str, int] = {}
    names = []
    for device in system.devices:
        kind = device.kind.upper()
        number = count.get(kind, 0)
        count[kind] = number + 1
        names.append(f"/device:{kind}:{number}")
    return tuple(names)


def logical_cpus(count: int) -> tuple[str, ...]:
    """Return the names of `count` logical CPU devices of one process."""
    return tuple(f"/device:CPU:{number}" for number in range(count))


def worker_devices(count: int) -> tuple[str, ...]:
    """Return the names of the devices of `count` worker processes with one device each."""
    return tuple(worker_device(task) for task in range(count))


def require_devices(devices: Sequence[str], system: System) -> tuple[str, ...]:
    """Return `devices` if there is one different name per device of `system`.

    Raises:
        UsageError: says how many there should be.
    """
    if len(devices) != len(system.devices) or len(set(devices)) < len(devices):
        raise UsageError(
            f"{len(set(devices))} different TensorFlow devices are named for the"
            f" {len(system.devices)} devices of system '{system.name}'; give one for each"
        )
    return tuple(devices)
