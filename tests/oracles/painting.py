"""Slow and obvious: run a plan on painted bytes and see which values do not survive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.graph.types import COUNTED_ROLES

if TYPE_CHECKING:
    from regal.graph.types import Graph
    from regal.plan.types import Plan

Color = tuple[int, int]  # storage, byte of it: equal colors hold equal values


def damage_of(graph: Graph, plan: Plan) -> str:
    """Return what goes wrong when `graph` runs by `plan`, bodies included; "" if nothing does.

    Every byte of a value is painted with its own color when it is written, scratch memory with
    another; a reader finds a wrong color where the plan let somebody else write.
    """
    try:
        _Run(graph, plan).check()
    except _DamageError as damage:
        return str(damage)
    return ""


class _DamageError(Exception):
    pass


class _Run:
    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph = graph
        self.plan = plan
        self.memory: dict[int, Color] = {}
        self.written = set(graph.inputs)
        self.outer = {
            graph.tensors[inner].storage: (outer, at) for inner, outer, at in plan.sub_buffers
        }
        elsewhere = {t.storage for t in graph.tensors if t.role not in COUNTED_ROLES}
        self.counted = {
            i for i, t in enumerate(graph.tensors) if t.bytes and t.storage not in elsewhere
        }

    def colors(self, tensor: int) -> dict[int, Color]:
        """Return address -> color of every byte of a tensor."""
        if tensor not in self.counted:
            return {}
        storage = self.graph.tensors[tensor].storage
        begin = self.graph.tensors[tensor].storage_offset
        while storage in self.outer:
            outer, at = self.outer[storage]
            storage = self.graph.tensors[outer].storage
            begin += at + self.graph.tensors[outer].storage_offset
        self.require(storage in self.plan.offsets, f"tensor {tensor} has no offset")
        start = self.plan.offsets[storage].offset + begin
        size = self.graph.tensors[tensor].bytes
        self.require(0 <= start <= self.plan.arena_bytes - size, f"tensor {tensor} is outside")
        return {start + k: (storage, begin + k) for k in range(size)}

    def require(self, is_right: bool, what: str) -> None:
        if not is_right:
            raise _DamageError(what)

    def write(self, tensor: int) -> None:
        self.memory.update(self.colors(tensor))
        self.written.add(tensor)

    def read(self, tensor: int) -> None:
        colors = self.colors(tensor) if tensor in self.written else {}
        lost = [at for at, color in colors.items() if self.memory.get(at) != color]
        self.require(not lost, f"tensor {tensor} has lost byte {lost[:1]}")

    def check(self) -> None:
        graph, plan = self.graph, self.plan
        self.require(sorted(plan.order) == list(range(len(graph.ops))), "no permutation")
        touched = {t for op in graph.ops for t in (*op.inputs, *op.outputs) if t >= 0}
        used = {graph.tensors[t].storage for t in touched | set(graph.outputs)}
        for tensor in graph.inputs if graph.ops else ():
            if graph.tensors[tensor].storage in used:
                self.write(tensor)
        writer = {t: i for i, op in enumerate(graph.ops) for t in op.outputs}
        done: set[int] = set()
        for i in plan.order:
            op = graph.ops[i]
            needs = {writer[t] for t in op.inputs if t in writer} | set(op.control_inputs)
            self.require(needs <= done, f"op {i} runs too early")
            self.run(i)
            done.add(i)
        for tensor in graph.outputs if graph.ops else ():
            self.read(tensor)
        starts = [place.offset for place in (*plan.offsets.values(), *plan.workspaces.values())]
        self.require(all(start % graph.alignment == 0 for start in starts), "misaligned")

    def run(self, i: int) -> None:
        op, plan = self.graph.ops[i], self.plan
        inputs = {t for t in op.inputs if t >= 0}
        outputs = [t for t in op.outputs if t >= 0]
        for tensor in inputs:
            self.read(tensor)
        bodies = plan.bodies.get(i, ())
        self.require(len(bodies) == len(op.subgraphs), f"op {i} lacks a body")
        for body, body_plan in zip(op.subgraphs, bodies, strict=True):
            _Run(body, body_plan).check()
        need = op.workspace_bytes + max((body.arena_bytes for body in bodies), default=0)
        if need:
            self.require(i in plan.workspaces, f"op {i} has no block")
            block = range(plan.workspaces[i].offset, plan.workspaces[i].offset + need)
            self.require(block.start >= 0 and block.stop <= plan.arena_bytes, "block outside")
            self.memory.update(dict.fromkeys(block, (-1, i)))
        for tensor in inputs:
            self.read(tensor)  # scratch and bodies leave the operands alone
        allowed = {(op.inputs[a], op.outputs[b]) for a, b in op.in_place}
        for output in outputs:
            # The kernel may write while it reads: only an allowed input may be overwritten.
            written = self.colors(output)
            for tensor in inputs:
                hit = any(
                    written.get(at, color) != color for at, color in self.colors(tensor).items()
                )
                self.require(not hit or (tensor, output) in allowed, f"op {i} hits its {tensor}")
            self.write(output)
        for tensor in outputs:
            self.read(tensor)
