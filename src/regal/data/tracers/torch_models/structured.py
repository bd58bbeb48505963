"""Irregular structures: graph networks, mixtures of experts, trees, random wiring, cells."""

from __future__ import annotations

import random
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 64
NODES, EDGES = 256, 1024


class MessagePassing(nn.Module):
    """Gilmer et al. 2017 in four kinds: mean, attention, gated, and edge networks."""

    def __init__(self, kind: str, layers: int) -> None:
        super().__init__()
        self.kind = kind
        width = 2 * WIDTH if kind == "edge" else WIDTH
        self.send = nn.ModuleList(nn.Linear(width, WIDTH) for _ in range(layers))
        self.keep = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))
        self.gate = nn.ModuleList(nn.Linear(2 * WIDTH, 1) for _ in range(layers))
        self.cell = nn.GRUCell(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH * layers, 1)

    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return a score per graph; `x` (nodes, WIDTH), edges as two index vectors."""
        kept = []
        for send, keep, gate in zip(self.send, self.keep, self.gate, strict=True):
            theirs, ours = x[source], x[target]
            if self.kind == "edge":
                message = torch.relu(send(torch.cat([theirs, ours - theirs], dim=1)))
            else:
                message = send(theirs)
            if self.kind == "attention":
                score = nn.functional.leaky_relu(gate(torch.cat([theirs, ours], dim=1)))
                share = torch.exp(score - score.amax())
                total = torch.zeros_like(x[:, :1]).index_add(0, target, share)
                message = message * share / (total[target] + 1e-6)
            summed = torch.zeros_like(x).index_add(0, target, message)
            is_gated = self.kind == "gated"
            x = self.cell(summed, x) if is_gated else torch.relu(keep(x) + summed)
            kept.append(x.mean(dim=0))
        return self.head(torch.cat(kept))


class Experts(nn.Module):
    """Shazeer et al. 2017, dense form: every expert runs, the gate weighs the best two."""

    def __init__(self, layers: int, experts: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2 * layers))
        self.attention = nn.ModuleList(
            nn.MultiheadAttention(WIDTH, 4, batch_first=True) for _ in range(layers)
        )
        self.gates = nn.ModuleList(nn.Linear(WIDTH, experts) for _ in range(layers))
        self.experts = nn.ModuleList(
            nn.ModuleList(
                nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
                for _ in range(experts)
            )
            for _ in range(layers)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, tokens, WIDTH) features."""
        for i, attention in enumerate(self.attention):
            y = self.norms[2 * i](x)
            x = x + attention(y, y, y, need_weights=False)[0]
            y = self.norms[2 * i + 1](x)
            best, index = torch.topk(self.gates[i](y), 2, dim=-1)
            share = torch.zeros_like(self.gates[i](y)).scatter(-1, index, best.softmax(dim=-1))
            parts = [expert(y) * share[..., e : e + 1] for e, expert in enumerate(self.experts[i])]
            x = x + torch.stack(parts).sum(dim=0)
        return x


