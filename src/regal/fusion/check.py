"""The judge of fusion plans for one device: shares no code with what finds them.

Times come from the formula of `FusionProblem`, memory by painting every step that a storage lives.
Several devices: what is judged here holds there too; times and memory then follow from the graph of
kernels (`regal.fusion.contract`), which the checker of schedules judges.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from regal.cost.types import FORBIDDEN
from regal.errors import PlanError
from regal.fusion.bounds import time_bound
from regal.fusion.types import CONTIGUOUS, FusionFigures, LayoutRule
from regal.graph.memory import counted_storages
from regal.graph.types import ABSENT
from regal.plan.problem import in_place_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from regal.fusion.types import FusionPlan, FusionProblem, Kernel

# What holds a tensor's bytes: ("own", storage of the graph), or ("copy", tensor).
Place = tuple[str, int]


def check_fusion(
    problem: FusionProblem,
    plan: FusionPlan,
    *,
    capacity: int | None = None,
    time_bound_ns: int | None = None,
) -> FusionFigures:
    """Return the figures of `plan` on one device, recomputed from its decisions alone.

    Args:
        problem: N ops.
        plan: what to judge.
        capacity: bytes that the peak may take; None: any.
        time_bound_ns: the bound of the problem where it is known; None: it is computed.

    Raises:
        PlanError: the plan breaks a rule; the message names it.

    Cost: O(N^2) at worst; a few ms for 300 ops.
    """
    if plan.transfers:
        raise PlanError(
            f"plan sends tensor {plan.transfers[0].tensor} to another device; it is judged on one"
        )
    judge = Judge(problem, plan)
    judge.require_legal()
    peak = judge.peak_bytes()
    times = tuple(judge.kernel_ns(kernel) for kernel in plan.kernels)
    return FusionFigures(
        time_ns=sum(times),
        peak_bytes=(peak,),
        overflow_bytes=max(0, peak - capacity) if capacity is not None else 0,
        kernel_ns=times,
        time_bound_ns=time_bound(problem) if time_bound_ns is None else time_bound_ns,
    )


class Judge:
    """One plan of one problem; see `check_fusion`."""

    def __init__(self, problem: FusionProblem, plan: FusionPlan) -> None:
        self._problem = problem
        self._graph = problem.graph
        self._plan = plan
        self._step: dict[int, int] = {}
        for step, kernel in enumerate(plan.kernels):
            for op in kernel.ops:
                if not 0 <= op < len(self._graph.ops):
                    raise PlanError(f"kernel {step} has op {op}; the graph has no such op")
                if op in self._step:
                    raise PlanError(
                        f"op {self._op(op)} is in two kernels, {self._step[op]}, {step}"
                    )
                self._step[op] = step
        missing = [i for i in range(len(self._graph.ops)) if i not in self._step]
        if missing:
            raise PlanError(f"op {self._op(missing[0])} is in no kernel")
        self._maker = {
            t: i for i, op in enumerate(self._graph.ops) for t in op.outputs if t != ABSENT
        }

    def require_legal(self) -> None:
        """Raise PlanError if the kernels, their copies or their order break a rule."""
        for step, kernel in enumerate(self._plan.kernels):
            if not 0 <= kernel.device < self._problem.n_devices or kernel.layout not in {0, 1}:
                raise PlanError(
                    f"kernel {step} is on device {kernel.device} in layout {kernel.layout};"
                    f" there are {self._problem.n_devices} devices and the layouts 0 and 1"
                )
            if not kernel.is_copy:
                self._require_group(step, kernel)
        self._require_copies()
        for i, op in enumerate(self._graph.ops):
            for earlier in self._needs(i):
                if self._step[earlier] > self._step[i]:
                    raise PlanError(
                        f"op '{op.name}' runs in kernel {self._step[i]}, before {self._op(earlier)}"
                        f" in kernel {self._step[earlier]}, which it needs"
                    )

    def _require_group(self, step: int, kernel: Kernel) -> None:
        problem, ops = self._problem, kernel.ops
        where = f"kernel {step}"
        for op in ops:
            rule = problem.layout_rules[op]
            if rule is LayoutRule.FIXED and kernel.layout != CONTIGUOUS:
                raise PlanError(f"{where}: op {self._op(op)} can only be contiguous")
            if problem.alone_ns[op][kernel.device][0] == FORBIDDEN:
                raise PlanError(f"{where}: op {self._op(op)} cannot run on device {kernel.device}")
        if len(ops) > 1 and len(ops) > problem.most_ops:
            raise PlanError(f"{where} has {len(ops)} ops; {problem.most_ops} at most")
        for a in problem.anchors.intersection(ops):
            for b in (problem.anchors | problem.not_with_anchors).intersection(ops) - {a}:
                raise PlanError(f"{where}: {self._op(a)} and {self._op(b)} cannot share a kernel")
        place = {op: position for position, op in enumerate(ops)}
        joined = {op: {op} for op in ops}
        for op in ops:
            for earlier in self._needs(op):
                if earlier in place and place[earlier] > place[op]:
                    raise PlanError(
                        f"{where}: op {self._op(op)} comes before {self._op(earlier)},"
                        " which it needs"
                    )
            for tensor in self._graph.ops[op].inputs:
                maker = self._maker.get(tensor, -1)
                if maker not in place:
                    continue
                if (maker, op) not in problem.pairs:
                    raise PlanError(
                        f"{where}: {self._op(maker)} and {self._op(op)} cannot be fused"
                    )
                both = joined[maker] | joined[op]
                for member in both:
                    joined[member] = both
        if len(joined[ops[0]]) != len(ops):
            raise PlanError(f"{where}: its {len(ops)} ops are not connected by what they read")

    def _require_copies(self) -> None:
        step_of: dict[int, int] = {}
        for step, kernel in enumerate(self._plan.kernels):
            if kernel.is_copy and step_of.setdefault(kernel.tensor, step) != step:
                raise PlanError(f"tensor {kernel.tensor} is copied twice: kernels"
                                f" {step_of[kernel.tensor]} and {step}")  # fmt: skip
        demanded = {
            t for t in self._problem.two_layouts if self._asked.get(t, set()) - {self._made_in(t)}
        }
        for tensor, step in step_of.items():
            if tensor not in demanded:
                raise PlanError(f"kernel {step} copies tensor {tensor}, which nobody asks for")
            if self._plan.kernels[step].layout == self._made_in(tensor):
                raise PlanError(f"kernel {step} copies tensor {tensor} into its own layout")
            maker = self._maker.get(tensor)
            if maker is not None and self._step[maker] >= step:
                raise PlanError(f"kernel {step} copies tensor {tensor} before it is made")
        for tensor in sorted(demanded):
            if tensor not in step_of:
                raise PlanError(f"tensor {tensor} is needed in both layouts and is not copied")
        for i, op in enumerate(self._graph.ops):
            for tensor in op.inputs:
                if tensor not in demanded or self._layout(i) == self._made_in(tensor):
                    continue
                if self._step[i] < step_of[tensor]:
                    raise PlanError(f"op '{op.name}' runs before the copy that it reads")

    @cached_property
    def _asked(self) -> dict[int, set[int]]:
        """Return tensor -> the layouts in which it is read or returned."""
        asked: dict[int, set[int]] = {}
        for i, op in enumerate(self._graph.ops):
            for tensor in op.inputs:
                asked.setdefault(tensor, set()).add(self._layout(i))
        for tensor, layout in zip(self._graph.outputs, self._problem.output_layouts, strict=True):
            if layout in {0, 1}:
                asked.setdefault(tensor, set()).add(layout)
        return asked

    def kernel_ns(self, kernel: Kernel) -> int:
        """Return what a kernel takes on its device."""
        problem, device = self._problem, kernel.device
        if kernel.is_copy:
            return problem.convert_ns[kernel.tensor][device]
        real = [op for op in kernel.ops if not self._is_view(op)]
        alone = [problem.alone_ns[op][device][kernel.layout] for op in real or kernel.ops]
        if len(real) <= 1:
            return sum(alone)
        work = sum(problem.work_ns[op][device][kernel.layout] for op in real)
        inside = set(kernel.ops)
        border = 0
        read: dict[Place, set[int]] = {}
        for op in real:
            for tensor in self._graph.ops[op].inputs:
                if tensor != ABSENT:
                    base, is_copy = self._base(tensor, kernel.layout)
                    if is_copy or self._maker.get(base, -1) not in inside:
                        read.setdefault(("copy" if is_copy else "own", base), set()).add(tensor)
            for tensor in self._graph.ops[op].outputs:
                if tensor != ABSENT and self._escapes(tensor, inside):
                    border += problem.write_ns[tensor][device]
        for (_, base), tensors in read.items():
            views = sum(problem.read_ns[t][device] for t in tensors)
            border += min(views, problem.read_ns[base][device])
        return problem.launch_ns[device] + max(work, border)

    def _escapes(self, tensor: int, inside: set[int]) -> bool:
        """Return whether the bytes of a tensor that a kernel makes are written to memory."""
        if self._problem.view_of[tensor] >= 0:
            return False
        users = self._users.get(tensor, set())
        return not users or not users <= inside

    @cached_property
    def _users(self) -> dict[int, set[int]]:
        """Return tensor -> the ops that read its bytes, -1 for a copy or the caller."""
        users: dict[int, set[int]] = {}
        read = [
            (self._base(t, self._layout(i)), i)
            for i, op in enumerate(self._graph.ops)
            for t in op.inputs
            if t != ABSENT
        ]
        read += [(self._shown(t), -1) for t in self._graph.outputs]
        read += [
            (self._shown(kernel.tensor), -1) for kernel in self._plan.kernels if kernel.is_copy
        ]
        for (tensor, is_copy), user in read:
            if not is_copy:
                users.setdefault(tensor, set()).add(user)
        return users

    def peak_bytes(self) -> int:
        """Return the most bytes that live at one step."""
        sizes, users, given, kept = self._sizes, self._steps, self._given, self._kept
        live = [
            sum(self._graph.ops[op].workspace_bytes for op in kernel.ops)
            for kernel in self._plan.kernels
        ]
        last = len(live) - 1
        spans: dict[Place, tuple[int, int]] = {}
        for place, size in sizes.items():
            steps = users.get(place, set())
            if not steps and not (place in given and place in kept):
                continue
            if self.is_inner(place):
                continue
            first = 0 if place in given else min(steps)
            end = last if place in kept else max(steps)
            spans[place] = first, end
            for step in range(first, end + 1):
                live[step] += size
        for step, size in self._savings(sizes, spans):
            live[step] -= size
        return max(live, default=0)

    def counts(self, place: Place) -> bool:
        """Return whether it takes memory that counts in the peak."""
        return place in self._sizes

    def is_inner(self, place: Place) -> bool:
        """Return whether one kernel of several ops makes and reads it, and nobody else."""
        steps = self._steps.get(place, set())
        return (
            len(steps) == 1
            and place in self._read
            and place not in self._given
            and place not in self._kept
            and len(self._plan.kernels[min(steps)].ops) > 1
        )

    @cached_property
    def _sizes(self) -> dict[Place, int]:
        sizes: dict[Place, int] = {("own", s): b for s, b in counted_storages(self._graph).items()}
        for kernel in self._plan.kernels:
            if kernel.is_copy:
                sizes["copy", kernel.tensor] = self._graph.tensors[kernel.tensor].bytes
        return sizes

    @cached_property
    def _steps(self) -> dict[Place, set[int]]:
        """Return the steps of the kernels that touch each place."""
        steps: dict[Place, set[int]] = {}
        for step, kernel in enumerate(self._plan.kernels):
            for place, _ in self._touched(kernel):
                steps.setdefault(place, set()).add(step)
        return steps

    @cached_property
    def _read(self) -> set[Place]:
        touched = (pair for kernel in self._plan.kernels for pair in self._touched(kernel))
        return {place for place, is_read in touched if is_read}

    @cached_property
    def _given(self) -> set[Place]:
        return {("own", self._graph.tensors[t].storage) for t in self._graph.inputs}

    @cached_property
    def _kept(self) -> set[Place]:
        wanted = zip(self._graph.outputs, self._problem.output_layouts, strict=True)
        return {
            self.place(tensor, layout if layout in {0, 1} else self._made_in(tensor))
            for tensor, layout in wanted
        }

    def _savings(
        self, sizes: Mapping[Place, int], spans: Mapping[Place, tuple[int, int]]
    ) -> Iterator[tuple[int, int]]:
        """Yield (step, bytes) of the in-place pairs.

        Raises:
            PlanError: one of them is not allowed.
        """
        row_of = {s: row for row, s in enumerate(counted_storages(self._graph))}
        known = set(in_place_pairs(self._graph, row_of, counted_storages(self._graph)).values())
        taken: set[tuple[str, Place]] = set()
        for source, target in self._plan.in_place:
            maker = self._maker.get(target, -1)
            step = self._step.get(maker, -1)
            a = self.place(source, self._layout(maker)) if step >= 0 else ("", -1)
            b = self.place(target, self._layout(maker)) if step >= 0 else ("", -1)
            is_legal = (
                (source, target) in known
                and len(self._plan.kernels[step].ops) == 1
                and {a, b} <= set(spans)
                and sizes[a] == sizes[b]
                and spans[a][1] == step == spans[b][0]
                and b not in self._given
                and not {("in", a), ("out", b)} & taken
            )
            if not is_legal:
                raise PlanError(f"tensor {target} cannot be written over tensor {source}")
            taken |= {("in", a), ("out", b)}
            yield step, sizes[a]

    def _touched(self, kernel: Kernel) -> Iterator[tuple[Place, bool]]:
        """Yield what holds the bytes that a kernel reads (True) or writes (False)."""
        if kernel.is_copy:
            yield self.place(kernel.tensor, self._made_in(kernel.tensor)), False
            yield ("copy", kernel.tensor), False
        for op in kernel.ops:
            for tensor in self._graph.ops[op].inputs:
                if tensor != ABSENT:
                    yield self.place(tensor, kernel.layout), True
            for tensor in self._graph.ops[op].outputs:
                if tensor != ABSENT:
                    yield self.place(tensor, kernel.layout), False

    def _needs(self, op: int) -> set[int]:
        row = self._graph.ops[op]
        return {self._maker[t] for t in row.inputs if t in self._maker} | set(row.control_inputs)

    def _is_view(self, op: int) -> bool:
        made = [t for t in self._graph.ops[op].outputs if t != ABSENT]
        return bool(made) and all(self._problem.view_of[t] >= 0 for t in made)

    def _layout(self, op: int) -> int:
        return self._plan.kernels[self._step[op]].layout

    def _made_in(self, tensor: int) -> int:
        return self._layout(self._maker[tensor]) if tensor in self._maker else CONTIGUOUS

    def _base(self, tensor: int, layout: int) -> tuple[int, bool]:
        """Return the tensor whose bytes are read, and whether those of its copy are."""
        if tensor in self._problem.two_layouts and layout != self._made_in(tensor):
            return tensor, True
        return self._shown(tensor)

    def _shown(self, tensor: int) -> tuple[int, bool]:
        source = self._problem.view_of[tensor]
        return (tensor, False) if source < 0 else self._base(source, self._made_in(tensor))

    def place(self, tensor: int, layout: int) -> Place:
        """Return what holds the bytes that an op in `layout` reads of a tensor."""
        base, is_copy = self._base(tensor, layout)
        return ("copy", base) if is_copy else ("own", self._graph.tensors[base].storage)

    def _op(self, op: int) -> str:
        return f"'{self._graph.ops[op].name}'"
