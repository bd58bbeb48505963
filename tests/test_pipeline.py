"""What is written where the runtime measures more memory than for the original."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from regal import pipeline
from regal.backends import graph as graph_backend
from regal.backends.types import RuntimeCheck, Verification
from regal.graph.file import model_to_json
from regal.graph.types import LoadedModel
from tests.graphs import random_graph

if TYPE_CHECKING:
    from pathlib import Path

    from regal.backends.types import AppliedModel
    from regal.plan.types import ModelPlan


class ScriptedRuntime:
    """The backend of graph files, and a runtime that measures what the script says, in turn."""

    default_order = staticmethod(graph_backend.default_order)
    encoded = staticmethod(graph_backend.encoded)

    def __init__(self, *heaps: int) -> None:
        self._heaps = list(heaps)
        self.tried: list[str] = []

    def with_free_dimensions(self, model: LoadedModel) -> LoadedModel:
        return replace(model, framework="free")

    def refine(self, model: LoadedModel, plan: ModelPlan) -> AppliedModel:
        self.tried.append(f"{plan.method} {model.framework}")
        return graph_backend.apply(model, plan)

    def verify(self, *_paths: Path, **_options: object) -> Verification:
        check = RuntimeCheck(
            runtime="scripted",
            outputs_equal=True,
            before={"heap_bytes": 100},
            after={"heap_bytes": self._heaps.pop(0)},
            invocations=1,
            noise_bytes=5,
        )
        return Verification(checks=(check,))


@pytest.mark.parametrize(
    ("heaps", "tried", "kept", "said"),
    [
        ((80,), ["regal graph"], 0, ""),
        ((105,), ["regal graph"], 0, ""),  # noise
        ((140, 90), ["regal graph", "regal free"], 1, "fixed dimensions"),
        ((140, 130, 100), ["regal graph", "regal free", "before graph"], 2, "own order is kept"),
        (
            (140, 130, 120, 101),
            ["regal graph", "regal free", "before graph", "before free"],
            3,
            "and dimensions stay free",
        ),
        ((120, 140, 130, 150), ["regal graph", "regal free", "before graph", "before free"], 0, ""),
    ],
)
def test_what_the_runtime_likes_best_is_written(
    heaps: tuple[int, ...],
    tried: list[str],
    kept: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "m.json"
    entries = (random_graph(11, 12, alignment=4),)
    path.write_text(model_to_json(LoadedModel(framework="graph", entries=entries, source=None)))
    runtime = ScriptedRuntime(*heaps)
    monkeypatch.setattr(pipeline, "backend_of", lambda _framework: runtime)
    result = pipeline.optimize(path, tmp_path / "o.json")
    assert runtime.tried == tried
    assert result.verification is not None
    assert result.verification.checks[0].after == {"heap_bytes": heaps[kept]}
    assert said in " ".join(result.notes)
    assert bool(result.notes) == bool(said)
    keeps_own_order = tried[kept].startswith("before")
    assert (result.plan.plans[0].order == result.before.plans[0].order) >= keeps_own_order
