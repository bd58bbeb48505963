"""The checker accepts no plan that would lose a byte: changed plans against painted memory."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest

from regal.errors import PlanError
from regal.graph.builder import GraphBuilder
from regal.graph.types import Graph, LoadedModel
from regal.options import Options
from regal.pipeline import plan_before, search
from regal.plan.check import require_valid_model_plan
from regal.plan.file import plan_from_json, plan_to_json
from tests.oracles.painting import damage_of

CHANGES = 25


def rich_graph(seed: int, n_ops: int, level: int = 0) -> Graph:
    """Return a graph with all that a plan decides: views, parts, blocks, bodies, in-place pairs."""
    rng = random.Random(seed)
    g = GraphBuilder(f"rich{seed}")
    values = [g.input(f"x{i}", rng.randint(0, 3)) for i in range(rng.randint(1, 3))]
    for i in range(n_ops):
        inputs = rng.sample(values, min(len(values), rng.randint(1, 3)))
        inputs += inputs[:1] if rng.random() < 0.1 else []
        sizes = [g.size_of(t) for t in inputs]
        kind = rng.choice(["Concat", "View", "If", "Op", "Op", "Op", "Op", "Op"])
        if kind == "Concat":
            parts = [(k, sum(sizes[:k])) for k in range(len(inputs))]
            values += g.op(kind, inputs, [sum(sizes)], parts=parts)
        elif kind == "View":
            values.append(g.view(kind, inputs[0]))
        elif kind == "If" and level < 2:
            bodies = [
                rich_graph(31 * seed + 7 * i + k, rng.randint(0, 3), level + 1) for k in (0, 1)
            ]
            values += g.op(kind, inputs, [rng.randint(0, 3)], subgraphs=bodies, workspace=i % 2)
        else:
            results = [rng.choice([*sizes, 2]) for _ in range(rng.choice([1, 1, 2, 3]))]
            pairs = [(a, b) for a in range(len(inputs)) for b in range(len(results))]
            values += g.op(
                kind,
                inputs,
                results,
                workspace=rng.choice([0, 0, 2]),
                after=[rng.randrange(i)] if i and rng.random() < 0.1 else [],
                in_place=rng.sample(pairs, rng.randint(0, len(pairs))),
            )
    outputs = rng.sample(values, rng.randint(1, min(3, len(values))))
    return g.build(
        outputs=outputs,
        alignment=rng.choice([1, 2, 4]),
        in_place_by_runtime=rng.random() < 0.3,
    )


def changed(document: dict[str, Any], other: dict[str, Any], rng: random.Random) -> bytes:
    """Return a plan file with one to three changes; `other` is another plan of the graph."""
    document = copy.deepcopy(document)
    for _ in range(rng.choice([1, 1, 2, 3])):
        order, places = document["order"]["cpu0"], list(document["offsets"].values())
        numbers = [(place, key) for place in places for key in place if key != "device"]
        numbers += [(block, "offset") for block in document["workspaces"].values()]
        numbers += [(document, "arena_bytes"), (document, "peak_bytes")]
        match rng.randrange(7):
            case 0 if order:
                order.insert(rng.randrange(len(order)), order.pop(rng.randrange(len(order))))
            case 1 | 2:
                holder, key = rng.choice(numbers)
                holder[key] += rng.choice([1, -1, 2, -2, 4, -4])
            case 3 if places:
                rng.choice(places)["offset"] = rng.choice(places)["offset"]
            case 4:
                tensors = range(max(map(int, document["offsets"]), default=0) + 1)
                document["in_place"].append([rng.choice(tensors), rng.choice(tensors)])
            case 5:
                key = rng.choice(["in_place", "sub_buffers", "workspaces"])
                if document[key] and isinstance(document[key], list):
                    document[key].pop()
                elif document[key]:
                    document[key].popitem()
            case 6:
                key = rng.choice(["order", "offsets", "in_place", "sub_buffers", "bodies"])
                document[key] = copy.deepcopy(other[key])
    return json.dumps(document).encode()


@pytest.mark.parametrize("block", range(8))
def test_a_plan_that_the_checker_accepts_loses_no_byte(block: int) -> None:
    accepted = refused = 0
    for seed in range(25 * block, 25 * block + 25):
        rng = random.Random(seed)
        graph = rich_graph(seed, 2 + seed % 7)
        model = LoadedModel(framework="graph", entries=(graph,), source=None)
        found = search(model, Options(evaluations=40, seed=seed))
        plans = [found, plan_before(model)]
        assert [damage_of(graph, plan.plans[0]) for plan in plans] == ["", ""]
        documents = [json.loads(plan_to_json(model, plan)) for plan in plans]
        for number in range(CHANGES):
            data = changed(documents[number % 2], documents[1 - number % 2], rng)
            try:
                plan = require_valid_model_plan(model, plan_from_json(data, model)).plans[0]
            except PlanError:
                refused += 1
                continue
            accepted += 1
            assert damage_of(graph, plan) == "", (seed, number)
    assert accepted > 0
    assert refused > accepted
