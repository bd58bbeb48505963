"""No byte of a plan is used twice at one time: from the definitions, not from the checker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.plan.sub_buffers import embedded
from regal.search.meter import Meter
from regal.search.methods import method_named
from regal.search.planner import Search, plan_model
from tests.oracles.memory import lives_of

if TYPE_CHECKING:
    from regal.graph.types import Graph
    from regal.plan.types import Plan


def planned(graph: Graph, evaluations: int = 300) -> Plan:
    """Return the plan of the default method, after judging it."""
    search = Search(method=method_named("regal"), meter=Meter(evaluations=evaluations))
    (plan,) = plan_model((graph,), search)
    require_no_clobber(graph, plan)
    return plan


def require_no_clobber(graph: Graph, plan: Plan) -> None:
    """Fail if two live buffers share a byte in some step, bodies included."""
    joined = embedded(graph, plan.sub_buffers)
    lives = lives_of(joined, plan.order)
    partners = {
        frozenset((joined.tensors[a].storage, joined.tensors[b].storage)) for a, b in plan.in_place
    }
    for step, i in enumerate(plan.order):
        live = [storage for storage in lives if step in lives[storage]]
        for at, a in enumerate(live):
            for b in live[:at]:
                if frozenset((a, b)) not in partners:
                    assert not shares_bytes(plan, a, b), (graph.name, step, a, b)
        block = plan.workspaces.get(i)
        if block is not None:
            for a in live:
                place = plan.offsets[a]
                is_below = place.offset + place.bytes <= block.offset
                assert is_below or block.offset + block.bytes <= place.offset, (graph.name, step, a)
        for body, body_plan in zip(graph.ops[i].subgraphs, plan.bodies.get(i, ()), strict=True):
            require_no_clobber(body, body_plan)
            ends = [place.offset + place.bytes for place in body_plan.offsets.values()]
            assert max(ends, default=0) <= (block.bytes if block else 0)


def shares_bytes(plan: Plan, a: int, b: int) -> bool:
    """Return whether the places of two storages have a byte in common."""
    p, q = plan.offsets[a], plan.offsets[b]
    return p.offset < q.offset + q.bytes and q.offset < p.offset + p.bytes
