"""Text for people: results on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from regal.inspection import short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from regal.backends.types import RuntimeCheck, Verification
    from regal.comparison import Row
    from regal.graph.types import LoadedModel
    from regal.inspection import Inspection, LiveTensor
    from regal.result import Result
    from regal.search.allocation_csv import AllocateRun

UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))
MOST_LIVE_LINES = 12
LARGEST_SCALAR_BYTES = 16
ANY_PLAN = "(predicted); the same for every plan on one device"
UNPACKED = " (ONNX Runtime takes every buffer from the heap instead)"


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show a spinner on stderr while the block runs, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


def print_result(document: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print the JSON object of a result, or the text for people."""
    # Names may hold characters that the terminal's encoding lacks.
    encoding = sys.stdout.encoding or "utf-8"
    safe = text.encode(encoding, "backslashreplace").decode(encoding)
    print(json.dumps(document) if as_json else safe)


def result_text(result: Result, also_written: Sequence[Path] = ()) -> str:
    """Return the lines of `regal optimize`; `also_written` are the plan and the header."""
    bound = "proven optimal" if result.is_order_optimal else f"lower bound {result.peak_bound:,} B"
    packed = "equals its bound" if result.is_arena_optimal else "above its bound"
    lines = [
        f"model         {result.path} ({result.model.framework},"
        f" {len(result.model.graph.ops)} ops)",
        f"peak memory   {changed_bytes(result.before.peak_bytes, result.peak_bytes)}; {bound}",
        f"arena         {changed_bytes(result.before.arena_bytes, result.arena_bytes)}; {packed}",
        *_time_lines(result),
        f"search        {result.plan.method}, {result.plan.evaluations:,} evaluations,"
        f" {result.seconds:.2f} s",
    ]
    if result.capacity is not None:
        over = result.arena_bytes - result.capacity
        says = "fits" if over <= 0 else f"does not fit: {over:,} B too much"
        if over > 0 and result.peak_bound > result.capacity:
            says += f"; impossible by order and packing (at least {result.peak_bound:,} B)"
        lines.append(f"capacity      {result.capacity:,} B: {says}")
    if result.overflow_bytes:
        device = result.system.devices[0]
        lines.append(
            f"memory        does not fit: {result.overflow_bytes:,} B above the"
            f" {device.memory_bytes:,} B of '{device.name}', parameters and state included"
        )
    lines += [f"note          {note}" for note in result.notes]
    if result.out is not None:
        lines.append(f"written       {result.out}")
    lines += [f"written       {path}" for path in also_written]
    if result.verification is not None:
        lines.append(verification_text(result.verification))
    elif result.out is not None:
        lines.append(f"verified      skipped: {result.verify_skipped}")
    lines.append(
        f"repeat with   --method {result.plan.method} --seed {result.plan.seed}"
        f" --evaluations {max(result.plan.evaluations, 1)}"
    )
    return "\n".join(lines)


def _time_lines(result: Result) -> list[str]:
    """Return the predicted time, and where there are pools what lies in them and what it costs."""
    after, pools = result.time_ns, result.system.devices[0].pools
    if not pools:
        return [] if after is None else [f"running time  {time_text(after)} {ANY_PLAN}"]
    lines = []
    before, bound = result.time_of(result.before), result.time_bound_ns
    if after is not None and before is not None and bound is not None:
        lines = [
            f"running time  {changed_time(before, after)} (predicted);"
            f" {time_text(bound)} if all lay in '{pools[0].name}'"
        ]
    used = zip(pools, result.before.pool_bytes, result.plan.pool_bytes, strict=True)
    lines += [
        f"  {pool.name:<12}{old:,} B -> {new:,} B of {pool.bytes:,} B, with parameters and state"
        for pool, old, new in used
    ]
    spilled, spill_ns = sum(result.plan.pool_bytes[1:]), result.spill_ns_of(result.plan)
    if spilled:
        cost = "" if spill_ns is None else f": that costs {time_text(spill_ns)} per run"
        lines.append(f"spilled       {spilled:,} B do not fit in '{pools[0].name}'{cost}")
    return lines


def verification_text(verification: Verification) -> str:
    """Return one line per runtime."""
    lines = [_check_line(check) for check in verification.checks]
    if verification.skipped:
        lines.append(f"verified      skipped: {verification.skipped}")
    return "\n".join(lines)


def _check_line(check: RuntimeCheck) -> str:
    verdict = f"outputs equal in {check.invocations} runs" if check.outputs_equal else "NOT EQUAL"
    numbers = ", ".join(
        f"{_spoken(name)} {changed_bytes(check.before[name], value)}"
        for name, value in check.after.items()
        if name in check.before
    )
    parts = (f"{check.runtime}: {verdict}", *_honored(check), check.detail, numbers)
    return f"verified      {'; '.join(part for part in parts if part)}"


