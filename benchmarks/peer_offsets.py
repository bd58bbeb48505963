"""Planners that give offsets to buffers of a fixed order: ours and the peers.

Every planner takes the same boxes and a time limit. Peers that are packages are optional:
a planner that cannot run raises `Skipped` with the reason.
"""

from __future__ import annotations

import csv
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from regal.search.offsets import allocate

if TYPE_CHECKING:
    from benchmarks.peer_boxes import Boxes, Ints


class Skipped(Exception):  # noqa: N818 (it is an outcome, not an error)
    """A peer cannot answer here; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What each planner may use."""

    seconds: float
    vela_iterations: int
    minimalloc: Path | None


class Planner(Protocol):
    """A way to place boxes."""

    def __call__(self, boxes: Boxes, limits: Limits) -> Ints:
        """Return one offset per box.

        Raises:
            Skipped: the planner is not there, or has no answer within its limits.
        """
        ...


def tflm_rule(boxes: Boxes, limits: Limits) -> Ints:
    """Return what TFLM's greedy planner does: largest first, ties the later buffer first.

    Each goes into the first gap between placed buffers that live at the same time.
    """
    order = np.lexsort((-np.arange(len(boxes.size)), -boxes.size))
    return _greedy(boxes, order, _first_gap)


def litert_rule(boxes: Boxes, limits: Limits) -> Ints:
    """Return what LiteRT's arena does: largest first, into the smallest gap that fits.

    Buffers that live through the whole run come before all others; ties go to the buffer
    that is allocated first.
    """
    whole = (boxes.first == 0) & (boxes.last == boxes.last.max(initial=0))
    order = np.lexsort((boxes.first, -boxes.size, ~whole))
    return _greedy(boxes, order, _smallest_gap)


def vela_hill_climb(boxes: Boxes, limits: Limits) -> Ints:
    """Return the offsets of Ethos-U Vela's HillClimbAllocator."""
    if len(boxes.size) > _LARGEST_VELA:
        raise Skipped(f"more than {_LARGEST_VELA} boxes, and it takes no time limit")
    module = _package("ethosu.vela.hillclimb_allocation", "ethos-u-vela")
    ranges = [
        _VelaRange(int(a), int(b), int(size), boxes.alignment)
        for a, b, size in zip(boxes.first, boxes.last, boxes.size, strict=True)
    ]
    allocator = module.HillClimbAllocator(ranges, limits.vela_iterations, 1 << 62)
    return np.array(allocator.allocate(), dtype=np.int64)


_LARGEST_VELA = 1000  # 1,746 boxes: more than two CPU minutes for 500 iterations


@dataclass(frozen=True, slots=True)
class _VelaRange:
    """The part of Vela's LiveRange that its allocator reads."""

    start_time: int
    end_time: int
    size: int
    alignment: int

    def get_alignment(self) -> int:
        return self.alignment


def onnxsim_plan(boxes: Boxes, limits: Limits) -> Ints:
    """Return the offsets of onnxsim's plan_activation_memory.

    It wants a model: for every step one node makes the boxes that start there, and another
    reads those that end there. They are of an unknown kind, so nothing is done in place.
    """
    onnxsim = _package("onnxsim", "onnxsim")
    from onnx import TensorProto, helper

    names = [f"box{i}" for i in range(len(boxes.size))]
    infos = [
        helper.make_tensor_value_info(name, TensorProto.UINT8, [int(size)])
        for name, size in zip(names, boxes.size, strict=True)
    ]
    starts, ends = _by_step(boxes, boxes.first), _by_step(boxes, boxes.last)
    nodes = []
    for started, ended in zip(starts, ends, strict=True):
        made = [names[i] for i in started]
        nodes.append(helper.make_node("Start", [], made, domain="bench"))
        read = [names[i] for i in ended]
        nodes.append(helper.make_node("End", read, [], domain="bench"))
    graph = helper.make_graph(nodes, "boxes", [], [], value_info=infos)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("bench", 1)]
    model = helper.make_model(graph, opset_imports=opsets)
    plan = onnxsim.plan_activation_memory(model, run_shape_inference=False)
    at = {name: offset for name, (offset, _) in plan.tensor_offsets.items()}
    missing = [name for name in names if name not in at]
    if missing:
        raise Skipped(f"no offset for {len(missing)} of {len(names)} boxes")
    return np.array([at[name] for name in names], dtype=np.int64)


