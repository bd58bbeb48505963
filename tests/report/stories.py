"""Stories and results that tests of traces and pages share."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from regal.graph.builder import GraphBuilder
from regal.report.build import story_of_plans, story_of_schedules
from regal.search.packing import before_plan
from tests.graphs import random_graph
from tests.report.schedules import schedule_plan, system_of

if TYPE_CHECKING:
    from regal.graph.types import Graph
    from regal.report.story import Story

HOSTILE = '</script><img src=x onerror="window.pwned = 1">\u202e\x00&amp;\ud800$name<!--'


def diamond(prefix: str = "") -> Graph:
    """Return a graph of four ops: one value, two branches, and what joins them."""
    g = GraphBuilder(f"{prefix}diamond", framework="tensorflow")
    x = g.input(f"{prefix}x", 4)
    (a,) = g.op("Split", [x], [6], name=f"{prefix}a")
    (b,) = g.op("Relu", [a], [6], name=f"{prefix}b", in_place=[(0, 0)])
    (c,) = g.op("Tanh", [a], [3], name=f"{prefix}c", workspace=5)
    (d,) = g.op("Add", [b, c], [2], name=f"{prefix}d")
    return g.build(outputs=[d])


def two_device_story(prefix: str = "", memory_bytes: int | None = 100) -> Story:
    """Return the diamond, all on one device and then with one branch on another."""
    graph = diamond(prefix)
    system = system_of(2, memory_bytes=memory_bytes)
    return story_of_schedules(
        graph,
        system,
        schedule_plan(graph, system, [0, 0, 0, 0]),
        schedule_plan(graph, system, [0, 1, 0, 0], peak_bound=9),
    )


def random_story(seed: int, n_ops: int, n_devices: int, *, contention: bool = True) -> Story:
    """Return a random graph on one device and then spread at random."""
    graph = random_graph(seed, n_ops)
    rng = random.Random(seed)
    system = system_of(n_devices, contention=contention)
    return story_of_schedules(
        graph,
        system,
        schedule_plan(graph, system, [0] * n_ops),
        schedule_plan(
            graph, system, [rng.randrange(n_devices) for _ in range(n_ops)], in_place=True
        ),
    )


def step_story(seed: int = 0, n_ops: int = 12) -> Story:
    """Return a random graph on one device, whose clock counts steps."""
    graph = random_graph(seed, n_ops)
    plan = before_plan(graph, None)
    return story_of_plans(graph, plan, plan)


def result_of(story: Story, model: str = "models/net.pb") -> dict[str, Any]:
    """Return the result document of a story."""
    sides = {
        label: {
            "peak_bytes": max(side.peak_bytes),
            "arena_bytes": max(side.arena_bytes),
            "peak_bytes_per_device": list(side.peak_bytes),
            "time_s": side.end / 1e9,
        }
        for label, side in story.sides
    }
    return {
        "schema": "regal.result/1",
        "model": model,
        "framework": story.graph.framework,
        "ops": len(story.graph.ops),
        "objective": "time",
        "method": "regal",
        "seed": 0,
        "evaluations": 5000,
        "seconds": 0.25,
        "devices": [{"name": place.name} for place in story.places],
        **sides,
        "lower_bound": {"peak_bytes": story.peak_bound, "time_s": None},
        "optimal": {"order": False, "arena": False, "time": False},
        "parameter_bytes": 1024,
        "state_bytes": 0,
        "verified": None,
        "verify_skipped": "no output was asked for",
        "notes": [],
    }
