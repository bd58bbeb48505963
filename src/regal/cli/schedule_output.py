"""Text for people: results on several devices."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from regal.cli.output import changed_bytes, changed_time, time_text, verification_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from regal.devices.types import System
    from regal.schedule_comparison import ScheduleRow
    from regal.schedule_result import ScheduleResult

MOST_NAMES = 16  # of devices on one line


def schedule_result_text(result: ScheduleResult, also_written: Sequence[Path] = ()) -> str:
    """Return the lines of `regal optimize` on several devices."""
    before, plan = result.before, result.plan
    lines = [
        f"model         {result.path} ({result.model.framework},"
        f" {len(result.model.graph.ops)} ops)",
        f"devices       {plan.system.name}: {_names(plan.system)}",
        f"objective     {plan.objective}",
        f"running time  {changed_time(before.time_ns, plan.time_ns)} (predicted);"
        f" {_bound(result.is_time_optimal, time_text(result.time_bound_ns))}",
        f"peak memory   {changed_bytes(before.peak_bytes, plan.peak_bytes)};"
        f" {_bound(result.is_peak_optimal, f'{result.peak_bound:,} B')}",
        f"arena         {changed_bytes(before.arena_bytes, plan.arena_bytes)}",
        *_device_lines(result),
        f"search        {plan.method}, {plan.evaluations:,} evaluations, {result.seconds:.2f} s",
    ]
    if not result.fits:
        lines.append(
            f"capacity      does not fit: at least {plan.overflow_bytes:,} B too much"
            " in every plan found"
        )
    lines += [f"note          {note}" for note in result.notes]
    lines += [f"written       {path}" for path in (result.out, *also_written) if path is not None]
    if result.verification is not None:
        lines.append(verification_text(result.verification))
    elif result.out is not None:
        lines.append(f"verified      skipped: {result.verify_skipped}")
    lines.append(
        f"repeat with   --method {plan.method} --seed {plan.seed}"
        f" --evaluations {max(plan.evaluations, 1)}"
    )
    return "\n".join(lines)


def schedule_comparison_text(rows: Sequence[ScheduleRow]) -> str:
    """Return the table of `regal compare` on several devices, best first."""
    lines = [
        f"{'method':<18}{'over best':>10}{'time':>12}{'peak B':>16}{'overflow B':>14}"
        f"{'evals':>8}{'s':>9}"
    ]
    for row in rows:
        if row.failure:
            lines.append(f"{row.method:<18}  {row.failure}")
            continue
        lines.append(
            f"{row.method:<18}{f'{100 * (row.value - 1):.2f} %':>10}{time_text(row.time_ns):>12}"
            f"{row.peak_bytes:>16,}{row.overflow_bytes:>14,}{row.evaluations:>8,}"
            f"{row.seconds:>9.3f}"
        )
    time_bound = max((row.time_bound_ns for row in rows), default=0)
    memory_bound = max((row.peak_bound for row in rows), default=0)
    lines.append(f"proven bounds: time {time_text(time_bound)}, peak {memory_bound:,} B")
    return "\n".join(lines)


def _device_lines(result: ScheduleResult) -> list[str]:
    """Return one line per device about the main entry; one for all of many that run nothing."""
    entry = result.plan.plans[0]
    lines = []
    counts = Counter(entry.schedule.placement)
    devices = result.plan.system.devices
    shown = range(len(devices)) if len(devices) <= MOST_NAMES else sorted(counts)
    for d in shown:
        device, ops = devices[d], counts[d]
        busy = sum(
            end - start
            for start, end, place in zip(
                entry.figures.op_start_ns,
                entry.figures.op_end_ns,
                entry.schedule.placement,
                strict=True,
            )
            if place == d
        )
        share = 100 * busy / max(entry.figures.time_ns, 1)
        limit = "" if device.memory_bytes is None else f" of {device.memory_bytes:,} B"
        lines.append(
            f"  {device.name:<12}{ops:,} ops, busy {share:.0f} %, peak"
            f" {entry.figures.peak_bytes[d]:,} B + {entry.figures.resident_bytes[d]:,} B"
            f" parameters and state{limit}"
        )
    idle = len(devices) - len(shown)
    return [*lines, *([f"  {idle} more devices run nothing"] if idle else [])]


def _names(system: System) -> str:
    names = [device.name for device in system.devices]
    if len(names) > MOST_NAMES:
        return f"{names[0]} ... {names[-1]} ({len(names)})"
    return ", ".join(names)


def _bound(is_optimal: bool, bound: str) -> str:
    return "proven optimal" if is_optimal else f"lower bound {bound}"
