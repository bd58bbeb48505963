"""Devices and links from TOML, with units; docs/devices.md explains the format."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from regal.devices.fields import Fields, fields_of_toml
from regal.devices.kinds import OP_KINDS
from regal.devices.quantities import (
    byte_rate_text,
    flop_rate_text,
    memory_text,
    parse_byte_rate,
    parse_flop_rate,
    parse_memory,
    parse_time_ns,
    time_text,
)
from regal.devices.types import MOST_DEVICES, Device, Link, Pool, System
from regal.errors import UsageError
from regal.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UNLIMITED = "unlimited"
OTHERS = "other"  # in files: the dtypes that are not named; "" in `Device.flops_per_s`


def read_system(path: Path, copies: int | None = None) -> System:
    """Return the system that a TOML file describes.

    Args:
        path: the file.
        copies: so many devices like the first one, on the default link, instead of all devices.

    Raises:
        UsageError: the file cannot be read or says something wrong; names file, table and key.
    """
    return system_from_toml(read_text(path, "devices file"), str(path), copies)


def system_from_toml(text: str, name: str, copies: int | None = None) -> System:
    """Return the system in a TOML text; `name` is that of the file, for messages.

    Raises:
        UsageError: says what is wrong in one line.
    """
    fields = fields_of_toml(text, f"devices file '{name}'")
    title = fields.text("name") if "name" in fields else name
    has_contention = fields.flag("contention") if "contention" in fields else True
    counts_live = fields.flag("capacity_counts_live") if "capacity_counts_live" in fields else True
    devices = _devices(fields)
    default = _link(fields.table("link")) if "link" in fields else None
    links = _links(fields, devices)
    fields.require_no_more()
    if copies is not None:
        devices = _copies(fields, devices, copies)
        title, links = f"{title}:{copies}", {}
    for pair in _pairs(devices):
        if pair not in links and default is None:
            a, b = (devices[i].name for i in pair)
            raise UsageError(
                f"{fields.where}: no link from '{a}' to '{b}'; add [link] for all pairs, or"
                " [[links]] with 'from' and 'to'"
            )
    if default is not None:
        links = {pair: links.get(pair, default) for pair in _pairs(devices)}
    return System(
        name=title,
        devices=devices,
        links=links,
        has_contention=has_contention,
        capacity_counts_live=counts_live,
    )


def _devices(fields: Fields) -> tuple[Device, ...]:
    devices: list[Device] = []
    for table in fields.tables("device") if "device" in fields else []:
        devices += _device(table)
        if len(devices) > MOST_DEVICES:
            raise UsageError(f"{fields.where}: more than {MOST_DEVICES} devices")
    if not devices:
        raise UsageError(f"{fields.where}: no device; add a [[device]]")
    names = [device.name for device in devices]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{fields.where}: two devices are called '{twice}'; rename one")
    return tuple(devices)


def _device(fields: Fields) -> list[Device]:
    name = fields.text("name")
    fields.where = f"{fields.where} '{name}'"
    kind = fields.text("kind")
    flops = _flops(fields.table("flops"))
    bandwidth = fields.quantity("bandwidth", parse_byte_rate)
    launch = fields.quantity("launch", parse_time_ns)
    pools = tuple(_pool(table) for table in fields.tables("pools")) if "pools" in fields else ()
    memory = sum(pool.bytes for pool in pools) or None
    if "memory" in fields:
        memory = fields.quantity("memory", _parse_limit)
    kinds = fields.texts("kinds") if "kinds" in fields else ()
    unknown = next((kind for kind in kinds if kind not in OP_KINDS), None)
    if unknown is not None:
        known = ", ".join(OP_KINDS)
        raise UsageError(f"{fields.where}: 'kinds' lists '{unknown}'; known kinds: {known}")
    count = fields.whole("count", 1, MOST_DEVICES) if "count" in fields else None
    fields.require_no_more()
    device = Device(
        name=name,
        kind=kind,
        flops_per_s=flops,
        bytes_per_s=bandwidth,
        launch_ns=launch,
        memory_bytes=memory,
        kinds=kinds,
        pools=pools,
    )
    return [device] if count is None else list(renamed(device, count))


def _parse_limit(text: str) -> int | None:
    return None if text == UNLIMITED else parse_memory(text)


def renamed(device: Device, count: int) -> tuple[Device, ...]:
    """Return `count` devices like this one: "gpu0", "gpu1", ..."""
    stem = device.name.rstrip("0123456789") or device.name
    return tuple(replace(device, name=f"{stem}{i}") for i in range(count))


def _flops(fields: Fields) -> dict[str, float]:
    rates = {
        "" if dtype == OTHERS else dtype: fields.quantity(dtype, parse_flop_rate)
        for dtype in fields.keys()  # noqa: SIM118
    }
    if not rates:
        raise UsageError(f'{fields.where}: no speed; write for example float32 = "14TFLOPS"')
    return rates


def _pool(fields: Fields) -> Pool:
    name, size = fields.text("name"), fields.quantity("memory", parse_memory)
    rate = fields.quantity("bandwidth", parse_byte_rate) if "bandwidth" in fields else 0.0
    fields.require_no_more()
    return Pool(name=name, bytes=size, bytes_per_s=rate)


def _link(fields: Fields) -> Link:
    latency = fields.quantity("latency", parse_time_ns)
    bandwidth = fields.quantity("bandwidth", parse_byte_rate)
    fields.require_no_more()
    return Link(latency_ns=latency, bytes_per_s=bandwidth)


def _links(fields: Fields, devices: tuple[Device, ...]) -> dict[tuple[int, int], Link]:
    numbers = {device.name: i for i, device in enumerate(devices)}
    links: dict[tuple[int, int], Link] = {}
    for table in fields.tables("links") if "links" in fields else []:
        ends = []
        for key in ("from", "to"):
            name = table.text(key)
            if name not in numbers:
                known = ", ".join(numbers)
                raise UsageError(f"{table.where}: '{key}' is '{name}'; the devices are {known}")
            ends.append(numbers[name])
        a, b = ends
        both = table.flag("both") if "both" in table else False
        link = _link(table)
        for pair in ((a, b), (b, a)) if both else ((a, b),):
            if a == b or pair in links:
                what = "leads to itself" if a == b else "is given twice"
                first, second = devices[pair[0]].name, devices[pair[1]].name
                raise UsageError(f"{table.where}: the link from '{first}' to '{second}' {what}")
            links[pair] = link
    return links


def _copies(fields: Fields, devices: tuple[Device, ...], copies: int) -> tuple[Device, ...]:
    if not 1 <= copies <= MOST_DEVICES:
        raise UsageError(f"{fields.where}: {copies} copies; give 1 to {MOST_DEVICES}")
    return renamed(devices[0], copies)


def _pairs(devices: tuple[Device, ...]) -> Iterator[tuple[int, int]]:
    numbers = range(len(devices))
    return ((a, b) for a in numbers for b in numbers if a != b)


def system_to_toml(system: System) -> str:
    """Return a TOML text that `system_from_toml` reads back to exactly this system."""
    lines = [f"name = {_quoted(system.name)}"]
    if not system.has_contention:
        lines.append("contention = false")
    if not system.capacity_counts_live:
        lines.append("capacity_counts_live = false")
    for device in system.devices:
        lines += ["", "[[device]]", *_device_lines(device)]
    counts = Counter(system.links.values())
    common = max(counts, key=lambda link: counts[link], default=None)
    if common is not None:
        lines += ["", "[link]", *_link_lines(common)]
    for (a, b), link in system.links.items():
        if link != common:
            ends = (system.devices[a].name, system.devices[b].name)
            lines += ["", "[[links]]", f"from = {_quoted(ends[0])}", f"to = {_quoted(ends[1])}"]
            lines += _link_lines(link)
    return "\n".join(lines) + "\n"


def _device_lines(device: Device) -> list[str]:
    rates = ", ".join(
        f'{_quoted(dtype or OTHERS)} = "{flop_rate_text(rate)}"'
        for dtype, rate in device.flops_per_s.items()
    )
    lines = [
        f"name = {_quoted(device.name)}",
        f"kind = {_quoted(device.kind)}",
        f"flops = {{ {rates} }}",
        f'bandwidth = "{byte_rate_text(device.bytes_per_s)}"',
        f'launch = "{time_text(device.launch_ns)}"',
    ]
    size = device.memory_bytes
    if size is not None or device.pools:
        lines.append(f'memory = "{UNLIMITED if size is None else memory_text(size)}"')
    if device.kinds:
        lines.append(f"kinds = [{', '.join(_quoted(kind) for kind in device.kinds)}]")
    if device.pools:
        lines.append(f"pools = [{', '.join(_pool_text(pool) for pool in device.pools)}]")
    return lines


def _pool_text(pool: Pool) -> str:
    rate = f', bandwidth = "{byte_rate_text(pool.bytes_per_s)}"' if pool.bytes_per_s else ""
    return f'{{ name = {_quoted(pool.name)}, memory = "{memory_text(pool.bytes)}"{rate} }}'


def _link_lines(link: Link) -> list[str]:
    return [
        f'latency = "{time_text(link.latency_ns)}"',
        f'bandwidth = "{byte_rate_text(link.bytes_per_s)}"',
    ]


def _quoted(text: str) -> str:
    """Return a TOML string: JSON's escapes are TOML's, too, but for pairs of surrogates."""
    return json.dumps(text, ensure_ascii=False)
