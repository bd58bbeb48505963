"""Devices, links, and the system that they form. Plain numbers; no defaults are hidden here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from regal.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MOST_DEVICES = 256  # of a system: there are devices x devices links
HOST = "cpu"  # the kind of device that drives the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A memory of a device, such as SRAM; pools come fastest first.

    An op runs at the speed of the first pool that has room for all that it touches.
    """

    name: str
    bytes: int
    bytes_per_s: float = 0.0  # 0: as fast as the device says


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One processor that runs one op at a time.

    `flops_per_s` is the peak by dtype ("float32", "int8"); the key "" stands for the others.
    `memory_bytes` limits peak + parameters + state on the device; None: no limit.
    `kinds` are the normalized op kinds that it can run (see `regal.cost.work`); () = all.
    """

    name: str
    kind: str  # "cpu", "gpu", "npu": what `Op.devices` and `Op.times_ns` speak of
    flops_per_s: Mapping[str, float]
    bytes_per_s: float
    launch_ns: int
    memory_bytes: int | None = None
    kinds: tuple[str, ...] = ()
    pools: tuple[Pool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A directed link between two devices."""

    latency_ns: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Devices and the links between them.

    A link carries one tensor at a time; with `has_contention` false it carries any number.
    `capacity_counts_live` false: only parameters and state count against a device's memory, as
    in published cost models that fold activations into them.
    """

    name: str
    devices: tuple[Device, ...]
    links: Mapping[tuple[int, int], Link] = field(default_factory=dict)  # (source, target)
    has_contention: bool = True
    capacity_counts_live: bool = True

    def __post_init__(self) -> None:
        if not self.devices:
            raise UsageError(f"system '{self.name}' has no devices; give at least one")
        names = [device.name for device in self.devices]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"system '{self.name}' has two devices '{twice}'; rename one")
        pairs = [(a, b) for a in range(len(names)) for b in range(len(names)) if a != b]
        missing = next((pair for pair in pairs if pair not in self.links), None)
        if missing is not None:
            a, b = missing
            raise UsageError(f"system '{self.name}' has no link from '{names[a]}' to '{names[b]}'")


def allowed_devices(system: System, kinds: Collection[str]) -> tuple[bool, ...]:
    """Return, per device, whether it may run an op that is meant for these kinds of device.

    No kinds: all may. In a system without a CPU, what is meant for one may run anywhere: every
    other device has a host.
    """
    if not kinds:
        return (True,) * len(system.devices)
    has_host = any(device.kind == HOST for device in system.devices)
    if HOST in kinds and not has_host:
        return (True,) * len(system.devices)
    return tuple(device.kind in kinds for device in system.devices)


def copies_of(system: System, count: int) -> System:
    """Return `count` devices like the first one of `system`, linked like its first link.

    Raises:
        UsageError: more than one is asked for and the system has no link.
    """
    first = system.devices[0]
    link = system.links.get((0, 1))
    if count > 1 and link is None:
        raise UsageError(
            f"system '{system.name}' has one device and no link; it cannot be copied {count} times"
        )
    stem = first.name.rstrip("0123456789")
    return replace(
        system,
        name=f"{count} x {first.kind}",
        devices=tuple(replace(first, name=f"{stem}{i}") for i in range(count)),
        links={
            (a, b): link for a in range(count) for b in range(count) if a != b and link is not None
        },
    )


def with_memory(system: System, memory_bytes: int) -> System:
    """Return `system` with so much memory on every device, at most."""
    devices = []
    for device in system.devices:
        own = memory_bytes if device.memory_bytes is None else device.memory_bytes
        devices.append(replace(device, memory_bytes=min(memory_bytes, own)))
    return replace(system, devices=tuple(devices))
