"""Programs of torch.export on the command line; prints a JSON object."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regal.cli.main import main as regal
from regal.frontends.torch.pt2 import read_program

FOLDER = Path(sys.argv[1])


class Branches(nn.Module):
    """Wide branches, each summed up; a choice; a counter that is written to in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.wide = nn.ModuleList(nn.Linear(16, 64) for _ in range(4))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor, sign: torch.Tensor) -> Any:
        self.count.add_(1)
        x = self.first(x)
        wide = [layer(x).relu() for layer in self.wide]
        chosen = torch.cond(sign.sum() > 0, lambda a: a.relu() + 1, lambda a: a - 1, (x,))
        return torch.stack([each.mean(1) for each in wide]), chosen.sum(1) + self.count


class Numbers(nn.Module):
    """Arguments that are no tensors."""

    def forward(self, x: torch.Tensor, times: int, *, parts: dict[str, torch.Tensor]) -> Any:
        return x * times + parts["a"]


def replaced(model: Path, out: Path, old_text: bytes, new_text: bytes) -> None:
    """Write a program with another text in the file of its graph."""
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            is_graph = "/models/" in name
            new.writestr(name, data.replace(old_text, new_text) if is_graph else data)


def command(*arguments: object) -> dict[str, Any]:
    """Return the JSON that a command prints, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = regal([str(each) for each in arguments])
    text = out.getvalue().strip()
    document: dict[str, Any] = json.loads(text) if text.startswith("{") else {}
    return {"code": code, "error": err.getvalue().strip(), **document}


def swapped(model: Path, out: Path) -> None:
    """Write a program that computes something else."""
    program = read_program(model)
    node = next(n for n in program.graph.nodes if n.target is torch.ops.aten.relu.default)
    node.target = torch.ops.aten.neg.default
    program.graph_module.recompile()
    torch.export.save(program, out)


def main() -> None:
    torch.manual_seed(0)
    model, out, plan = FOLDER / "m.pt2", FOLDER / "out.pt2", FOLDER / "plan.json"
    batch = torch.export.Dim("batch", min=1, max=64)
    arguments = (torch.randn(8, 16), torch.arange(4))
    shapes = ({0: batch}, None)
    program = torch.export.export(Branches().eval(), arguments, dynamic_shapes=shapes)
    torch.export.save(program, model)
    (FOLDER / "junk.pt2").write_text("no archive")
    foreign, inconsistent = FOLDER / "foreign.pt2", FOLDER / "inconsistent.pt2"
    replaced(model, foreign, b"aten.relu.default", b"mine.relu.default")
    replaced(model, inconsistent, b'"first.bias"', b'"second.bias"')
    numbers = FOLDER / "numbers.pt2"
    given = {"parts": {"a": torch.randn(4)}}
    torch.export.save(torch.export.export(Numbers(), (torch.randn(4), 3), given), numbers)
    symbol = str(next(iter(program.range_constraints)))
    found = {
        "inspect": command("inspect", model, "--json"),
        "larger": command("inspect", model, "--dim", f"{symbol}=16", "--json"),
        "shaped": command("inspect", model, "--shape", "x=16,16", "--json"),
        "optimize": command("optimize", model, "-o", out, "--plan", plan, "--json"),
        "check": command("check", model, plan, "--json"),
        "apply": command("apply", model, plan, "-o", FOLDER / "again.pt2", "--json"),
        "unknown": command("inspect", model, "--dim", "nothing=1"),
        "too large": command("inspect", model, "--dim", f"{symbol}=99"),
        "junk": command("inspect", FOLDER / "junk.pt2"),
        "foreign": command("inspect", foreign),
        "inconsistent": command("inspect", inconsistent),
        "numbers": command("verify", numbers, numbers, "--json"),
    }
    swapped(model, FOLDER / "wrong.pt2")
    found["verify"] = command("verify", model, FOLDER / "again.pt2", "--json")
    found["wrong"] = command("verify", model, FOLDER / "wrong.pt2", "--json")
    names = [[n.name for n in read_program(path).graph.nodes] for path in (model, out)]
    found["nodes"] = {"same": sorted(names[0]) == sorted(names[1]), "moved": names[0] != names[1]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
