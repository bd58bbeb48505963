"""Measured op times: what a profile holds, and its file, `regal.profile/1` (docs/devices.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from regal.cost.keys import op_key
from regal.devices.fields import Fields
from regal.devices.quantities import LARGEST_NS
from regal.errors import UsageError
from regal.files import read_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from regal.graph.types import Graph, Op

SCHEMA = "regal.profile/1"
MOST_COUNT = 10**9


class OpTimes(Protocol):
    """Where measured times come from."""

    def times_of(self, op: Op, graph: Graph) -> Mapping[str, int]:
        """Return what an op takes in ns, by kind of device; {} where nothing is known."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTime:
    """What ops with one key took, kernel alone: the middle of the samples, and their spread."""

    ns: int
    spread_ns: int  # between the quartiles
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Op times measured on one kind of device. They hold for ops of any model with these keys."""

    model: str
    framework: str
    runtime: str  # name and version
    device_kind: str
    machine: Mapping[str, str]
    threads: int
    runs: int  # that count, after the warm-up
    warmup: int
    overhead_ns: int  # what the runtime takes per op beside its kernel
    total_ns: int  # of the fastest run, wall time, without the profiler
    profiled_ns: int  # of all kernels of the main graph, as the profiler said it
    ops: int  # of the model, bodies included
    not_measured: Mapping[str, int]  # kind -> ops that the runtime never ran or did not report
    times: Mapping[str, OpTime] = field(repr=False)  # by key

    def times_of(self, op: Op, graph: Graph) -> Mapping[str, int]:
        """Return what an op takes by kind of device, {} where the profile has no such op."""
        found = self.times.get(op_key(op, graph))
        return {self.device_kind: found.ns + self.overhead_ns} if found is not None else {}


@dataclass(frozen=True, slots=True)
class Profiles:
    """Several profiles as one: of the same kind of device, the last that knows an op decides."""

    profiles: tuple[Profile, ...]

    def times_of(self, op: Op, graph: Graph) -> Mapping[str, int]:
        """Return what an op takes by kind of device."""
        found: dict[str, int] = {}
        for profile in self.profiles:
            found |= profile.times_of(op, graph)
        return found


def profile_to_json(profile: Profile) -> str:
    """Return the profile file; the same profile gives the same bytes."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "model": profile.model,
        "framework": profile.framework,
        "runtime": profile.runtime,
        "device_kind": profile.device_kind,
        "machine": dict(profile.machine),
        "threads": profile.threads,
        "runs": profile.runs,
        "warmup": profile.warmup,
        "overhead_ns": profile.overhead_ns,
        "total_ns": profile.total_ns,
        "profiled_ns": profile.profiled_ns,
        "ops": profile.ops,
        "not_measured": dict(sorted(profile.not_measured.items())),
        "times": [
            {"key": key, "ns": t.ns, "spread_ns": t.spread_ns, "samples": t.samples}
            for key, t in sorted(profile.times.items())
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def read_profile(path: Path) -> Profile:
    """Return the profile in a file.

    Raises:
        UsageError: it cannot be read, is no profile, or holds what no profile holds.
    """
    return profile_from_json(read_file(path, "profile file"), str(path))


def profile_from_json(data: bytes, name: str = "profile") -> Profile:
    """Return the profile that these bytes hold.

    Raises:
        UsageError: not JSON, not this schema, or a key is unknown, missing or wrong.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"profile file '{name}' is not JSON: {str(error).splitlines()[0]}"
        ) from None
    fields = Fields(document, f"profile file '{name}'")
    if "schema" not in fields or fields.text("schema") != SCHEMA:
        raise UsageError(f"{fields.where} has another schema than '{SCHEMA}'")
    machine, missing = fields.table("machine"), fields.table("not_measured")
    profile = Profile(
        model=fields.text("model"),
        framework=fields.text("framework"),
        runtime=fields.text("runtime"),
        device_kind=fields.text("device_kind"),
        machine={key: machine.text(key) for key in machine.keys()},  # noqa: SIM118
        threads=fields.whole("threads", 1, MOST_COUNT),
        runs=fields.whole("runs", 1, MOST_COUNT),
        warmup=fields.whole("warmup", 0, MOST_COUNT),
        overhead_ns=fields.whole("overhead_ns", 0, LARGEST_NS),
        total_ns=fields.whole("total_ns", 0, LARGEST_NS),
        profiled_ns=fields.whole("profiled_ns", 0, LARGEST_NS),
        ops=fields.whole("ops", 0, MOST_COUNT),
        not_measured={
            key: missing.whole(key, 1, MOST_COUNT)
            for key in missing.keys()  # noqa: SIM118
        },
        times=_times(fields),
    )
    fields.require_no_more()
    return profile


def _times(fields: Fields) -> dict[str, OpTime]:
    times: dict[str, OpTime] = {}
    for table in fields.tables("times"):
        key = table.text("key")
        if key in times:
            raise UsageError(f"{table.where}: '{key}' is there twice")
        times[key] = OpTime(
            ns=table.whole("ns", 1, LARGEST_NS),
            spread_ns=table.whole("spread_ns", 0, LARGEST_NS),
            samples=table.whole("samples", 1, MOST_COUNT),
        )
        table.require_no_more()
    return times
