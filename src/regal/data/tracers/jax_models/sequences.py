"""Networks over sequences: transformers of several kinds, state spaces, recurrences, experts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from flax import linen as nn

from regal.data.tracers.jax_models import Recipe, floats, ints

if TYPE_CHECKING:
    from collections.abc import Callable

    from jax import Array

WORDS = 1000
TOKENS = 32
WIDTH = 64
HEADS = 4


class Attention(nn.Module):
    """Multi-head attention: causal, with rotary positions, with fewer key heads, or linear."""

    causal: bool = False
    rotary: bool = False
    key_heads: int = HEADS
    linear: bool = False

    @nn.compact
    def __call__(self, x: Array, memory: Array | None = None) -> Array:
        """Return (batch, tokens, width); keys come from `memory` if there is one."""
        source = x if memory is None else memory
        size = WIDTH // HEADS
        q = nn.DenseGeneral((HEADS, size), use_bias=False)(x)
        k = nn.DenseGeneral((self.key_heads, size), use_bias=False)(source)
        v = nn.DenseGeneral((self.key_heads, size), use_bias=False)(source)
        if self.rotary:
            q, k = _rotated(q), _rotated(k)
        k = jnp.repeat(k, HEADS // self.key_heads, 2)
        v = jnp.repeat(v, HEADS // self.key_heads, 2)
        if self.linear:
            q, k = nn.elu(q) + 1.0, nn.elu(k) + 1.0
            total = jnp.einsum("bkhd,bkhe->bhde", k, v)
            norm = jnp.einsum("bqhd,bhd->bqh", q, k.sum(1))
            out = jnp.einsum("bqhd,bhde->bqhe", q, total) / (norm[..., None] + 1e-6)
        else:
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / size**0.5
            if self.causal:
                mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
                scores = jnp.where(mask, scores, -1e9)
            out = jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores), v)
        return nn.DenseGeneral(WIDTH, (-2, -1), use_bias=False)(out)


def _rotated(x: Array) -> Array:
    half = x.shape[-1] // 2
    angles = jnp.arange(x.shape[1])[:, None] * jnp.exp(-jnp.arange(half) / half)
    cos, sin = jnp.cos(angles)[:, None, :], jnp.sin(angles)[:, None, :]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


class Gated(nn.Module):
    """Shazeer 2020: a gated feed-forward layer."""

    act: Callable[[Array], Array] = nn.silu

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return (batch, tokens, width)."""
        gate = nn.Dense(2 * WIDTH, use_bias=False)(x)
        up = nn.Dense(2 * WIDTH, use_bias=False)(x)
        return nn.Dense(WIDTH, use_bias=False)(self.act(gate) * up)


class Plain(nn.Module):
    """Two dense layers."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return (batch, tokens, width)."""
        return nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(x)))


