"""Transfers in a CP-SAT model: what is sent where, on which link, and who waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.baselines.devices.cp_types import Send, readers_of, weighted

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import IntervalVar, IntVar, LinearExpr

    from regal.baselines.devices.cp_types import DeviceModel


def add_sends(built: DeviceModel) -> None:
    """Add, per tensor and device that a reader can be on, whether the tensor is sent there."""
    model, problem = built.model, built.problem
    readers = readers_of(problem)
    hinted = {
        (int(t), int(built.known.device_of[b])): int(start)
        for (t, _, b), start in zip(
            built.known.schedule.sends.reshape(-1, 3),
            built.known.figures.send_start,
            strict=True,
        )
    }
    on_links: dict[tuple[int, int], list[IntervalVar]] = {}
    for tensor, ops in readers.items():
        makers = _makers(built, tensor, ops)
        if makers is None:
            continue
        for target in sorted({d for op in ops for d in built.runs_on[op]}):
            name = f"tensor{tensor} to {target}"
            is_sent = model.new_bool_var(name)
            model.add_hint(is_sent, (tensor, target) in hinted)
            at_home = [makers[target]] if target in makers else []
            for op in ops:
                if target in built.runs_on[op]:
                    model.add_bool_or([is_sent, ~built.runs_on[op][target], *at_home])
            for literal in at_home:
                model.add_implication(literal, ~is_sent)
            lengths = {
                a: int(problem.transfers[problem.link_classes[a, target], tensor]) // built.unit_ns
                for a in makers
                if a != target
            }
            if not lengths:
                continue
            producer = int(problem.producers[tensor])
            made = built.ends[producer] if producer >= 0 else model.new_constant(0)
            start: LinearExpr = made
            if problem.has_contention:
                start = model.new_int_var(0, built.horizon, name)
                model.add(start >= made)
                since = hinted.get((tensor, target), 0)
                model.add_hint(start, since // built.unit_ns)
                for a, length in lengths.items():
                    on_link = model.new_bool_var("")
                    model.add_bool_or([on_link, ~is_sent, ~makers[a]])
                    if length > 0:
                        on_links.setdefault((a, target), []).append(
                            model.new_optional_fixed_size_interval_var(start, length, on_link, "")
                        )
            if len(set(lengths.values())) == 1:
                end = start + next(iter(lengths.values()))
            else:
                end = start + weighted(list(lengths.values()), [makers[a] for a in lengths])
            built.sends[tensor, target] = Send(is_sent=is_sent, start=start, end=end)
    for intervals in on_links.values():
        model.add_no_overlap(intervals)


def _makers(built: DeviceModel, tensor: int, ops: list[int]) -> dict[int, IntVar] | None:
    """Return where a tensor is made, by device; None: all that touch it are always together."""
    problem, groups = built.problem, built.problem.native.group
    producer = int(problem.producers[tensor])
    touching = {int(groups[op]) for op in ops} | (
        {int(groups[producer])} if producer >= 0 else set()
    )
    if producer >= 0:
        return None if len(touching) == 1 else built.runs_on[producer]
    if len(touching) == 1:
        built.homes[tensor] = built.runs_on[ops[0]]
        return None
    # A graph input lies where one of its readers runs.
    devices = sorted({d for op in ops for d in built.runs_on[op]})
    home = {d: built.model.new_bool_var(f"input{tensor} on {d}") for d in devices}
    built.model.add_exactly_one(home.values())
    hinted = int(built.known.device_of[built.known.schedule.home[tensor]])
    for device, literal in home.items():
        there = [built.runs_on[op][device] for op in ops if device in built.runs_on[op]]
        built.model.add_bool_or([~literal, *there])
        built.model.add_hint(literal, device == hinted)
    built.homes[tensor] = home
    return home


def add_data_edges(built: DeviceModel) -> None:
    """Let readers wait for what they read."""
    model, problem = built.model, built.problem
    for producer, reader, tensor in problem.data_edges.tolist():
        model.add(built.starts[reader] >= built.ends[producer])
        sends = {
            d: built.sends[tensor, d] for d in built.runs_on[reader] if (tensor, d) in built.sends
        }
        times = set(problem.transfers[:, tensor].tolist())
        if not sends or (not problem.has_contention and max(times) < built.unit_ns):
            continue
        if problem.has_contention or len(times) > 1:
            _wait_for_sends(built, reader, sends)
            continue
        # One literal per edge propagates better than one per edge and device.
        is_cut = model.new_bool_var(f"{producer}-{reader}")
        known = built.known.placement
        model.add_hint(is_cut, bool(known[producer] != known[reader]))
        for device in built.runs_on[reader]:
            at_home = [
                built.runs_on[producer][d] for d in (device,) if d in built.runs_on[producer]
            ]
            model.add_bool_or([is_cut, ~built.runs_on[reader][device], *at_home])
        model.add(
            built.starts[reader] >= built.ends[producer] + times.pop() // built.unit_ns
        ).only_enforce_if(is_cut)
    for reader, tensor in problem.input_reads.tolist():
        _wait_for_sends(
            built,
            reader,
            {
                d: built.sends[tensor, d]
                for d in built.runs_on[reader]
                if (tensor, d) in built.sends
            },
        )


def _wait_for_sends(built: DeviceModel, reader: int, sends: dict[int, Send]) -> None:
    for device, send in sends.items():
        built.model.add(built.starts[reader] >= send.end).only_enforce_if(
            built.runs_on[reader][device], send.is_sent
        )
