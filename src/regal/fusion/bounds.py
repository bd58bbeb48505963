"""What no plan of a fusion problem can go below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from regal import _native
from regal.cost.types import FORBIDDEN
from regal.fusion.numbers import fusion_numbers
from regal.fusion.types import N_LAYOUTS
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from regal.fusion.types import FusionProblem

# Of a kernel's work against its traffic; any share gives a bound.
SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)


def time_bound(problem: FusionProblem) -> int:
    """Return a time in ns that no plan on one device can beat: proven.

    A kernel takes at least a share s of its work plus 1 - s of its traffic. So every op costs at
    least its time alone or what it adds to both: its work, what it writes for readers that cannot
    be fused with it, its part of what it reads from such makers. Layouts are chosen freely, copies
    are paid: a minimum cut is the least sum.

    Cost: a few minimum cuts.
    """
    native = fusion_numbers(problem)
    return max(
        _native.cheapest_layouts(native, np.array(_prices(problem, share)).reshape(-1))[1]
        for share in SHARES
    )


def _prices(problem: FusionProblem, share: float) -> list[tuple[int, int]]:
    graph = problem.graph
    maker = {t: i for i, op in enumerate(graph.ops) for t in op.outputs if t != ABSENT}
    readers: dict[int, set[int]] = {}
    for i, op in enumerate(graph.ops):
        for t in op.inputs:
            readers.setdefault(t, set()).add(i)
    paired = {op for pair in problem.pairs for op in pair}
    outputs = set(graph.outputs)
    shown = {source for source in problem.view_of if source >= 0}

    def border(op: int) -> int:
        """Return the traffic that this op adds to any kernel."""
        total = 0
        for t in {t for t in graph.ops[op].outputs if t != ABSENT and problem.view_of[t] < 0}:
            used = readers.get(t, set())
            leaves = t in outputs or any((op, reader) not in problem.pairs for reader in used)
            if leaves or (not used and t not in shown):
                total += min(problem.write_ns[t])
        for t in {t for t in graph.ops[op].inputs if t != ABSENT}:
            # Views share what is read; all readers may be in one kernel.
            is_whole = problem.view_of[t] < 0 and t not in shown
            if is_whole and (t not in maker or (maker[t], op) not in problem.pairs):
                total += min(problem.read_ns[t]) // len(readers[t])
        return total

    prices = []
    for i, op in enumerate(graph.ops):
        made = [t for t in op.outputs if t != ABSENT]
        is_view = bool(made) and all(problem.view_of[t] >= 0 for t in made)
        row = []
        for layout in range(N_LAYOUTS):
            ran = [d for d, times in enumerate(problem.alone_ns[i]) if times[0] != FORBIDDEN]
            price = min(problem.alone_ns[i][d][layout] for d in ran)
            if i in paired:
                work = min(problem.work_ns[i][d][layout] for d in ran)
                launch = min(problem.launch_ns) if i in problem.anchors else 0
                inside = 0 if is_view else int(share * work + (1 - share) * border(i)) + launch
                price = min(price, inside)
            row.append(price)
        prices.append((row[0], row[1]))
    return prices