def inspection_text(path: str, model: LoadedModel, parts: Sequence[Inspection]) -> str:
    """Return the report of `regal inspect`."""
    blocks = []
    for part in parts:
        graph, plan = part.graph, part.plan
        lines = [
            f"model         {path} ({model.framework}), graph '{graph.name}':"
            f" {len(graph.ops)} ops, {len(graph.tensors)} tensors",
            f"peak memory   {plan.peak_bytes:,} B in the runtime's order;"
            f" lower bound {part.peak_bound:,} B",
            f"arena         {plan.arena_bytes:,} B with greedy-by-size offsets"
            + (UNPACKED if model.framework == "onnx" else ""),
            f"work          {part.flops:,} operations, {part.moved_bytes:,} B moved per run"
            + (f"; {part.uncounted_ops:,} ops are not counted" if part.uncounted_ops else ""),
        ]
        if model.framework == "onnx":
            lines.append(
                f"file order    {part.file_order_peak_bytes:,} B: what"
                " regal.onnxruntime.session runs; ONNX Runtime's default ignores it"
            )
        if part.peak_step >= 0:
            op = graph.ops[plan.order[part.peak_step]]
            lines.append(f"peak step     {part.peak_step}: op '{short(op.name)}' ({op.kind})")
        lines += [
            f"  {tensor.bytes:>12,} B  {_type(tensor)}'{short(tensor.name)}'"
            f"  steps {tensor.first_step}-{tensor.last_step}"
            for tensor in part.live_at_peak[:MOST_LIVE_LINES]
        ]
        if len(part.live_at_peak) > MOST_LIVE_LINES:
            rest = part.live_at_peak[MOST_LIVE_LINES:]
            lines.append(f"  {sum(t.bytes for t in rest):>12,} B  in {len(rest)} more tensors")
        if part.workspace_at_peak:
            lines.append(f"  {part.workspace_at_peak:>12,} B  workspace of the op")
        lines += [f"advice        {line}" for line in part.advice]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def comparison_text(rows: Sequence[Row]) -> str:
    """Return the table of `regal compare`, best first."""
    lines = [f"{'method':<16}{'peak B':>16}{'over bound':>12}{'arena B':>16}{'evals':>10}{'s':>9}"]
    for row in rows:
        if row.failure:
            lines.append(f"{row.method:<16}  {row.failure}")
            continue
        over = f"{100 * (row.peak_bytes / row.peak_bound - 1):.2f} %" if row.peak_bound else "-"
        mark = " *" if row.peak_bytes == row.peak_bound else ""
        lines.append(
            f"{row.method:<16}{row.peak_bytes:>16,}{over:>12}{row.arena_bytes:>16,}"
            f"{row.evaluations:>10,}{row.seconds:>9.3f}{mark}"
        )
    lines.append("* proven optimal: equals the best proven lower bound of all methods")
    return "\n".join(lines)


def allocation_text(run: AllocateRun, out: Path | None = None) -> str:
    """Return the lines of `regal allocate`; `out` is the file that it wrote, if it did."""
    answer = run.outcome.status.value + (f": {run.reason}" if run.reason else "")
    lines = [f"buffers       {run.n_buffers:,}", f"answer        {answer}"]
    if run.fits:
        arena, bound = run.outcome.arena_bytes, run.outcome.lower_bound
        proof = "equals its bound" if arena == bound else f"lower bound {bound:,} B"
        lines.append(f"arena         {arena:,} B; {proof}")
        if run.capacity is not None:
            lines.append(f"capacity      {run.capacity:,} B: fits")
    lines.append(f"search        {run.outcome.nodes:,} nodes, seed {run.seed}, {run.seconds:.3f} s")
    if out is not None:
        lines.append(f"written       {out}")
    return "\n".join(lines)


def facts_text(facts: dict[str, Any]) -> str:
    """Return one line per fact, and one per text of a list; sizes in bytes, times with units."""
    lines = []
    for key, value in facts.items():
        label = _spoken(key)
        if isinstance(value, list) and not all(isinstance(item, int) for item in value):
            lines += [f"{key.removesuffix('s'):<13} {item}" for item in value]
        elif isinstance(value, list):
            lines.append(f"{label:<13} {', '.join(_number(key, item) for item in value)}")
        elif isinstance(value, bool):
            lines.append(f"{label:<13} {'yes' if value else 'no'}")
        elif isinstance(value, int):
            lines.append(f"{label:<13} {_number(key, value)}")
        elif key == "time_s":
            lines.append(f"{'running time':<13} {time_text(round(value * 1e9))} (predicted)")
        else:
            lines.append(f"{label:<13} {value}")
    return "\n".join(lines)


def _number(key: str, value: int) -> str:
    return f"{value:,} B" if "_bytes" in key else f"{value:,}"


def time_text(ns: int) -> str:
    """Return a time with four digits and its unit."""
    for size, unit in UNITS:
        if ns >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns} ns"


def changed_time(before: int, after: int) -> str:
    """Return "before -> after" with the change in percent; times in ns."""
    percent = f" ({100 * (after / before - 1):+.1f} %)" if before else ""
    return f"{time_text(before)} -> {time_text(after)}{percent}"


def changed_bytes(before: int, after: int) -> str:
    """Return "before -> after" with the change in percent."""
    percent = f" ({100 * (after / before - 1):+.1f} %)" if before else ""
    return f"{before:,} B -> {after:,} B{percent}"


def _type(tensor: LiveTensor) -> str:
    """Return element type and shape with a gap behind; nothing if the graph does not say."""
    is_known = bool(tensor.shape) or tensor.bytes <= LARGEST_SCALAR_BYTES
    return f"{tensor.dtype}{list(tensor.shape)}  " if is_known else ""


def _spoken(name: str) -> str:
    return name.replace("_bytes", "").replace("_", " ")


def _honored(check: RuntimeCheck) -> list[str]:
    """Return whether the runtime kept to placement and order, where that was observed."""
    observed = {"placement": check.placement_honored, "order": check.order_honored}
    kept = [name for name, honored in observed.items() if honored]
    left = [f"{name} NOT honored" for name, honored in observed.items() if honored is False]
    return [*([f"{' and '.join(kept)} honored"] if kept else []), *left]
