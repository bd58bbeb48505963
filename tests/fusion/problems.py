"""Small fusion problems: random ones with tiny ranges, and a slow search over all plans."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product
from typing import TYPE_CHECKING

from regal.errors import PlanError
from regal.fusion.check import Judge
from regal.fusion.types import FuseClass, FusionPlan, FusionProblem, Kernel, LayoutRule
from regal.graph.builder import GraphBuilder
from regal.graph.types import ABSENT, Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

    from regal.graph.types import Graph

RULES = (LayoutRule.FIXED, LayoutRule.AGNOSTIC, LayoutRule.SENSITIVE)


def plain_problem(graph: Graph, pairs: Sequence[tuple[int, int]] = ()) -> FusionProblem:
    """Return a problem where every op takes 10 ns alone and 2 inside, and a tensor its bytes."""
    n, count = len(graph.ops), len(graph.tensors)
    through = tuple((tensor.bytes,) for tensor in graph.tensors)
    return FusionProblem(
        graph=graph,
        fuse_classes=(FuseClass.POINTWISE,) * n,
        pairs=frozenset(pairs),
        anchors=frozenset(),
        layout_rules=(LayoutRule.AGNOSTIC,) * n,
        two_layouts=frozenset(),
        view_of=(-1,) * count,
        output_layouts=(0,) * len(graph.outputs),
        alone_ns=(((10, 10),),) * n,
        work_ns=(((2, 2),),) * n,
        launch_ns=(3,),
        read_ns=through,
        write_ns=through,
        convert_ns=tuple((3 + 2 * tensor.bytes,) for tensor in graph.tensors),
    )


def random_graph(rng: Random, n_ops: int) -> tuple[Graph, list[int]]:
    """Return a graph of `n_ops` with views, in-place pairs and control edges, and its views."""
    g = GraphBuilder("random")
    tensors = [g.input(f"in{i}", rng.randint(1, 3)) for i in range(rng.randint(1, 2))]
    weights = [g.parameter("w", 2)]
    shown = {}
    for i in range(n_ops):
        reads = [rng.choice(tensors) for _ in range(rng.randint(1, 2))]
        reads += weights if rng.random() < 0.2 else []
        after = [rng.randrange(i)] if i and rng.random() < 0.1 else []
        if rng.random() < 0.2:
            made = g.view("View", reads[0])
            shown[made] = reads[0]
            tensors.append(made)
            continue
        sizes = [rng.randint(1, 3) for _ in range(1 + (rng.random() < 0.15))]
        equal = [
            (a, b)
            for a, t in enumerate(reads)
            for b, size in enumerate(sizes)
            if g.size_of(t) == size and t not in weights and rng.random() < 0.5
        ]
        tensors += g.op(
            f"Op{i}", reads, sizes, after=after, in_place=equal, workspace=rng.randint(0, 2)
        )
    outputs = sorted({rng.choice(tensors[1:]), tensors[-1]})
    graph = g.build(outputs=outputs)
    return graph, [shown.get(t, -1) for t in range(len(graph.tensors))]


def random_problem(rng: Random, n_ops: int) -> FusionProblem:
    """Return a problem with random pairs, anchors, layouts and times in tiny ranges."""
    graph, view_of = random_graph(rng, n_ops)
    maker = {t: i for i, op in enumerate(graph.ops) for t in op.outputs}
    edges = {(maker[t], i) for i, op in enumerate(graph.ops) for t in op.inputs if t in maker}
    counted = [
        t
        for t, tensor in enumerate(graph.tensors)
        if tensor.role not in {Role.PARAMETER, Role.CONSTANT}
    ]
    two_layouts = frozenset(t for t in counted if rng.random() < 0.6)
    rules = [rng.choice(RULES) for _ in graph.ops]
    alone, work = [], []
    for rule in rules:
        times = [rng.randint(3, 9), rng.randint(3, 9)]
        inside = [rng.randint(0, 4), rng.randint(0, 4)]
        same = rule is not LayoutRule.SENSITIVE
        alone.append(((times[0], times[0] if same else times[1]),))
        work.append(((inside[0], inside[0] if same else inside[1]),))
    ops = range(n_ops)
    problem = plain_problem(graph)
    return replace(
        problem,
        pairs=frozenset(pair for pair in sorted(edges) if rng.random() < 0.8),
        anchors=frozenset(i for i in ops if rng.random() < 0.25),
        not_with_anchors=frozenset(i for i in ops if rng.random() < 0.2),
        most_ops=rng.choice((2, 3, 64)),
        layout_rules=tuple(rules),
        two_layouts=two_layouts,
        view_of=tuple(view_of),
        output_layouts=tuple(rng.choice((-1, 0, 0, 1)) for _ in graph.outputs),
        alone_ns=tuple(alone),
        work_ns=tuple(work),
        launch_ns=(rng.randint(0, 3),),
        read_ns=tuple((rng.randint(0, 3),) for _ in graph.tensors),
        write_ns=tuple((rng.randint(0, 3),) for _ in graph.tensors),
        convert_ns=tuple((rng.randint(1, 4),) for _ in graph.tensors),
    )


def partitions(items: Sequence[int]) -> Iterator[list[list[int]]]:
    """Yield all partitions of `items`."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        for i in range(len(rest)):
            yield [*rest[:i], [items[0], *rest[i]], *rest[i + 1 :]]
        yield [[items[0]], *rest]


