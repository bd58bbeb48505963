"""Live memory in a CP-SAT model: one interval per storage and device, one cumulative per device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.baselines.devices.cp_types import readers_of

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import IntVar

    from regal.baselines.devices.cp_types import DeviceModel


@dataclass(frozen=True, slots=True, kw_only=True)
class _Instance:
    """A storage on a device: there or not, and from when to when at least."""

    is_there: IntVar
    start: IntVar
    end: IntVar


def add_peaks(built: DeviceModel) -> list[IntVar]:
    """Add what each device holds over time; return the peak of each.

    An instance of a storage lives from the first start of a local writer or incoming transfer
    to the last end of a local toucher or outgoing transfer; outputs to the end of the run. The
    variables may only be too generous, so that minimizing the peak makes them tight.
    """
    problem, model = built.problem, built.model
    most = int(problem.storage_bytes.sum() + problem.workspace.sum()) // built.unit_bytes
    tensors: dict[int, list[int]] = {}
    for tensor, storage in enumerate(problem.tensor_storages.tolist()):
        if storage >= 0:
            tensors.setdefault(storage, []).append(tensor)
    readers = readers_of(problem)
    over_input = _written_over(built)
    outputs = set(problem.outputs.tolist())
    peaks = []
    for device in range(problem.n_devices):
        intervals, demands = [], []
        for storage, members in tensors.items():
            size = int(problem.storage_bytes[storage]) // built.unit_bytes
            if size == 0:
                continue
            instance = _Instance(
                is_there=model.new_bool_var(f"storage{storage} on {device}"),
                start=model.new_int_var(0, built.horizon, ""),
                end=model.new_int_var(0, built.horizon, ""),
            )
            for tensor in members:
                _add_maker(built, instance, tensor, device, is_output=tensor in outputs)
                _add_transfers(built, instance, tensor, device)
                for op in readers.get(tensor, []):
                    choices = over_input.get((op, storage), [])
                    _keep_for_reader(built, instance, op, device, choices)
            length = model.new_int_var(0, built.horizon, "")
            intervals.append(
                model.new_optional_interval_var(
                    instance.start, length, instance.end, instance.is_there, ""
                )
            )
            demands.append(size)
        for op, size in enumerate(problem.workspace.tolist()):
            time = int(problem.durations[op, device]) // built.unit_ns
            if size >= built.unit_bytes and device in built.runs_on[op] and time > 0:
                literal = built.runs_on[op][device]
                intervals.append(
                    model.new_optional_fixed_size_interval_var(built.starts[op], time, literal, "")
                )
                demands.append(size // built.unit_bytes)
        peak = model.new_int_var(0, most, f"peak{device}")
        model.add_cumulative(intervals, demands, peak)
        peaks.append(peak)
    return peaks


def _add_maker(
    built: DeviceModel, instance: _Instance, tensor: int, device: int, *, is_output: bool
) -> None:
    """Let the instance live while the tensor is made there, or lies there from the start."""
    problem, model = built.problem, built.model
    producer = int(problem.producers[tensor])
    if producer >= 0:
        literal = built.runs_on[producer].get(device)
        if literal is None:
            return
        model.add(instance.start <= built.starts[producer]).only_enforce_if(literal)
        model.add(instance.end >= built.ends[producer]).only_enforce_if(literal)
    else:
        home = built.homes.get(tensor)
        if home is None:  # no op reads it: it lies on the first device
            literal = model.new_constant(int(device == 0))
        elif device in home:
            literal = home[device]
        else:
            return
        model.add(instance.start == 0).only_enforce_if(literal)
    model.add_implication(literal, instance.is_there)
    if is_output and built.makespan is not None:
        model.add(instance.end >= built.makespan).only_enforce_if(literal)


def _add_transfers(built: DeviceModel, instance: _Instance, tensor: int, device: int) -> None:
    model, problem = built.model, built.problem
    arriving = built.sends.get((tensor, device))
    if arriving is not None:
        model.add_implication(arriving.is_sent, instance.is_there)
        model.add(instance.start <= arriving.start).only_enforce_if(arriving.is_sent)
        model.add(instance.end >= arriving.end).only_enforce_if(arriving.is_sent)
    producer = int(problem.producers[tensor])
    makers = built.runs_on[producer] if producer >= 0 else built.homes.get(tensor, {})
    if device not in makers:
        return
    for target in range(problem.n_devices):
        leaving = built.sends.get((tensor, target))
        if leaving is not None and target != device:
            model.add(instance.end >= leaving.end).only_enforce_if(makers[device], leaving.is_sent)


def _keep_for_reader(
    built: DeviceModel, instance: _Instance, op: int, device: int, choices: list[IntVar]
) -> None:
    """Keep the instance to the end of a reader; to its start, where the reader writes over it."""
    literal = built.runs_on[op].get(device)
    if literal is None:
        return
    built.model.add(instance.end >= built.starts[op]).only_enforce_if(literal)
    built.model.add(instance.end >= built.ends[op]).only_enforce_if(
        literal, *(~choice for choice in choices)
    )


def _written_over(built: DeviceModel) -> dict[tuple[int, int], list[IntVar]]:
    """Return, per op and storage that it reads, the choices to write over that storage."""
    over: dict[tuple[int, int], list[IntVar]] = {}
    into: dict[tuple[int, int], list[IntVar]] = {}
    for op, source, target in built.problem.in_place.tolist():
        choice = built.model.new_bool_var(f"op{op}: {target} over {source}")
        over.setdefault((op, source), []).append(choice)
        into.setdefault((op, target), []).append(choice)
    for choices in [*over.values(), *into.values()]:
        built.model.add_at_most_one(choices)
    return over
