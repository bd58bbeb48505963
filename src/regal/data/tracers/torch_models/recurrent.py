"""Recurrent and causal-convolution networks, unrolled over time: LSTM, GRU, WaveNet, TCN."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH = 128


class Unrolled(nn.Module):
    """Cells of one or both directions, unrolled, stacked, with attention over the states."""

    def __init__(self, cell: type[nn.Module], layers: int, *, both: bool, attention: bool) -> None:
        super().__init__()
        self.both, self.attention = both, attention
        size = WIDTH * (2 if both else 1)
        widths = [WIDTH] + [size] * (layers - 1)
        self.forth = nn.ModuleList(cell(w, WIDTH) for w in widths)
        self.back = nn.ModuleList(cell(w, WIDTH) for w in widths) if both else None
        self.query = nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the last state, or its context; `x` (time, batch, WIDTH)."""
        steps = list(x.unbind(0))
        for i, cell in enumerate(self.forth):
            forth = self._scan(cell, steps)
            if self.back is None:
                steps = forth
                continue
            back = self._scan(self.back[i], steps[::-1])[::-1]
            steps = [torch.cat([a, b], dim=1) for a, b in zip(forth, back, strict=True)]
        if not self.attention:
            return steps[-1]
        states = torch.stack(steps, dim=1)
        weights = torch.softmax((states @ self.query(steps[-1]).unsqueeze(2)).squeeze(2), dim=1)
        return (states * weights.unsqueeze(2)).sum(dim=1)

    @staticmethod
    def _scan(cell: nn.Module, steps: list[torch.Tensor]) -> list[torch.Tensor]:
        zero = torch.zeros(steps[0].shape[0], WIDTH, dtype=steps[0].dtype)
        is_lstm = isinstance(cell, nn.LSTMCell)
        state = (zero, zero) if is_lstm else zero
        found = []
        for step in steps:
            state = cell(step, state)
            found.append(state[0] if is_lstm else state)
        return found


class Seq2Seq(nn.Module):
    """An encoder and a decoder of LSTM cells with attention at every step (GNMT's shape)."""

    def __init__(self, layers: int, steps: int) -> None:
        super().__init__()
        self.encoder = nn.ModuleList(nn.LSTMCell(WIDTH, WIDTH) for _ in range(layers))
        self.decoder = nn.ModuleList(
            nn.LSTMCell(2 * WIDTH if i == 0 else WIDTH, WIDTH) for i in range(layers)
        )
        self.steps = steps
        self.out = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return (time, batch, WIDTH) predictions; both inputs are (time, batch, WIDTH)."""
        steps = list(source.unbind(0))
        zero = torch.zeros(source.shape[1], WIDTH, dtype=source.dtype)
        for depth, cell in enumerate(self.encoder):
            state, found = (zero, zero), []
            for step in steps:
                state = cell(step, state)
                found.append(state[0] + step if depth else state[0])
            steps = found
        memory = torch.stack(steps, dim=1)
        states = [(zero, zero) for _ in self.decoder]
        context, outputs = zero, []
        for word in target.unbind(0):
            x = torch.cat([word, context], dim=1)
            for i, cell in enumerate(self.decoder):
                states[i] = cell(x, states[i])
                x = states[i][0]
            weights = torch.softmax((memory @ x.unsqueeze(2)).squeeze(2), dim=1)
            context = (memory * weights.unsqueeze(2)).sum(dim=1)
            outputs.append(self.out(torch.cat([x, context], dim=1)))
        return torch.stack(outputs)


class WaveNet(nn.Module):
    """van den Oord et al. 2016: dilated gated convolutions with skip connections."""

    def __init__(self, blocks: int, layers: int) -> None:
        super().__init__()
        dilations = [2**i for _ in range(blocks) for i in range(layers)]
        conv = partial(nn.Conv1d, 64, 64)
        self.filters = nn.ModuleList(conv(2, dilation=d, padding=d) for d in dilations)
        self.gates = nn.ModuleList(conv(2, dilation=d, padding=d) for d in dilations)
        self.skips = nn.ModuleList(conv(1) for _ in dilations)
        self.mixes = nn.ModuleList(conv(1) for _ in dilations)
        self.ends = nn.ModuleList(conv(1) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, 64, time) predictions of `x` (batch, 64, time)."""
        length = x.shape[2]
        skipped = []
        for wave, gate, skip, mix in zip(
            self.filters, self.gates, self.skips, self.mixes, strict=True
        ):
            y = torch.tanh(wave(x)[..., :length]) * torch.sigmoid(gate(x)[..., :length])
            skipped.append(skip(y))
            x = x + mix(y)
        total = torch.relu(torch.stack(skipped).sum(dim=0))
        return self.ends[1](torch.relu(self.ends[0](total)))


class Tcn(nn.Module):
    """Bai et al. 2018: residual blocks of causal dilated convolutions."""

    def __init__(self, levels: int) -> None:
        super().__init__()
        self.levels = nn.ModuleList(
            nn.ModuleList(nn.Conv1d(64, 64, 3, dilation=2**i, padding=2 * 2**i) for _ in range(2))
            for i in range(levels)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return (batch, 64, time) features of `x` (batch, 64, time)."""
        length = x.shape[2]
        for first, second in self.levels:
            y = torch.relu(first(x)[..., :length])
            x = torch.relu(x + torch.relu(second(y)[..., :length]))
        return x


def _times(steps: int, batch: int) -> tuple[torch.Tensor, ...]:
    return (torch.zeros(steps, batch, WIDTH),)


def _pairs(steps: int, batch: int) -> tuple[torch.Tensor, ...]:
    return torch.zeros(steps, batch, WIDTH), torch.zeros(steps, batch, WIDTH)


def _wave(batch: int) -> tuple[torch.Tensor, ...]:
    return (torch.zeros(batch, 64, 4096),)


CELLS: dict[str, type[nn.Module]] = {"lstm": nn.LSTMCell, "gru": nn.GRUCell, "rnn": nn.RNNCell}
Recipe = tuple[str, "Callable[[], nn.Module]", "Callable[[int], tuple[torch.Tensor, ...]]"]
RECIPES: dict[str, Recipe] = {
    **{
        f"{'bi' if both else ''}{cell}-{layers}x{steps}{'-attention' if attention else ''}": (
            "recurrent",
            partial(Unrolled, CELLS[cell], layers, both=both, attention=attention),
            partial(_times, steps),
        )
        for cell in CELLS
        for layers, steps, both, attention in (
            (1, 20, False, False),
            (2, 16, True, False),
            (3, 12, False, True),
            (4, 24, True, True),
        )
    },
    **{
        f"seq2seq-{layers}x{steps}": (
            "recurrent",
            partial(Seq2Seq, layers, steps),
            partial(_pairs, steps),
        )
        for layers, steps in ((2, 8), (4, 12), (8, 10))
    },
    **{
        f"wavenet-{b}x{n}": ("wavenet", partial(WaveNet, b, n), _wave)
        for b, n in ((1, 8), (2, 10), (4, 10))
    },
    **{f"tcn-{n}": ("wavenet", partial(Tcn, n), _wave) for n in (4, 8)},
}