def every_plan(problem: FusionProblem) -> Iterator[FusionPlan]:
    """Yield every legal plan up to the order of its kernels, the judge's word for it."""
    n = len(problem.graph.ops)
    for groups in partitions(range(n)):
        for layouts in product((0, 1), repeat=len(groups)):
            kernels = [
                Kernel(ops=tuple(sorted(group)), layout=layout)
                for group, layout in zip(groups, layouts, strict=True)
            ]
            made = {
                t: k.layout for k in kernels for op in k.ops for t in problem.graph.ops[op].outputs
            }
            wanted = {
                (t, k.layout) for k in kernels for op in k.ops for t in problem.graph.ops[op].inputs
            }
            for t, layout in zip(problem.graph.outputs, problem.output_layouts, strict=True):
                wanted |= {(t, layout)} if layout >= 0 else set()
            copies = {
                (t, layout)
                for t, layout in wanted
                if t in problem.two_layouts and t != ABSENT and made.get(t, 0) != layout
            }
            kernels += [Kernel(tensor=t, layout=layout) for t, layout in sorted(copies)]
            plan = _first_legal(problem, kernels)
            if plan is not None:
                yield plan


def every_order(problem: FusionProblem, plan: FusionPlan) -> Iterator[FusionPlan]:
    """Yield the legal orders of the kernels of a plan."""
    for kernels in permutations(plan.kernels):
        candidate = FusionPlan(kernels=kernels)
        if _is_legal(problem, candidate):
            yield candidate


def _first_legal(problem: FusionProblem, kernels: list[Kernel]) -> FusionPlan | None:
    """Return the kernels in an order that their data allow, or None."""
    left, done = list(kernels), list[Kernel]()
    maker = {t: i for i, op in enumerate(problem.graph.ops) for t in op.outputs}
    while left:
        ran = {op for k in done for op in k.ops}
        copied = {(k.tensor, k.layout) for k in done if k.is_copy}

        def is_ready(kernel: Kernel) -> bool:
            if kernel.is_copy:
                return kernel.tensor not in maker or maker[kernel.tensor] in ran  # noqa: B023
            inside = ran | set(kernel.ops)  # noqa: B023
            for op in kernel.ops:
                row = problem.graph.ops[op]
                if any(maker.get(t, op) not in inside for t in row.inputs):
                    return False
                if any(earlier not in inside for earlier in row.control_inputs):
                    return False
                waits = {(k.tensor, k.layout) for k in kernels if k.is_copy} - copied  # noqa: B023
                if any((t, kernel.layout) in waits for t in row.inputs):
                    return False
            return True

        ready = next((kernel for kernel in left if is_ready(kernel)), None)
        if ready is None:
            return None
        done.append(ready)
        left.remove(ready)
    plan = FusionPlan(kernels=tuple(done))
    return plan if _is_legal(problem, plan) else None


def _is_legal(problem: FusionProblem, plan: FusionPlan) -> bool:
    try:
        Judge(problem, plan).require_legal()
    except PlanError:
        return False
    return True


QUAD_OPS = 4  # of a quad: a chain of which a kernel takes two at most
WIDE, TOO_WIDE = 8, 10  # bytes that the second op of a quad makes, between its outer pairs


def quads_problem(widths: Sequence[int]) -> FusionProblem:
    """Return chained quads where greedy fusion is wrong for some.

    Alone an op takes 10 ns. The inner pair of a quad takes 3 + 4 and saves 13: it is merged first,
    and leaves the outer ops alone, 27 ns in all. An outer pair takes 3 + 1 + width: both
    save 16 where the width is WIDE, 24 ns in all, and 12 where it is TOO_WIDE, 28 ns in all.
    """
    g = GraphBuilder("quads")
    tensor = g.input("in", 1)
    pairs = []
    for q, width in enumerate(widths):
        for i, size in enumerate((1, width, 1, 1)):
            (tensor,) = g.op(f"{'abcd'[i]}{q}", [tensor], [size])
        first = QUAD_OPS * q
        pairs += [(first + i, first + i + 1) for i in range(3)]
    return replace(plain_problem(g.build(outputs=[tensor]), pairs), most_ops=2)


def quads_optimum(widths: Sequence[int]) -> int:
    """Return the ns of the best plan of `quads_problem`."""
    return sum(24 if width == WIDE else 27 for width in widths)
