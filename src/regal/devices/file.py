"""The JSON form of a system, as it stands in plan files, results and task graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.devices.fields import Fields
from regal.devices.quantities import LARGEST_BYTES, LARGEST_NS, require_rate
from regal.devices.toml import OTHERS
from regal.devices.types import Device, Link, Pool, System
from regal.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


def system_to_dict(system: System) -> dict[str, Any]:
    """Return the JSON object of a system; `system_from_dict` reads it back to an equal one."""
    return {
        "name": system.name,
        "devices": [_device_to_dict(device) for device in system.devices],
        "links": [
            {
                "from": system.devices[a].name,
                "to": system.devices[b].name,
                "latency_ns": link.latency_ns,
                "bytes_per_s": link.bytes_per_s,
            }
            for (a, b), link in system.links.items()
        ],
        "contention": system.has_contention,
        "capacity_counts_live": system.capacity_counts_live,
    }


def system_from_dict(value: object, where: str) -> System:
    """Return the system in a JSON object; `where` names it in messages: "'x.json': devices".

    Raises:
        UsageError: a key is unknown, missing or wrong, or a link is missing.
    """
    fields = Fields(value, where)
    devices = tuple(_device(table) for table in fields.tables("devices"))
    numbers = {device.name: i for i, device in enumerate(devices)}
    links: dict[tuple[int, int], Link] = {}
    for table in fields.tables("links"):
        ends = (table.text("from"), table.text("to"))
        unknown = next((end for end in ends if end not in numbers), None)
        if unknown is not None:
            raise UsageError(f"{table.where}: there is no device '{unknown}'")
        pair = (numbers[ends[0]], numbers[ends[1]])
        if pair in links or pair[0] == pair[1]:
            raise UsageError(f"{table.where}: a second link from '{ends[0]}' to '{ends[1]}'")
        links[pair] = Link(
            latency_ns=table.whole("latency_ns", 0, LARGEST_NS),
            bytes_per_s=table.rate("bytes_per_s", require_rate),
        )
        table.require_no_more()
    system = System(
        name=fields.text("name"),
        devices=devices,
        links=links,
        has_contention=fields.flag("contention"),
        capacity_counts_live=fields.flag("capacity_counts_live"),
    )
    fields.require_no_more()
    return system


def pool_to_dict(pool: Pool) -> dict[str, Any]:
    """Return the JSON object of a memory pool."""
    return {"name": pool.name, "bytes": pool.bytes, "bytes_per_s": pool.bytes_per_s}


def pool_from_fields(fields: Fields) -> Pool:
    """Return the memory pool in a JSON object.

    Raises:
        UsageError: a key is unknown, missing or wrong.
    """
    pool = Pool(
        name=fields.text("name"),
        bytes=fields.whole("bytes", 1, LARGEST_BYTES),
        bytes_per_s=fields.rate("bytes_per_s", _or_zero(require_rate)),
    )
    fields.require_no_more()
    return pool


def _device_to_dict(device: Device) -> dict[str, Any]:
    return {
        "name": device.name,
        "kind": device.kind,
        "flops_per_s": {dtype or OTHERS: rate for dtype, rate in device.flops_per_s.items()},
        "bytes_per_s": device.bytes_per_s,
        "launch_ns": device.launch_ns,
        "memory_bytes": device.memory_bytes,
        "kinds": list(device.kinds),
        "pools": [pool_to_dict(pool) for pool in device.pools],
    }


def _device(fields: Fields) -> Device:
    rates = fields.table("flops_per_s")
    memory = None
    if not fields.is_null("memory_bytes"):
        memory = fields.whole("memory_bytes", 1, LARGEST_BYTES)
    device = Device(
        name=fields.text("name"),
        kind=fields.text("kind"),
        flops_per_s={
            "" if dtype == OTHERS else dtype: rates.rate(dtype, require_rate)
            for dtype in rates.keys()  # noqa: SIM118
        },
        bytes_per_s=fields.rate("bytes_per_s", require_rate),
        launch_ns=fields.whole("launch_ns", 0, LARGEST_NS),
        memory_bytes=memory,
        kinds=fields.texts("kinds"),
        pools=tuple(pool_from_fields(table) for table in fields.tables("pools")),
    )
    fields.require_no_more()
    return device


def _or_zero(require: Callable[[float, object], float]) -> Callable[[float, object], float]:
    return lambda value, text: require(value, text) if value else 0.0