class Experts(nn.Module):
    """Fedus et al. 2022: tokens go to their best expert, in the dense form that XLA compiles."""

    experts: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return (batch, tokens, width)."""
        share = nn.softmax(nn.Dense(self.experts)(x))
        best = jnp.argmax(share, -1)
        chosen = jax.nn.one_hot(best, self.experts) * share
        parts = [Plain()(x) * chosen[..., i : i + 1] for i in range(self.experts)]
        return sum(parts[1:], parts[0])


class Transformer(nn.Module):
    """A stack of layers, normalized after ("bert") or before ("gpt"), and later kinds."""

    kind: str
    depth: int
    experts: int = 4

    @nn.compact
    def __call__(self, words: Array) -> Array:
        """Return scores of words (batch, tokens, WORDS)."""
        x = nn.Embed(WORDS, WIDTH)(words)
        if self.kind != "llama":
            x = x + self.param("position", nn.initializers.normal(0.02), (TOKENS, WIDTH))
        for i in range(self.depth):
            x = self._layer(x, i)
        return nn.Dense(WORDS)(nn.LayerNorm()(x))

    def _layer(self, x: Array, i: int) -> Array:
        if self.kind == "bert":
            x = nn.LayerNorm()(x + Attention()(x))
            return nn.LayerNorm()(x + Plain()(x))
        if self.kind == "llama":
            x = x + Attention(causal=True, rotary=True, key_heads=2)(nn.RMSNorm()(x))
            return x + Gated()(nn.RMSNorm()(x))
        if self.kind == "parallel":
            y = nn.LayerNorm()(x)
            return x + Attention(causal=True, rotary=True)(y) + Plain()(y)
        if self.kind == "performer":
            x = x + Attention(linear=True)(nn.LayerNorm()(x))
            return x + Plain()(nn.LayerNorm()(x))
        x = x + Attention(causal=True)(nn.LayerNorm()(x))
        is_sparse = self.kind == "moe" and i % 2 == 1
        return x + (Experts(self.experts) if is_sparse else Plain())(nn.LayerNorm()(x))


class EncoderDecoder(nn.Module):
    """Vaswani et al. 2017; with `gated`, the layers of T5 1.1."""

    depth: int
    gated: bool = False

    @nn.compact
    def __call__(self, source: Array, target: Array) -> Array:
        """Return scores of words (batch, tokens, WORDS)."""
        embed = nn.Embed(WORDS, WIDTH)
        norm = nn.RMSNorm if self.gated else nn.LayerNorm
        inner = partial(Gated, nn.gelu) if self.gated else Plain
        x = embed(source)
        for _ in range(self.depth):
            x = x + Attention()(norm()(x))
            x = x + inner()(norm()(x))
        memory, y = norm()(x), embed(target)
        for _ in range(self.depth):
            y = y + Attention(causal=True)(norm()(y))
            y = y + Attention()(norm()(y), memory)
            y = y + inner()(norm()(y))
        return embed.attend(norm()(y))


class StateSpace(nn.Module):
    """Gu & Dao 2023 (Mamba): selective state spaces, scanned in parallel or step by step."""

    depth: int
    parallel: bool

    @nn.compact
    def __call__(self, words: Array) -> Array:
        """Return scores of words."""
        x = nn.Embed(WORDS, WIDTH)(words)
        for i in range(self.depth):
            u, gate = jnp.split(nn.Dense(2 * WIDTH)(nn.RMSNorm()(x)), 2, -1)
            u = nn.silu(nn.Conv(WIDTH, (4,), padding="CAUSAL", feature_group_count=WIDTH)(u))
            step = nn.softplus(nn.Dense(WIDTH)(u))
            inside, outside = jnp.split(nn.Dense(2 * 8)(u), 2, -1)
            rate = -jnp.exp(self.param(f"rate{i}", nn.initializers.ones, (WIDTH, 8)))
            decay = jnp.exp(step[..., None] * rate)
            drive = (step * u)[..., None] * inside[:, :, None, :]
            states = _scanned(decay, drive, parallel=self.parallel)
            y = jnp.einsum("btdn,btn->btd", states, outside)
            x = x + nn.Dense(WIDTH)(y * nn.silu(gate))
        return nn.Dense(WORDS)(nn.RMSNorm()(x))


def _scanned(decay: Array, drive: Array, *, parallel: bool) -> Array:
    def joined(a: tuple[Array, Array], b: tuple[Array, Array]) -> tuple[Array, Array]:
        return a[0] * b[0], b[0] * a[1] + b[1]

    if parallel:
        return jax.lax.associative_scan(joined, (decay, drive), axis=1)[1]

    def step(state: Array, given: tuple[Array, Array]) -> tuple[Array, Array]:
        state = given[0] * state + given[1]
        return state, state

    rows = (decay.swapaxes(0, 1), drive.swapaxes(0, 1))
    return jax.lax.scan(step, jnp.zeros_like(drive[:, 0]), rows)[1].swapaxes(0, 1)


class Recurrent(nn.Module):
    """Stacked cells, unrolled or scanned; both directions, with attention over the states."""

    cell: str
    layers: int
    unrolled: bool
    both: bool = False

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return (batch, WIDTH) from (batch, time, WIDTH)."""
        kind = {"lstm": nn.OptimizedLSTMCell, "gru": nn.GRUCell, "rnn": nn.SimpleCell}[self.cell]
        for _ in range(self.layers):
            forth = self._scan(kind(WIDTH), x)
            if self.both:
                back = self._scan(kind(WIDTH), x[:, ::-1])[:, ::-1]
                forth = nn.Dense(WIDTH)(jnp.concatenate([forth, back], -1))
            x = forth
        weights = nn.softmax(nn.Dense(1)(jnp.tanh(nn.Dense(WIDTH)(x))), 1)
        return (x * weights).sum(1)

    def _scan(self, cell: nn.Module, x: Array) -> Array:
        if not self.unrolled:
            return nn.RNN(cell)(x)
        state = cell.initialize_carry(jax.random.key(0), x[:, 0].shape)
        found = []
        for t in range(x.shape[1]):
            state, y = cell(state, x[:, t])
            found.append(y)
        return jnp.stack(found, 1)


