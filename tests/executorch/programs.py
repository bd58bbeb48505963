"""ExecuTorch programs of many kinds, planned by ExecuTorch and by us; prints a JSON object.

Every program runs in ExecuTorch's runtime, twice where it has state.
"""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, Verifier, greedy
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.tensor import TensorSpec
from executorch.runtime import Runtime
from torch import nn
from torch.utils._pytree import tree_leaves

from regal.errors import PlanError
from regal.executorch import memory_planning_algorithm, memory_planning_pass
from regal.executorch.offsets import regal_offsets
from regal.executorch.planning_pass import put

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH = 256  # floats: 1,024 bytes


class Branches(nn.Module):
    """Wide values first, as written; one branch after the other takes a quarter of the memory."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = [torch.cat([x * (i + 2.0)] * 4) for i in range(6)]
        result: torch.Tensor = sum((each.sin().mean() for each in wide), x.sum())
        return result


class Views(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = (x + 1.0).view(16, 16)
        wide = [torch.cat([y * (i + 2.0)] * 4).view(-1) for i in range(4)]
        first = wide[0].view(4, 256).sum(0)
        return first + sum(each.view(4, 256).mean() for each in wide), y.view(256)


class State(nn.Module):
    """A buffer that is read, written and read again: the reads must keep their sides."""

    def __init__(self) -> None:
        super().__init__()
        self.total: torch.Tensor
        self.register_buffer("total", torch.zeros(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = torch.cat([self.total * 2.0] * 4).sin()
        self.total.add_(x)
        after = torch.cat([self.total * 3.0] * 4).cos()
        return before.sum() + after.sum() * 2.0 + x.mean()


class Choice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = [torch.cat([x * (i + 2.0)] * 4) for i in range(4)]
        y = torch.cond(x.sum() > 0, lambda y: (y + 1.0).sin(), lambda y: (y * 2.0).cos(), (x,))
        result: torch.Tensor = sum((each.sin().mean() for each in wide), y)
        return result


class Parts(nn.Module):
    """One kernel writes to a list of tensors that is allocated as one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = [torch.cat([x * (i + 2.0)] * 4).split([512, 256, 256]) for i in range(3)]
        result: torch.Tensor = sum((a.mean() * b.sin() + c for a, b, c in wide), x)
        return result


PROGRAMS: dict[str, tuple[nn.Module, tuple[Any, ...]]] = {
    "branches": (Branches(), (torch.randn(WIDTH),)),
    "views": (Views(), (torch.randn(WIDTH),)),
    "state": (State(), (torch.randn(WIDTH),)),
    "parts": (Parts(), (torch.randn(WIDTH),)),
    "a choice": (Choice(), (torch.rand(WIDTH),)),
    "the other choice": (Choice(), (-torch.rand(WIDTH),)),
}


def planned(module: nn.Module, inputs: Any, way: Any, **options: Any) -> Any:
    edge = to_edge(torch.export.export(copy.deepcopy(module), inputs, strict=False))
    return edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=way, **options))


def arena(program: Any) -> list[int]:
    found: list[int] = program.executorch_program.execution_plan[0].non_const_buffer_sizes
    return found


def outputs(program: Any, inputs: Iterable[Any]) -> list[list[Any]]:
    """Return what two runs yield; state passes from the first one to the second one."""
    method = Runtime.get().load_program(program.buffer).load_method("forward")
    return [[each.clone() for each in method.execute(list(inputs))] for _ in range(2)]


def equal(first: Any, second: Any) -> bool:
    left, right = tree_leaves(first), tree_leaves(second)
    return len(left) == len(right) and all(map(torch.equal, left, right))


def verdict(program: Any, *, inputs: bool = True) -> bool:
    """Return whether ExecuTorch's own verifier accepts the memory of a program."""
    each = program.exported_program()
    Verifier(each.graph_module, inputs, True, True, each.graph_signature).verify_storage_reuse()
    return True


