"""A fusion plan as a graph of its kernels: what planners, checkers and reports of graphs take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from regal.cost.roofline import ROOFLINE
from regal.cost.types import FORBIDDEN, GraphCost
from regal.fusion.check import Judge
from regal.graph.check import require_valid_graph
from regal.graph.types import ABSENT, Graph, Op, Role
from regal.plan.schedule_problem import groups_of, sendable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.fusion.types import FusionPlan, FusionProblem, Kernel
    from regal.graph.types import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelGraph:
    """Op k of `graph` is kernel k of the plan; `cost` is what it takes on each device.

    Tensors are first those of the original graph that leave their kernel, then the copies, then
    parameters and whatever else is only read: `tensors[i]` is the original of tensor i, and
    `is_copy[i]` whether it is in the other layout.
    """

    graph: Graph
    cost: GraphCost
    tensors: tuple[int, ...]
    is_copy: tuple[bool, ...]


def kernel_graph(problem: FusionProblem, plan: FusionPlan) -> KernelGraph:
    """Return the graph of the kernels of a legal plan.

    Storages that a kernel of several ops keeps to itself are gone, and with them their tensors.

    Raises:
        PlanError: the plan breaks a rule.

    Cost: O(N^2) at worst, that of the judge.
    """
    judge = Judge(problem, plan)
    judge.require_legal()
    return _Contraction(problem, plan, judge).run()


class _Contraction:
    def __init__(self, problem: FusionProblem, plan: FusionPlan, judge: Judge) -> None:
        self._problem = problem
        self._graph = problem.graph
        self._plan = plan
        self._judge = judge
        self._kernel = {op: k for k, kernel in enumerate(plan.kernels) for op in kernel.ops}
        self._maker = {
            t: i for i, op in enumerate(self._graph.ops) for t in op.outputs if t != ABSENT
        }
        self._layout = plan.layouts
        self._rows: dict[tuple[int, bool], int] = {}
        self._readers: dict[int, list[int]] = {}
        for i, op in enumerate(self._graph.ops):
            for t in op.inputs:
                self._readers.setdefault(t, []).append(i)

    def run(self) -> KernelGraph:
        tensors = self._tensors()
        operands = [self._operands(k) for k in range(len(self._plan.kernels))]
        colocation = self._colocation()
        ops = tuple(
            self._op(k, inputs, outputs, colocation.get(k, ""))
            for k, (inputs, outputs) in enumerate(operands)
        )
        graph = require_valid_graph(
            replace(
                self._graph,
                name=f"{self._graph.name} (kernels)",
                ops=ops,
                tensors=tuple(tensors),
                inputs=tuple(self._rows[t, False] for t in self._graph.inputs),
                outputs=tuple(
                    self._read(t, self._made_in(t) if layout < 0 else layout)
                    for t, layout in zip(
                        self._graph.outputs, self._problem.output_layouts, strict=True
                    )
                ),
            )
        )
        return KernelGraph(
            graph=graph,
            cost=self._cost(),
            tensors=tuple(t for t, _ in self._rows),
            is_copy=tuple(is_copy for _, is_copy in self._rows),
        )

    def _tensors(self) -> list[Tensor]:
        graph = self._graph
        copied = sorted(kernel.tensor for kernel in self._plan.kernels if kernel.is_copy)
        sent = sendable(graph)
        kept = [t for t in sent if self._is_kept(t, copied)]
        used = {t for op in graph.ops for t in (*op.inputs, *op.outputs)} | set(graph.inputs)
        rest = sorted(used - {ABSENT} - set(sent))
        keys = [(t, False) for t in kept] + [(t, True) for t in copied] + [(t, False) for t in rest]
        self._rows = {key: row for row, key in enumerate(keys)}
        first = 1 + max((tensor.storage for tensor in graph.tensors), default=0)
        fresh = {t: first + i for i, t in enumerate(copied)}
        wanted = {
            self._read(t, self._made_in(t) if layout < 0 else layout)
            for t, layout in zip(graph.outputs, self._problem.output_layouts, strict=True)
        }
        tensors = []
        for row, (t, is_copy) in enumerate(keys):
            tensor = graph.tensors[t]
            if is_copy:
                layout = "contiguous" if self._made_in(t) else "channels last"
                tensor = replace(
                    tensor,
                    name=f"{tensor.name} ({layout})",
                    role=Role.ACTIVATION,
                    storage=fresh[t],
                    storage_offset=0,
                )
            else:
                kind, place = self._judge.place(t, self._made_in(t))
                if kind == "copy":
                    tensor = replace(tensor, storage=fresh[place])
            if tensor.role in {Role.OUTPUT, Role.ACTIVATION}:
                tensor = replace(tensor, role=Role.OUTPUT if row in wanted else Role.ACTIVATION)
            tensors.append(tensor)
        return tensors

    def _is_kept(self, tensor: int, copied: list[int]) -> bool:
        if tensor not in self._maker or tensor in self._graph.outputs or tensor in copied:
            return True
        kernel = self._kernel[self._maker[tensor]]
        place = self._judge.place(tensor, self._made_in(tensor))
        if self._judge.counts(place) and not self._judge.is_inner(place):
            return True
        return any(self._kernel[i] != kernel for i in self._readers.get(tensor, ()))

    def _made_in(self, tensor: int) -> int:
        return self._layout[self._maker[tensor]] if tensor in self._maker else 0

    def _read(self, tensor: int, layout: int) -> int:
        """Return the row that a kernel in `layout` reads, ABSENT if it is inside a kernel."""
        is_other = tensor in self._problem.two_layouts and layout != self._made_in(tensor)
        return self._rows.get((tensor, is_other), ABSENT)

    def _operands(self, number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        kernel = self._plan.kernels[number]
        if kernel.is_copy:
            row = self._rows[kernel.tensor, False]
            return (row,), (self._rows[kernel.tensor, True],)
        if len(kernel.ops) == 1:  # positions mean something: to in-place pairs, to bodies
            op = self._graph.ops[kernel.ops[0]]
            return (
                tuple(self._read(t, kernel.layout) if t != ABSENT else ABSENT for t in op.inputs),
                tuple(self._rows.get((t, False), ABSENT) for t in op.outputs),
            )
        made = [t for op in kernel.ops for t in self._graph.ops[op].outputs if t != ABSENT]
        inputs = dict.fromkeys(
            self._read(t, kernel.layout)
            for op in kernel.ops
            for t in self._graph.ops[op].inputs
            if t != ABSENT and self._maker.get(t, -1) not in kernel.ops
        )
        outputs = [self._rows[t, False] for t in made if (t, False) in self._rows]
        return tuple(inputs), tuple(outputs)

    def _op(
        self, number: int, inputs: tuple[int, ...], outputs: tuple[int, ...], colocation: str
    ) -> Op:
        kernel = self._plan.kernels[number]
        if kernel.is_copy:
            name = self._graph.tensors[kernel.tensor].name
            return Op(name=f"layout of {name}", kind="layout_copy", inputs=inputs, outputs=outputs)
        ops = [self._graph.ops[op] for op in kernel.ops]
        earlier = {
            self._kernel[a] for op in ops for a in op.control_inputs if self._kernel[a] != number
        }
        if len(ops) == 1:
            return replace(
                ops[0],
                inputs=inputs,
                outputs=outputs,
                control_inputs=tuple(sorted(earlier)),
                sub_buffers=(),
                colocation=colocation,
                devices=(),
            )
        return Op(
            name=f"{ops[0].name} + {len(ops) - 1}",
            kind="fused",
            inputs=inputs,
            outputs=outputs,
            control_inputs=tuple(sorted(earlier)),
            workspace_bytes=sum(op.workspace_bytes for op in ops),
            flops=sum(op.flops for op in ops),
            colocation=colocation,
        )

    def _colocation(self) -> Mapping[int, str]:
        """Return kernel -> name of the group for kernels that must share a device."""
        groups: dict[int, set[int]] = {}
        for op, group in enumerate(groups_of(self._graph)):
            groups.setdefault(group, set()).add(self._kernel[op])
        joined: dict[int, set[int]] = {}
        for kernels in groups.values():
            merged = set(kernels).union(*(joined.get(k, set()) for k in kernels))
            for kernel in merged:
                joined[kernel] = merged
        return {k: f"group {min(group)}" for k, group in joined.items() if len(group) > 1}

    def _cost(self) -> GraphCost:
        rows = []
        for kernel in self._plan.kernels:
            row = []
            for device in range(self._problem.n_devices):
                on_device = replace(kernel, device=device)
                row.append(max(self._judge.kernel_ns(on_device), 1) if self._runs(on_device)
                           else FORBIDDEN)  # fmt: skip
            rows.append(tuple(row))
        return GraphCost(op_ns=tuple(rows), sources=(ROOFLINE,) * len(rows))

    def _runs(self, kernel: Kernel) -> bool:
        return all(self._problem.alone_ns[op][kernel.device][0] != FORBIDDEN for op in kernel.ops)
