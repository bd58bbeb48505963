"""Run commands on spoiled files and judge what they do: exit code, one line, no file left."""

from __future__ import annotations

import contextlib
import io
import json
import random
from typing import TYPE_CHECKING

from regal.cli.main import main
from regal.graph.builder import GraphBuilder
from regal.graph.file import model_to_json
from regal.graph.types import LoadedModel
from tests.graphs import random_graph
from tests.hostile_csv import spoiled_csv
from tests.hostile_json import spoiled

if TYPE_CHECKING:
    from pathlib import Path

    from regal.graph.types import Graph


def check_case(number: int, folder: Path) -> tuple[str, int]:
    """Return what is wrong with case `number` ("" if nothing) and the exit code.

    An exception that leaves `main` is a finding, too: it is not caught here.
    """
    argv = _prepare(random.Random(number), folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, err = run_main(argv)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    new = {name for name in after if name not in before}
    wrong = ""
    if code not in (0, 1, 2):
        wrong = f"exit code {code}"
    elif code == 2 and not (err.startswith("regal: error: ") and err.count("\n") == 1 and not out):
        wrong = f"exit code 2 with stdout {out!r} and stderr {err!r}"
    elif code < 2 and (err or not out):
        wrong = f"exit code {code} with stdout {out!r} and stderr {err!r}"
    elif new - ({"out.json", "new.json", "out.csv"} if code < 2 else set()):
        wrong = f"exit code {code} and wrote {sorted(new)}"
    elif any(after.get(name) != data for name, data in before.items()):
        wrong = "changed an input"
    return (f"case {number}: {' '.join(argv)}: {wrong}" if wrong else ""), code


def _prepare(rng: random.Random, folder: Path) -> list[str]:
    """Put one spoiled file into `folder`; return a command that reads it."""
    model, plan = _valid_files(rng.randrange(6), folder)
    if rng.random() < 0.2:
        table = folder / "table.csv"
        table.write_bytes(spoiled_csv(rng))
        more = rng.choice(([], ["--capacity", str(rng.randrange(30))], ["-o", f"{folder}/out.csv"]))
        return ["allocate", str(table), *more]
    victim = rng.choice((model, plan))
    victim.write_bytes(spoiled(json.loads(victim.read_bytes()), rng))
    return _command(rng, model, plan, folder, is_plan=victim is plan)


def run_main(argv: list[str]) -> tuple[int, str, str]:
    """Return exit code, stdout, stderr; the streams encode like those of a terminal."""
    out, err = io.BytesIO(), io.BytesIO()
    with (
        io.TextIOWrapper(out, "utf-8", write_through=True) as stdout,
        io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True) as stderr,
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        code = main(argv)
        texts = out.getvalue().decode(), err.getvalue().decode()
    return code, *texts


def _valid_files(seed: int, folder: Path) -> tuple[Path, Path]:
    """Write a model and a plan of it; both are made once per folder and seed."""
    for path in folder.iterdir():
        path.unlink()
    model, plan = folder / "model.json", folder / "plan.json"
    if seed not in _FILES:
        graph = random_graph(seed, 6, alignment=4) if seed else _with_bodies()
        loaded = LoadedModel(framework="graph", entries=(graph,) * (1 + seed % 2), source=None)
        model.write_text(model_to_json(loaded))
        code, _, err = run_main(
            ["optimize", str(model), "--plan", str(plan), "--evaluations", "20"]
        )
        if code != 0:
            raise AssertionError(err)
        _FILES[seed] = model.read_bytes(), plan.read_bytes()
    model.write_bytes(_FILES[seed][0])
    plan.write_bytes(_FILES[seed][1])
    return model, plan


_FILES: dict[int, tuple[bytes, bytes]] = {}


def _with_bodies() -> Graph:
    body = GraphBuilder("body")
    inner = body.build(outputs=body.op("Neg", [body.input("p", 2)], [2]))
    g = GraphBuilder("bodies")
    x = g.input("x", 8)
    (a,) = g.op("Mul", [x, g.parameter("w", 100)], [8], in_place=[(0, 0)], workspace=3)
    both = g.op("If", [g.view("Reshape", a), -1], [8], subgraphs=[inner, inner], captures=1)
    return g.build(outputs=g.op("Concat", [a, *both], [16], parts=[(0, 0), (1, 8)]), alignment=4)


def _command(
    rng: random.Random, model: Path, plan: Path, folder: Path, *, is_plan: bool
) -> list[str]:
    out, new = str(folder / "out.json"), str(folder / "new.json")
    with_plan = [["check", str(model), str(plan)], ["apply", str(model), str(plan), "-o", out]]
    alone = [
        ["inspect", str(model)],
        ["convert", str(model), "-o", out],
        ["convert", str(model), "-o", out, "--text"],
        ["compare", str(model), "--methods", "file-order,dfs"],
        ["optimize", str(model), "-o", out, "--plan", new, "--evaluations", "20"],
    ]
    command = rng.choice(with_plan if is_plan else alone)
    return [*command, "--json"] if rng.random() < 0.3 else command