class TreeLstm(nn.Module):
    """Tai et al. 2015 on a full binary tree, unrolled from the leaves to the root."""

    def __init__(self, height: int) -> None:
        super().__init__()
        self.height = height
        self.gates = nn.Linear(2 * WIDTH, 5 * WIDTH)

    def forward(self, leaves: torch.Tensor) -> torch.Tensor:
        """Return the root's state; `leaves` (batch, 2**height, WIDTH)."""
        states = [(leaf, torch.tanh(leaf)) for leaf in leaves.unbind(1)]
        while len(states) > 1:
            states = [self._join(states[i], states[i + 1]) for i in range(0, len(states), 2)]
        return states[0][0]

    def _join(
        self, left: tuple[torch.Tensor, torch.Tensor], right: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        gates = self.gates(torch.cat([left[0], right[0]], dim=1)).chunk(5, dim=1)
        cell = (
            torch.sigmoid(gates[0]) * torch.tanh(gates[4])
            + torch.sigmoid(gates[1]) * left[1]
            + torch.sigmoid(gates[2]) * right[1]
        )
        return torch.sigmoid(gates[3]) * torch.tanh(cell), cell


class RandomWiring(nn.Module):
    """Xie et al. 2019: stages whose nodes are wired at random, as the seed says."""

    def __init__(self, kind: str, nodes: int, stages: int, seed: int) -> None:
        super().__init__()
        rng = random.Random(f"{kind}{nodes}{stages}{seed}")
        self.wires = [self._wires(kind, nodes, rng) for _ in range(stages)]
        self.stem = nn.Conv2d(3, WIDTH, 3, stride=2, padding=1)
        self.units = nn.ModuleList(
            nn.ModuleList(
                nn.Sequential(
                    nn.ReLU(),
                    nn.Conv2d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH),
                    nn.Conv2d(WIDTH, WIDTH, 1),
                    nn.BatchNorm2d(WIDTH),
                )
                for _ in range(nodes)
            )
            for _ in range(stages)
        )

    @staticmethod
    def _wires(kind: str, nodes: int, rng: random.Random) -> list[list[int]]:
        """Return, per node, the earlier nodes that it reads."""
        earlier: list[set[int]] = [set() for _ in range(nodes)]
        for b in range(1, nodes):
            if kind == "er":
                earlier[b] |= {a for a in range(b) if rng.random() < 0.2}
            elif kind == "ba":
                weights = [1 + len(earlier[a]) for a in range(b)]
                earlier[b] |= set(rng.choices(range(b), weights, k=min(b, 3)))
            else:  # Watts-Strogatz: two neighbors, rewired with chance 0.75
                near = [a for a in (b - 1, b - 2) if a >= 0]
                earlier[b] |= {rng.randrange(b) if rng.random() < 0.75 else a for a in near}
        return [sorted(reads) for reads in earlier]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return pooled features."""
        x = self.stem(x)
        for wires, units in zip(self.wires, self.units, strict=True):
            found: list[torch.Tensor] = []
            for reads, unit in zip(wires, units, strict=True):
                given = [found[a] for a in reads] or [x]
                total = given[0]
                for other in given[1:]:
                    total = total + other
                found.append(unit(total))
            used = {a for reads in wires for a in reads}
            ends = [found[i] for i in range(len(found)) if i not in used]
            x = nn.functional.max_pool2d(torch.stack(ends).mean(dim=0), 2)
        return x.mean(dim=(2, 3))


class Cells(nn.Module):
    """Searched cells (Liu et al. 2019, DARTS; Zoph et al. 2018): each node adds two operations."""

    OPERATIONS = 4

    def __init__(self, cells: int, nodes: int, seed: int) -> None:
        super().__init__()
        rng = random.Random(f"cells{cells}{nodes}{seed}")
        self.plan = [
            [(rng.randrange(2 + i), rng.randrange(2 + i)) for i in range(nodes)]
            for _ in range(cells)
        ]
        self.stem = nn.Conv2d(3, WIDTH, 3, padding=1)
        widths = [WIDTH if i < 3 else WIDTH * nodes for i in range(2 * cells)]
        self.fit = nn.ModuleList(nn.Conv2d(width, WIDTH, 1) for width in widths)
        self.operations = nn.ModuleList(
            nn.ModuleList(self._operation(rng) for _ in range(2 * nodes)) for _ in range(cells)
        )
        self.nodes = nodes

    @staticmethod
    def _operation(rng: random.Random) -> nn.Module:
        kind = rng.randrange(Cells.OPERATIONS)
        if kind == 0:
            return nn.Identity()
        if kind == 1:
            return nn.AvgPool2d(3, stride=1, padding=1)
        size = 3 if kind == 2 else 5
        return nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(WIDTH, WIDTH, size, padding=size // 2, groups=WIDTH),
            nn.Conv2d(WIDTH, WIDTH, 1),
            nn.BatchNorm2d(WIDTH),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return pooled features."""
        last = x = self.stem(x)
        for c, plan in enumerate(self.plan):
            states = [self.fit[2 * c](last), self.fit[2 * c + 1](x)]
            for i, (a, b) in enumerate(plan):
                left, right = self.operations[c][2 * i], self.operations[c][2 * i + 1]
                states.append(left(states[a]) + right(states[b]))
            last, x = x, torch.cat(states[2:], dim=1)
        return x.mean(dim=(2, 3))


def _graph(_batch: int) -> tuple[torch.Tensor, ...]:
    index = torch.zeros(EDGES, dtype=torch.int64)
    return torch.zeros(NODES, WIDTH), index, index.clone()


def _tokens(batch: int) -> tuple[torch.Tensor, ...]:
    return (torch.zeros(batch, 64, WIDTH),)


def _leaves(height: int, batch: int) -> tuple[torch.Tensor, ...]:
    return (torch.zeros(batch, 2**height, WIDTH),)


def _image(batch: int) -> tuple[torch.Tensor, ...]:
    return (torch.zeros(batch, 3, 64, 64),)


Recipe = tuple[str, "Callable[[], nn.Module]", "Callable[[int], tuple[torch.Tensor, ...]]"]
RECIPES: dict[str, Recipe] = {
    **{
        f"gnn-{kind}-{n}": ("gnn", partial(MessagePassing, kind, n), _graph)
        for kind in ("mean", "attention", "gated", "edge")
        for n in (4, 7)
    },
    **{
        f"experts-{n}x{e}": ("moe", partial(Experts, n, e), _tokens)
        for n, e in ((2, 4), (4, 8), (6, 16))
    },
    **{f"treelstm-{h}": ("treelstm", partial(TreeLstm, h), partial(_leaves, h)) for h in (3, 4, 5)},
    **{
        f"randwire-{kind}-{n}x{s}-{seed}": (
            "randwire",
            partial(RandomWiring, kind, n, s, seed),
            _image,
        )
        for kind in ("er", "ba", "ws")
        for n, s in ((10, 3), (24, 3), (32, 4))
        for seed in (0, 1)
    },
    **{
        f"cells-{c}x{n}-{seed}": ("nasnet", partial(Cells, c, n, seed), _image)
        for c, n in ((4, 4), (8, 4), (8, 7))
        for seed in (0, 1)
    },
}