class Perceiver(nn.Module):
    """Jaegle et al. 2021: a few latents read the input again and again."""

    depth: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return (batch, 10) from (batch, time, WIDTH)."""
        latent = self.param("latent", nn.initializers.normal(0.02), (8, WIDTH))
        z = jnp.broadcast_to(latent, (x.shape[0], 8, WIDTH))
        for _ in range(self.depth):
            z = z + Attention()(nn.LayerNorm()(z), nn.LayerNorm()(x))
            z = z + Plain()(nn.LayerNorm()(z))
            z = z + Attention()(nn.LayerNorm()(z))
            z = z + Plain()(nn.LayerNorm()(z))
        return nn.Dense(10)(z.mean(1))


class WaveNet(nn.Module):
    """van den Oord et al. 2016."""

    blocks: int
    layers: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return (batch, time, WIDTH)."""
        skips = []
        for _ in range(self.blocks):
            for i in range(self.layers):
                conv = partial(nn.Conv, WIDTH, (2,), padding="CAUSAL", kernel_dilation=2**i)
                y = jnp.tanh(conv()(x)) * nn.sigmoid(conv()(x))
                skips.append(nn.Dense(WIDTH)(y))
                x = x + nn.Dense(WIDTH)(y)
        return nn.Dense(WIDTH)(nn.relu(sum(skips[1:], skips[0])))


def _words(batch: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return (ints(batch, TOKENS),)


def _pairs(batch: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return ints(batch, TOKENS), ints(batch, TOKENS)


def _times(steps: int, batch: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return (floats(batch, steps, WIDTH),)


FAMILY = {"bert": "bert", "gpt": "gpt", "llama": "llama", "moe": "moe",
          "performer": "linear-attention", "parallel": "gpt"}  # fmt: skip
RECIPES: dict[str, Recipe] = {
    **{
        f"{kind}-{n}": Recipe(FAMILY[kind], partial(Transformer, kind, n), _words)
        for kind in FAMILY
        for n in (2, 6, 12)
    },
    **{f"moe-4x{e}": Recipe("moe", partial(Transformer, "moe", 4, e), _words) for e in (8, 16)},
    **{
        f"{'t5' if g else 'transformer'}-{n}": Recipe("t5", partial(EncoderDecoder, n, g), _pairs)
        for n in (2, 4, 6)
        for g in (False, True)
    },
    **{
        f"mamba-{n}-{'parallel' if p else 'steps'}": Recipe(
            "mamba", partial(StateSpace, n, p), _words
        )
        for n in (2, 4, 8)
        for p in (False, True)
    },
    **{
        f"{'bi' if both else ''}{cell}-{n}-{'unrolled' if u else 'scanned'}": Recipe(
            "recurrent", partial(Recurrent, cell, n, u, both), partial(_times, 16)
        )
        for cell in ("lstm", "gru", "rnn")
        for n, u, both in ((1, True, False), (2, True, True), (4, False, False), (3, True, False))
    },
    **{
        f"perceiver-{n}": Recipe("perceiver", partial(Perceiver, n), partial(_times, 128))
        for n in (2, 4, 8)
    },
    **{
        f"wavenet-{b}x{n}": Recipe("wavenet", partial(WaveNet, b, n), partial(_times, 256))
        for b, n in ((1, 6), (2, 8), (3, 10))
    },
}