def rows() -> dict[str, Any]:
    found = {}
    for name, (module, inputs) in PROGRAMS.items():
        theirs = planned(module, inputs, MemoryPlanningPass())
        offsets = planned(
            module,
            inputs,
            MemoryPlanningPass(MemoryPlanningAlgorithmSuite([memory_planning_algorithm()])),
        )
        ours = planned(module, inputs, memory_planning_pass())
        expected = outputs(theirs, inputs)
        found[name] = {
            "greedy": arena(theirs),
            "offsets": arena(offsets),
            "ours": arena(ours),
            "equal": equal(expected, outputs(offsets, inputs))
            and equal(expected, outputs(ours, inputs)),
            "close": all(
                torch.allclose(a, b, atol=1e-5)
                for a, b in zip(
                    expected[0], tree_leaves(copy.deepcopy(module)(*inputs)), strict=True
                )
            ),
            "verified": verdict(ours),
        }
    return found


def options() -> dict[str, Any]:
    """Return arenas and results with the options of ExecuTorch that change what is planned."""
    module, inputs = PROGRAMS["branches"]
    expected = outputs(planned(module, inputs, MemoryPlanningPass()), inputs)
    bare = planned(module, inputs, memory_planning_pass(alloc_graph_input=False))
    wide = planned(module, inputs, memory_planning_pass(alignment=256))
    module, state = PROGRAMS["state"]
    backed = planned(module, state, memory_planning_pass(), run_reinplace_pass=True)
    theirs = planned(module, state, MemoryPlanningPass(), run_reinplace_pass=True)
    again = [planned(module, state, memory_planning_pass()).buffer for _ in range(2)]
    offsets = [spec.mem_offset for spec in specs_of(wide)]
    return {
        "inputs given by the caller": equal(expected, outputs(bare, inputs)),
        "aligned": all(offset % 256 == 0 for offset in offsets) and arena(wide)[1] % 256 == 0,
        "written in place": equal(outputs(backed, state), outputs(theirs, state)),
        "written in place, arenas": [arena(backed), arena(theirs)],
        "same bytes": again[0] == again[1],
        "greedy alone": equal(
            expected, outputs(planned(*PROGRAMS["branches"], memory_planning_pass(
                algorithms=[greedy])), inputs)
        ),
    }  # fmt: skip


def specs_of(program: Any) -> list[Any]:
    found = (node.meta.get("spec") for node in program.exported_program().graph.nodes)
    return [spec for spec in found if isinstance(spec, TensorSpec) and spec.mem_offset is not None]


def spec(floats: int, first: int, last: int, memory: int | None = None) -> Any:
    made = TensorSpec(torch.float32, torch.Size([floats]))
    made.lifetime, made.mem_id = [first, last], memory
    return made


def algorithm() -> dict[str, Any]:
    """Return what the algorithm makes of specs that are written down here."""
    a, b, c = spec(64, 0, 1), spec(32, 1, 2), spec(64, 2, 3)
    inner = spec(16, 1, 1)
    inner.storage_base, inner.storage_base_offset = a, 64
    far = spec(64, 0, 3, memory=3)
    module = nn.Module()
    found = regal_offsets(16, [a, b, c, inner, far], module, None, extra_padding=64)
    at = {id(each): place for each, place in found.spec_dict.items()}
    module.input_mem_buffer_sizes = [0, 100]  # as ExecuTorch sets it
    later = partial(regal_offsets, max_nodes=10)(16, [spec(4, 0, 0)], module, None)
    inner.storage_base_offset = 16 * 16
    try:
        regal_offsets(16, [a, inner], nn.Module(), None)
        refused = ""
    except PlanError as error:
        refused = str(error)
    return {
        "sizes": found.bufsizes,
        "memories": [at[id(each)].mem_id for each in (a, b, c, inner, far)],
        "a and c share": at[id(a)].mem_offset == at[id(c)].mem_offset,
        "inner": at[id(inner)].mem_offset - at[id(a)].mem_offset,
        "after bodies": [later.bufsizes, next(iter(later.spec_dict.values())).mem_offset],
        "refused": refused,
        "nothing": regal_offsets(16, [], nn.Module(), None).bufsizes,
    }


def wrong_order() -> str:
    """Return what fx says where a node is moved before what it reads."""
    module = torch.fx.symbolic_trace(Branches())
    try:
        put(module, [node for node in reversed(module.graph.nodes) if node.op == "call_function"])
    except RuntimeError as error:
        return str(error)
    return ""


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(json.dumps({
        "rows": rows(), "options": options(), "algorithm": algorithm(), "wrong": wrong_order()
    }))  # fmt: skip


if __name__ == "__main__":
    main()
