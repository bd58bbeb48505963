"""Dense prediction: U-Net and its kin, feature pyramids, stacked hourglasses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

SIDE = 128


def block(inside: int, out: int, *, residual: bool = False) -> nn.Module:
    """Return two 3x3 convolutions with normalization and ReLU; optionally with a shortcut."""
    layers = nn.Sequential(
        nn.Conv2d(inside, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
        nn.Conv2d(out, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
    )  # fmt: skip
    return Shortcut(layers, nn.Conv2d(inside, out, 1)) if residual else layers


class Shortcut(nn.Module):
    """A module with a projection beside it."""

    def __init__(self, body: nn.Module, projection: nn.Module) -> None:
        super().__init__()
        self.body, self.projection = body, projection

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sum of both."""
        return self.body(x) + self.projection(x)


class UNet(nn.Module):
    """Ronneberger et al. 2015; with `residual`, ResUNet; with `gates`, Attention U-Net."""

    def __init__(self, depth: int, width: int, *, residual: bool, gates: bool) -> None:
        super().__init__()
        sizes = [width * 2**i for i in range(depth + 1)]
        self.down = nn.ModuleList(
            block(3 if i == 0 else sizes[i - 1], sizes[i], residual=residual)
            for i in range(depth + 1)
        )
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(sizes[i + 1], sizes[i], 2, stride=2) for i in range(depth)
        )
        self.merge = nn.ModuleList(
            block(2 * sizes[i], sizes[i], residual=residual) for i in range(depth)
        )
        self.gates = nn.ModuleList(nn.Conv2d(2 * s, 1, 1) for s in sizes[:depth]) if gates else None
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, 2, side, side) scores."""
        kept = []
        for i, down in enumerate(self.down):
            x = down(x if i == 0 else nn.functional.max_pool2d(x, 2))
            kept.append(x)
        for i in reversed(range(len(self.up))):
            x, skip = self.up[i](x), kept[i]
            if self.gates is not None:
                skip = skip * torch.sigmoid(self.gates[i](torch.cat([x, skip], dim=1)))
            x = self.merge[i](torch.cat([x, skip], dim=1))
        return self.head(x)


class UNetPlusPlus(nn.Module):
    """Zhou et al. 2018: every node of the grid reads all earlier nodes of its row."""

    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        sizes = [width * 2**i for i in range(depth + 1)]
        self.depth = depth
        self.nodes = nn.ModuleDict()
        for j in range(depth + 1):
            for i in range(depth + 1 - j):
                inside = 3 if i == 0 else sizes[i - 1]
                if j > 0:
                    inside = j * sizes[i] + sizes[i + 1]
                self.nodes[f"{i},{j}"] = block(inside, sizes[i])
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, 2, side, side) scores."""
        found: dict[tuple[int, int], torch.Tensor] = {}
        for i in range(self.depth + 1):
            source = x if i == 0 else nn.functional.max_pool2d(found[i - 1, 0], 2)
            found[i, 0] = self.nodes[f"{i},0"](source)
        for j in range(1, self.depth + 1):
            for i in range(self.depth + 1 - j):
                below = nn.functional.interpolate(found[i + 1, j - 1], scale_factor=2.0)
                row = [found[i, k] for k in range(j)]
                found[i, j] = self.nodes[f"{i},{j}"](torch.cat([*row, below], dim=1))
        return self.head(found[0, self.depth])


class BiFpn(nn.Module):
    """Tan et al. 2020: weighted top-down and bottom-up paths over a small backbone's levels."""

    def __init__(self, levels: int, layers: int, width: int = 64) -> None:
        super().__init__()
        self.backbone = nn.ModuleList(
            nn.Sequential(nn.Conv2d(3 if i == 0 else width, width, 3, 2, 1), nn.ReLU())
            for i in range(levels)
        )
        self.weights = nn.Parameter(torch.ones(layers, 2, levels, 3))
        self.convs = nn.ModuleList(
            nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2 * levels))
            for _ in range(layers)
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the features of all levels."""
        levels = []
        for stage in self.backbone:
            x = stage(x)
            levels.append(x)
        for layer, convs in enumerate(self.convs):
            weight = torch.relu(self.weights[layer])
            middle = list(levels)
            for i in reversed(range(len(levels) - 1)):
                up = nn.functional.interpolate(middle[i + 1], size=levels[i].shape[2:])
                w = weight[0, i] / (weight[0, i].sum() + 1e-4)
                middle[i] = convs[i](nn.functional.silu(w[0] * levels[i] + w[1] * up))
            out = [middle[0]]
            for i in range(1, len(levels)):
                down = nn.functional.adaptive_max_pool2d(out[-1], levels[i].shape[2:])
                w = weight[1, i] / (weight[1, i].sum() + 1e-4)
                mixed = w[0] * levels[i] + w[1] * middle[i] + w[2] * down
                out.append(convs[len(levels) + i](nn.functional.silu(mixed)))
            levels = out
        return tuple(levels)


class Hourglass(nn.Module):
    """Newell et al. 2016: stacked encoder-decoders with a shortcut at every scale."""

    def __init__(self, stacks: int, depth: int, width: int = 64) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 7, stride=2, padding=3)
        self.depth = depth
        self.parts = nn.ModuleList(
            nn.ModuleList(block(width, width, residual=True) for _ in range(3 * depth + 1))
            for _ in range(stacks)
        )
        self.heads = nn.ModuleList(nn.Conv2d(width, 16, 1) for _ in range(stacks))
        self.back = nn.ModuleList(nn.Conv2d(16, width, 1) for _ in range(stacks))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return one heat map per stack."""
        x = torch.relu(self.stem(x))
        maps = []
        for parts, head, back in zip(self.parts, self.heads, self.back, strict=True):
            y = self._glass(parts, x, self.depth)
            maps.append(head(y))
            x = x + y + back(maps[-1])
        return tuple(maps)

    def _glass(self, parts: nn.ModuleList, x: torch.Tensor, depth: int) -> torch.Tensor:
        side = parts[3 * depth - 2](x)
        y = parts[3 * depth - 1](nn.functional.max_pool2d(x, 2))
        y = self._glass(parts, y, depth - 1) if depth > 1 else parts[0](y)
        return side + nn.functional.interpolate(parts[3 * depth](y), scale_factor=2.0)


def _image(batch: int) -> tuple[torch.Tensor, ...]:
    return (torch.zeros(batch, 3, SIDE, SIDE),)


Recipe = tuple[str, "Callable[[], nn.Module]", "Callable[[int], tuple[torch.Tensor, ...]]"]
RECIPES: dict[str, Recipe] = {
    **{
        f"unet-{d}{'-residual' if r else ''}{'-gates' if g else ''}": (
            "unet",
            partial(UNet, d, 32, residual=r, gates=g),
            _image,
        )
        for d in (3, 4, 5)
        for r, g in ((False, False), (True, False), (False, True), (True, True))
    },
    **{f"unetpp-{d}": ("unet", partial(UNetPlusPlus, d, 32), _image) for d in (2, 3, 4, 5)},
    **{
        f"bifpn-{levels}x{n}": ("bifpn", partial(BiFpn, levels, n), _image)
        for levels, n in ((3, 2), (4, 3), (5, 3), (5, 7))
    },
    **{
        f"hourglass-{s}x{d}": ("hourglass", partial(Hourglass, s, d), _image)
        for s, d in ((1, 3), (2, 4), (4, 4))
    },
}