def minimalloc(boxes: Boxes, limits: Limits) -> Ints:
    """Return the offsets of google/minimalloc at the least capacity of a few that it solves.

    It decides one capacity at a time: the bound first, then larger ones.
    """
    if limits.minimalloc is None:
        raise Skipped("no binary: give --minimalloc PATH")
    bound = boxes.max_live
    grain = max(boxes.alignment, int(np.gcd.reduce(boxes.size)) if len(boxes.size) else 1)
    tried = sorted({-(-bound * step // 1000 // grain) * grain for step in _CAPACITY_STEPS})
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        source, result = Path(folder) / "in.csv", Path(folder) / "out.csv"
        with source.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("id", "lower", "upper", "size"))
            rows = zip(boxes.first, boxes.last, boxes.size, strict=True)
            writer.writerows((i, a, b + 1, size) for i, (a, b, size) in enumerate(rows))
        for capacity in tried:
            # Most of the time goes to the bound, which is what everybody wants.
            share = 0.6 if capacity == tried[0] else 0.4 / (len(tried) - 1)
            command = [
                str(limits.minimalloc), f"--capacity={capacity}", f"--input={source}",
                f"--output={result}",
            ]  # fmt: skip
            if _has_answer(command, result, share * limits.seconds):
                with result.open(newline="") as file:
                    at = {int(row["id"]): int(row["offset"]) for row in csv.DictReader(file)}
                return np.array([at[i] for i in range(len(at))], dtype=np.int64)
    raise Skipped(f"nothing up to {_CAPACITY_STEPS[-1] / 1000} x bound in {limits.seconds:g} s")


_CAPACITY_STEPS = (1000, 1005, 1020, 1050, 1100)  # thousandths of the bound


def _has_answer(command: list[str], result: Path, seconds: float) -> bool:
    result.unlink(missing_ok=True)
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and result.exists() and result.stat().st_size > 0


def cp_sat(boxes: Boxes, limits: Limits) -> Ints:
    """Return what OR-tools' CP-SAT finds: rectangles that must not overlap, least height."""
    if len(boxes.size) > _LARGEST_CP_SAT:
        raise Skipped(f"more than {_LARGEST_CP_SAT} boxes")
    cp_model = import_module("ortools.sat.python.cp_model")
    start = tflm_rule(boxes, limits)
    # In units of the common divisor: smaller domains, the same problem.
    unit = int(np.gcd.reduce(boxes.size))
    unit = unit if unit % boxes.alignment == 0 else boxes.alignment
    sizes = -(-boxes.size // unit)
    top = int((start + boxes.size).max()) // unit + 1
    model = cp_model.CpModel()
    offsets, steps, ranges = [], [], []
    height = model.new_int_var(boxes.max_live // unit, top, "height")
    for i, size in enumerate(sizes.tolist()):
        offset = model.new_int_var(0, top - size, f"offset{i}")
        model.add(offset + size <= height)
        model.add_hint(offset, int(start[i]) // unit)
        offsets.append(offset)
        length = int(boxes.last[i] - boxes.first[i] + 1)
        steps.append(model.new_fixed_size_interval_var(int(boxes.first[i]), length, ""))
        ranges.append(model.new_fixed_size_interval_var(offset, size, ""))
    model.add_no_overlap_2d(steps, ranges)
    model.minimize(height)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limits.seconds
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise Skipped(f"no solution in {limits.seconds:g} s")
    return np.array([solver.value(offset) for offset in offsets], dtype=np.int64) * unit


_LARGEST_CP_SAT = 2000


def regal_allocate(boxes: Boxes, limits: Limits) -> Ints:
    """Return our offsets."""
    outcome = allocate(boxes.first, boxes.last, boxes.size, alignment=boxes.alignment)
    return np.asarray(outcome.offsets, dtype=np.int64)


PLANNERS: dict[str, Planner] = {
    "tflm": tflm_rule,
    "litert": litert_rule,
    "onnxsim": onnxsim_plan,
    "vela": vela_hill_climb,
    "minimalloc": minimalloc,
    "cp-sat": cp_sat,
    "regal": regal_allocate,
}


class _Gap(Protocol):
    def __call__(self, taken: list[tuple[int, int]], size: int) -> int: ...


def _greedy(boxes: Boxes, order: Ints, gap: _Gap) -> Ints:
    """Return offsets that follow from placing the boxes one by one. Cost: O(N^2 log N)."""
    offsets = np.full(len(boxes.size), -1, dtype=np.int64)
    placed = np.zeros(len(boxes.size), dtype=bool)
    for i in order:
        meets = placed & (boxes.first <= boxes.last[i]) & (boxes.first[i] <= boxes.last)
        taken = sorted(
            zip(offsets[meets].tolist(), (offsets + boxes.size)[meets].tolist(), strict=True)
        )
        offsets[i] = gap(taken, int(boxes.size[i]))
        placed[i] = True
    return offsets


def _first_gap(taken: list[tuple[int, int]], size: int) -> int:
    end = 0
    for low, high in taken:
        if low - end >= size:
            break
        end = max(end, high)
    return end


def _smallest_gap(taken: list[tuple[int, int]], size: int) -> int:
    best, best_size, end = -1, 0, 0
    for low, high in taken:
        free = low - end
        if free >= size and (best < 0 or free < best_size):
            best, best_size = end, free
        end = max(end, high)
    return best if best >= 0 else end


def _by_step(boxes: Boxes, steps: Ints) -> list[list[int]]:
    groups: list[list[int]] = [[] for _ in range(int(boxes.last.max(initial=-1)) + 1)]
    for i, step in enumerate(steps.tolist()):
        groups[step].append(i)
    return groups


def _package(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise Skipped(f"package {package} is not installed ({error})") from error
