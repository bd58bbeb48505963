"""Recommenders: DLRM, DCN, two towers, multi-gate experts."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

DENSE = 13  # continuous features, as in the Criteo set
ROWS = 10_000  # of an embedding table


def perceptron(*sizes: int) -> nn.Sequential:
    """Return linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Dlrm(nn.Module):
    """Naumov et al. 2019: embeddings, a bottom perceptron, pairwise products, a top one."""

    def __init__(self, tables: int, width: int, depth: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(ROWS, width) for _ in range(tables))
        self.bottom = perceptron(DENSE, *[256] * depth, width)
        pairs = (tables + 1) * tables // 2
        self.top = perceptron(width + pairs, *[256] * depth, 1)
        self.register_buffer("rows", torch.triu_indices(tables + 1, tables + 1, 1))

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        """Return scores; `dense` (batch, DENSE), `sparse` (batch, tables)."""
        x = self.bottom(dense)
        found = [table(sparse[:, i]) for i, table in enumerate(self.tables)]
        stacked = torch.stack([x, *found], dim=1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        crossed = products[:, self.rows[0], self.rows[1]]
        return self.top(torch.cat([x, crossed], dim=1))


class DeepCross(nn.Module):
    """Wang et al. 2021 (DCN v2): cross layers beside a deep perceptron."""

    def __init__(self, tables: int, width: int, crosses: int, depth: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(ROWS, width) for _ in range(tables))
        size = tables * width + DENSE
        self.crosses = nn.ModuleList(nn.Linear(size, size) for _ in range(crosses))
        self.deep = perceptron(size, *[256] * depth)
        self.head = nn.Linear(size + 256, 1)

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        """Return scores; `dense` (batch, DENSE), `sparse` (batch, tables)."""
        found = [table(sparse[:, i]) for i, table in enumerate(self.tables)]
        x0 = torch.cat([dense, *found], dim=1)
        x = x0
        for cross in self.crosses:
            x = x0 * cross(x) + x
        return self.head(torch.cat([x, self.deep(x0)], dim=1))


class TwoTower(nn.Module):
    """Covington et al. 2016 style retrieval: a tower for the user, one for the item."""

    def __init__(self, tables: int, width: int, depth: int) -> None:
        super().__init__()
        self.user = nn.ModuleList(nn.Embedding(ROWS, width) for _ in range(tables))
        self.item = nn.ModuleList(nn.Embedding(ROWS, width) for _ in range(tables))
        self.user_tower = perceptron(tables * width, *[256] * depth, 64)
        self.item_tower = perceptron(tables * width, *[256] * depth, 64)

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        """Return the similarity of every user to every item; both (batch, tables)."""
        u = torch.cat([table(user[:, i]) for i, table in enumerate(self.user)], dim=1)
        v = torch.cat([table(item[:, i]) for i, table in enumerate(self.item)], dim=1)
        left = nn.functional.normalize(self.user_tower(u))
        right = nn.functional.normalize(self.item_tower(v))
        return left @ right.transpose(0, 1)


class MultiGate(nn.Module):
    """Ma et al. 2018 (MMoE): experts shared by tasks, each with its own gate and tower."""

    def __init__(self, experts: int, tasks: int, depth: int) -> None:
        super().__init__()
        self.experts = nn.ModuleList(perceptron(128, *[128] * depth) for _ in range(experts))
        self.gates = nn.ModuleList(nn.Linear(128, experts) for _ in range(tasks))
        self.towers = nn.ModuleList(perceptron(128, 64, 1) for _ in range(tasks))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return one score per task; `x` (batch, 128)."""
        answers = torch.stack([expert(x) for expert in self.experts], dim=1)
        scores = []
        for gate, tower in zip(self.gates, self.towers, strict=True):
            share = torch.softmax(gate(x), dim=1).unsqueeze(2)
            scores.append(tower((answers * share).sum(dim=1)))
        return tuple(scores)


def _criteo(tables: int, batch: int) -> tuple[torch.Tensor, ...]:
    return torch.zeros(batch, DENSE), torch.zeros(batch, tables, dtype=torch.int64)


def _pair(tables: int, batch: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.zeros(batch, tables, dtype=torch.int64) for _ in range(2))


def _features(batch: int) -> tuple[torch.Tensor, ...]:
    return (torch.zeros(batch, 128),)


Recipe = tuple[str, "Callable[[], nn.Module]", "Callable[[int], tuple[torch.Tensor, ...]]"]
RECIPES: dict[str, Recipe] = {
    **{
        f"dlrm-{t}x{d}": ("recommender", partial(Dlrm, t, 32, d), partial(_criteo, t))
        for t, d in ((8, 3), (26, 3), (26, 5))
    },
    **{
        f"dcn-{t}-{c}x{d}": ("recommender", partial(DeepCross, t, 16, c, d), partial(_criteo, t))
        for t, c, d in ((8, 3, 3), (26, 4, 3), (26, 6, 5))
    },
    **{
        f"two-tower-{t}x{d}": ("recommender", partial(TwoTower, t, 32, d), partial(_pair, t))
        for t, d in ((4, 3), (12, 4))
    },
    **{
        f"mmoe-{e}-{t}x{d}": ("recommender", partial(MultiGate, e, t, d), _features)
        for e, t, d in ((4, 2, 2), (8, 3, 2), (16, 6, 3))
    },
}
