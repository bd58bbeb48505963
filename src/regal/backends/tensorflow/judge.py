"""Run trials in a child process, and say what its answers mean."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from regal.backends.tensorflow.request import Case, CaseResult, Job, Request, to_json
from regal.backends.types import DeviceRun, RuntimeCheck, Verification
from regal.child import installed, run_module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.backends.tensorflow.prepare import Runnable
    from regal.backends.tensorflow.request import Units

# What the runtime allocates for itself differs by some hundred bytes from run to run.
NOISE_BYTES = 1024
BEFORE, ORDERED = "before", "ordered"  # names of cases


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One entry: the graph as it was, the new one, and that for workers, if it is to run there.

    A file may leave it to chance whether a variable is read before or after it is written. A
    plan keeps the order of the file, and so does `ordered`: the graph as it was, in file order.
    """

    name: str  # "" where there is one entry
    before: Runnable
    ordered: Runnable | None
    after: Runnable
    workers: Runnable | None
    units: Units
    inner: tuple[str, ...] = ()  # nodes of units that lie inside loops


def judged(
    trials: Sequence[Trial], n_devices: int, *, seed: int, invocations: int, timeout_s: float
) -> Verification:
    """Return the verdict on all trials, which run in one child process.

    Args:
        trials: what to run.
        n_devices: of the plan.
        seed: of the inputs.
        invocations: runs of each graph.
        timeout_s: wall time for the child process.
    """
    with tempfile.TemporaryDirectory(prefix="regal-") as name:
        folder = Path(name)
        request = Request(
            jobs=tuple(_job(trial, number, folder) for number, trial in enumerate(trials)),
            n_devices=n_devices,
            seed=seed,
            invocations=invocations,
        )
        results, end = run_request(request, folder, timeout_s)
    checks: list[RuntimeCheck] = []
    reasons: dict[str, None] = {}
    for number, (trial, job) in enumerate(zip(trials, request.jobs, strict=True)):
        found = results[number] if number < len(results) else []
        # A case that is missing ended the child.
        found += [CaseResult(name=case.name, error=end) for case in job.cases[len(found) :]]
        before = found[0]
        if before.error:
            label = f"entry '{trial.name}': " if trial.name else ""
            reasons[f"{label}{before.error}"] = None
            continue
        ordered = next((result for result in found if result.name == ORDERED), None)
        for case, after in zip(job.cases, found, strict=True):
            if case.name not in (BEFORE, ORDERED):
                checks.append(_check(trial, case, before, ordered, after, n_devices))
    return Verification(checks=tuple(checks), skipped="; ".join(reasons))


def runtime_name() -> str:
    """Return name and version of TensorFlow, "" when it is not installed."""
    return installed("tensorflow-cpu", "tensorflow")


def run_request(
    request: Request, folder: Path, timeout_s: float
) -> tuple[list[list[CaseResult]], str]:
    """Return the results that a child process wrote down, and how it ended, in words."""
    request_path, result_path = folder / "request.json", folder / "result.json"
    request_path.write_text(json.dumps(to_json(request)))
    ended = run_module(
        "regal.backends.tensorflow.runner", [str(request_path), str(result_path)], timeout_s
    )
    end = f"TensorFlow {ended.end or 'ended early'}"
    if ended.end.startswith("ended"):
        end += "".join(f": {line[:200]}" for line in ended.stderr.strip().splitlines()[-1:])
    if not result_path.exists():
        return [], end
    rows = json.loads(result_path.read_text())
    return [[CaseResult(**result) for result in row] for row in rows], end


def first_difference(before: CaseResult, after: CaseResult) -> str:
    """Return the first output or variable that differs, in words; "" if none does."""
    for number, (wanted, found) in enumerate(zip(before.digests, after.digests, strict=False)):
        for output, (a, b) in enumerate(zip(wanted, found, strict=True)):
            if a != b:
                return f"output {output} differs in invocation {number}"
    if len(before.digests) != len(after.digests):
        return f"{len(before.digests)} invocations against {len(after.digests)}"
    for name, value in before.state.items():
        if after.state.get(name) != value:
            return f"variable '{name}' differs after {len(before.digests)} invocations"
    return ""


def _job(trial: Trial, number: int, folder: Path) -> Job:
    def case(name: str, what: Runnable, units: Units, *, workers: bool = False) -> Case:
        path = folder / f"{number}-{name}.pb"
        path.write_bytes(what.graph.SerializeToString())
        inner = trial.inner if units else ()
        return Case(name=name, graph=str(path), units=units, inner=inner, workers=workers)

    cases = [case(BEFORE, trial.before, ())]
    if trial.ordered is not None:
        cases.append(case(ORDERED, trial.ordered, ()))
    cases.append(case("after", trial.after, trial.units))
    if trial.workers is not None:
        cases.append(case("workers", trial.workers, trial.units, workers=True))
    return Job(
        cases=tuple(cases),
        feeds=trial.before.feeds,
        fetches=trial.before.fetches,
        targets=trial.before.targets,
        init=trial.before.init,
    )


def _check(
    trial: Trial,
    case: Case,
    before: CaseResult,
    ordered: CaseResult | None,
    after: CaseResult,
    n_devices: int,
) -> RuntimeCheck:
    kind = "worker processes" if case.workers else "logical CPU devices"
    where = "1 CPU device" if n_devices == 1 else f"{n_devices} {kind}"
    entry = f", entry '{trial.name}'" if trial.name else ""
    difference = f"the new graph fails: {after.error}" if after.error else ""
    difference = difference or first_difference(before, after)
    remarks = [after.misplaced, after.disordered]
    if difference and ordered is not None and not (after.error or ordered.error):
        by_chance, difference = difference, first_difference(ordered, after)
        if not difference:
            remarks.append(f"equal to the original run in the order of its file: {by_chance}")
    remarks.insert(0, difference)
    if before.filled:
        remarks.append(f"{before.filled} variables have made-up values: no initializer fills them")
    planned = sum(len(rows) for rows in trial.units)
    if after.traced and after.observed < planned:
        remarks.append(f"{after.observed} of {planned} ops were seen to run")
    is_seen = after.traced and after.observed > 0
    number = runtime_name().rpartition(" ")[2]
    return RuntimeCheck(
        runtime=f"tensorflow {number} on {where}{entry}",
        outputs_equal=not difference,
        before={"peak_bytes": max(before.peaks)} if before.peaks else {},
        after={"peak_bytes": max(after.peaks)} if after.peaks else {},
        invocations=len(after.digests),
        detail="; ".join(remark for remark in remarks if remark),
        noise_bytes=NOISE_BYTES,
        run_before=_device_run(before, 1),
        run_after=_device_run(after, n_devices),
        placement_honored=not after.misplaced if is_seen and n_devices > 1 else None,
        order_honored=not after.disordered if is_seen else None,
    )


def _device_run(result: CaseResult, n_devices: int) -> DeviceRun | None:
    counted = result.seconds[1:] or result.seconds
    if not counted:
        return None
    return DeviceRun(
        devices=tuple(result.devices[:n_devices]),
        peak_bytes=tuple(result.peaks[:n_devices]),
        median_s=median(counted),
        runs=len(counted),
    )
