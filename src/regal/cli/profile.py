"""`regal profile`: measure, write the profile, say what it covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.cli import output
from regal.cost.profile import profile_to_json
from regal.cost.roofline import graph_cost
from regal.devices.presets import system_named
from regal.files import require_writable, write_atomically
from regal.frontends import load, require_ending
from regal.profiling.profile import profile_loaded
from regal.profiling.types import ProfileOptions

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from regal.cost.profile import Profile

MOST_SLOWEST = 5


def profile(arguments: argparse.Namespace) -> int:
    """Run `regal profile`."""
    out: Path = arguments.out
    require_ending(out, like=out.with_suffix(".json"))
    require_writable(out, inputs=[arguments.model], force=arguments.force)
    model = load(arguments.model, dict(arguments.shape), dict(arguments.dim))
    options = ProfileOptions(
        runs=arguments.runs,
        warmup=arguments.warmup,
        threads=arguments.threads,
        seed=arguments.seed,
        timeout_s=arguments.timeout,
    )
    with output.progress("measuring"):
        found = profile_loaded(model, options, arguments.model.name)
    write_atomically(out, profile_to_json(found).encode())
    coverage = graph_cost(model.graph, system_named("1"), found).coverage
    document = profiled_to_dict(found, str(arguments.model), str(out), coverage.get("profile", 0))
    output.print_result(document, profiled_text(document), as_json=arguments.json)
    return 0


def profiled_to_dict(found: Profile, model: str, out: str, covered: int) -> dict[str, Any]:
    """Return what `regal profile --json` prints: what was measured, and how much it covers."""
    slowest = sorted(found.times.items(), key=lambda item: (-item[1].ns, item[0]))
    return {
        "model": model,
        "output": out,
        "runtime": found.runtime,
        "machine": dict(found.machine),
        "threads": found.threads,
        "runs": found.runs,
        "warmup": found.warmup,
        "ops": found.ops,
        "covered_ops": covered,  # of the main graph
        "different_ops": len(found.times),
        "not_measured": dict(found.not_measured),
        "total_ns": found.total_ns,
        "profiled_ns": found.profiled_ns,
        "overhead_ns": found.overhead_ns,
        "slowest": [
            {"key": key, "ns": time.ns, "spread_ns": time.spread_ns}
            for key, time in slowest[:MOST_SLOWEST]
        ],
    }


def profiled_text(document: dict[str, Any]) -> str:
    """Return the lines of `regal profile`."""
    missing = sum(document["not_measured"].values())
    kinds = ", ".join(f"{kind} {count}" for kind, count in document["not_measured"].items())
    slower = document["profiled_ns"] > document["total_ns"]
    beside = (
        "the profiler slowed ops down, their times are scaled"
        if slower
        else f"{document['overhead_ns'] / 1e3:,.1f} us per op beside its kernel"
    )
    lines = [
        f"model         {document['model']}",
        f"measured by   {document['runtime']}, threads {document['threads']},"
        f" {document['runs']} runs after {document['warmup']} of warm-up",
        f"ops           {document['ops'] - missing} of {document['ops']} measured,"
        f" {document['different_ops']} different",
    ]
    if missing:
        lines.append(f"not measured  {kinds}")
    lines += [
        f"time          {document['total_ns'] / 1e3:,.1f} us per run; {beside}",
        *(
            f"  {row['ns'] / 1e3:>12,.1f} us (+- {row['spread_ns'] / 2e3:,.1f})  {row['key']}"
            for row in document["slowest"]
        ),
        f"written       {document['output']}",
    ]
    return "\n".join(lines)
