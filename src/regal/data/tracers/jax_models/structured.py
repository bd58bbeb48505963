"""Networks for graphs, molecules, physics and ranking: irregular structures, inner gradients."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from flax import linen as nn

from regal.data.tracers.jax_models import Recipe, floats, ints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jax import Array

WIDTH = 32
NODES, EDGES = 128, 512


class Mlp(nn.Module):
    """Dense layers with an activation between them."""

    sizes: Sequence[int]

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return the last layer's output."""
        for size in self.sizes[:-1]:
            x = nn.silu(nn.Dense(size)(x))
        return nn.Dense(self.sizes[-1])(x)


class GraphNet(nn.Module):
    """Gilmer et al. 2017: "gcn", "gat", "mpnn", "egnn" (Satorras et al. 2021), "schnet"."""

    kind: str
    layers: int

    @nn.compact
    def __call__(self, x: Array, place: Array, source: Array, target: Array) -> Array:
        """Return a number; `x` (nodes, WIDTH), `place` (nodes, 3), edges as index vectors."""
        kept = []
        for _ in range(self.layers):
            x, place = self._layer(x, place, source, target)
            kept.append(x)
        return Mlp((WIDTH, 1))(jnp.concatenate(kept, -1)).sum()

    def _layer(self, x: Array, place: Array, source: Array, target: Array) -> tuple[Array, Array]:
        total = partial(jax.ops.segment_sum, segment_ids=target, num_segments=NODES)
        if self.kind == "gcn":
            degree = total(jnp.ones(EDGES)) + 1.0
            message = (
                nn.Dense(WIDTH)(x)[source] / jnp.sqrt(degree[source] * degree[target])[:, None]
            )
            return nn.relu(total(message)), place
        if self.kind == "gat":
            h = nn.Dense(WIDTH)(x)
            score = nn.leaky_relu(nn.Dense(1)(jnp.concatenate([h[source], h[target]], -1)))
            weight = jnp.exp(score - score.max())
            share = weight / (total(weight)[target] + 1e-6)
            return nn.elu(total(share * h[source])), place
        offset = place[source] - place[target]
        distance = (offset**2).sum(-1, keepdims=True)
        if self.kind == "schnet":
            basis = jnp.exp(-10.0 * (distance - jnp.linspace(0.0, 5.0, 16)) ** 2)
            return x + Mlp((WIDTH,) * 2)(total(x[source] * Mlp((WIDTH,) * 2)(basis))), place
        message = Mlp((WIDTH, WIDTH))(jnp.concatenate([x[source], x[target], distance], -1))
        if self.kind == "egnn":
            place = place + total(offset * Mlp((WIDTH, 1))(message)) / 8.0
        return x + Mlp((WIDTH, WIDTH))(jnp.concatenate([x, total(message)], -1)), place


class Evoformer(nn.Module):
    """Jumper et al. 2021, one track of sequences and one of pairs."""

    blocks: int

    @nn.compact
    def __call__(self, rows: Array, pairs: Array) -> Array:
        """Return (residues, residues, WIDTH); `rows` (sequences, residues, WIDTH)."""
        attend = partial(nn.MultiHeadDotProductAttention, 4)
        for _ in range(self.blocks):
            bias = nn.Dense(4)(nn.LayerNorm()(pairs)).transpose(2, 0, 1)
            y = nn.LayerNorm()(rows)
            rows = rows + attend()(y, y) + bias.mean() * y
            y = nn.LayerNorm()(rows).swapaxes(0, 1)
            rows = rows + attend()(y, y).swapaxes(0, 1)
            rows = rows + Mlp((2 * WIDTH, WIDTH))(nn.LayerNorm()(rows))
            a, b = nn.Dense(8)(rows), nn.Dense(8)(rows)
            outer = jnp.einsum("sic,sjd->ijcd", a, b).reshape(*pairs.shape[:2], 64)
            pairs = pairs + nn.Dense(WIDTH)(outer)
            for equation in ("ikc,jkc->ijc", "kic,kjc->ijc"):
                z = nn.LayerNorm()(pairs)
                left = nn.sigmoid(nn.Dense(WIDTH)(z)) * nn.Dense(WIDTH)(z)
                right = nn.sigmoid(nn.Dense(WIDTH)(z)) * nn.Dense(WIDTH)(z)
                mixed = nn.Dense(WIDTH)(nn.LayerNorm()(jnp.einsum(equation, left, right)))
                pairs = pairs + nn.sigmoid(nn.Dense(WIDTH)(z)) * mixed
            z = nn.LayerNorm()(pairs)
            pairs = pairs + attend()(z, z)
            z = nn.LayerNorm()(pairs).swapaxes(0, 1)
            pairs = pairs + attend()(z, z).swapaxes(0, 1)
            pairs = pairs + Mlp((2 * WIDTH, WIDTH))(nn.LayerNorm()(pairs))
        return pairs


class Radiance(nn.Module):
    """Mildenhall et al. 2020 (NeRF): a deep perceptron along rays, then compositing."""

    depth: int

    @nn.compact
    def __call__(self, points: Array, view: Array) -> Array:
        """Return colors (rays, 3); `points` (rays, samples, 3), `view` (rays, 3)."""
        code = jnp.concatenate(
            [f(points * 2.0**i) for i in range(6) for f in (jnp.sin, jnp.cos)], -1
        )
        x = code
        for i in range(self.depth):
            x = nn.relu(nn.Dense(WIDTH)(x))
            if i == self.depth // 2:
                x = jnp.concatenate([x, code], -1)
        density = nn.relu(nn.Dense(1)(x))[..., 0]
        seen = jnp.broadcast_to(view[:, None, :], points.shape)
        color = nn.sigmoid(Mlp((WIDTH, 3))(jnp.concatenate([x, seen], -1)))
        passed = jnp.exp(-jnp.cumsum(density, -1))
        weight = (1.0 - jnp.exp(-density)) * passed
        return (weight[..., None] * color).sum(1)


class Flow(nn.Module):
    """Dinh et al. 2017 (RealNVP): affine couplings with their log-determinants."""

    layers: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return log-likelihoods (batch,)."""
        total = jnp.zeros(x.shape[0])
        for i in range(self.layers):
            a, b = jnp.split(x, 2, -1) if i % 2 == 0 else jnp.split(x, 2, -1)[::-1]
            scale, shift = jnp.split(Mlp((WIDTH, WIDTH, 2 * b.shape[-1]))(a), 2, -1)
            scale = jnp.tanh(scale)
            x = jnp.concatenate([a, b * jnp.exp(scale) + shift], -1)
            total = total + scale.sum(-1)
        return total - 0.5 * (x**2).sum(-1)


class Ode(nn.Module):
    """Chen et al. 2018: steps of Runge-Kutta through a learned field."""

    steps: int
    layers: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return the state at the end."""
        field = Mlp((WIDTH,) * self.layers + (x.shape[-1],))
        h = 1.0 / self.steps
        for _ in range(self.steps):
            a = field(x)
            b = field(x + 0.5 * h * a)
            c = field(x + 0.5 * h * b)
            d = field(x + h * c)
            x = x + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
        return x


class Physics(nn.Module):
    """Raissi et al. 2019: the residual of a differential equation, by derivatives of a network."""

    layers: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return the residual of Burgers' equation at points (batch, 2)."""
        net = Mlp((WIDTH,) * self.layers + (1,))
        net(x)  # makes the parameters
        variables = self.variables

        def value(point: Array) -> Array:
            inner = Mlp((WIDTH,) * self.layers + (1,))
            return inner.apply({"params": variables["params"]["Mlp_0"]}, point)[0]

        u = jax.vmap(value)(x)
        slope = jax.vmap(jax.grad(value))(x)
        curve = jax.vmap(jax.hessian(value))(x)[:, 0, 0]
        return (slope[:, 1] + u * slope[:, 0] - 0.01 * curve) ** 2


class Ranker(nn.Module):
    """Naumov et al. 2019 (DLRM), or with `crosses` Wang et al. 2021 (DCN v2)."""

    tables: int
    depth: int
    crosses: int = 0

    @nn.compact
    def __call__(self, dense: Array, sparse: Array) -> Array:
        """Return scores; `dense` (batch, 13), `sparse` (batch, tables)."""
        found = [nn.Embed(1000, 16)(sparse[:, i]) for i in range(self.tables)]
        if self.crosses:
            x0 = x = jnp.concatenate([dense, *found], -1)
            for _ in range(self.crosses):
                x = x0 * nn.Dense(x.shape[-1])(x) + x
            deep = Mlp((64,) * self.depth)(x0)
            return nn.Dense(1)(jnp.concatenate([x, deep], -1))
        low = Mlp((64,) * self.depth + (16,))(dense)
        stacked = jnp.stack([low, *found], 1)
        products = jnp.einsum("bid,bjd->bij", stacked, stacked)
        rows, columns = jnp.triu_indices(self.tables + 1, 1)
        x = jnp.concatenate([low, products[:, rows, columns]], -1)
        return Mlp((64,) * self.depth + (1,))(x)


class WorldModel(nn.Module):
    """Hafner et al. 2020 (Dreamer): recurrent states that are seen, then imagined."""

    steps: int

    @nn.compact
    def __call__(self, seen: Array, actions: Array) -> Array:
        """Return rewards (batch, 2 steps) from (batch, steps, WIDTH) observations."""
        cell, prior = nn.GRUCell(WIDTH), Mlp((WIDTH, 2 * WIDTH))
        posterior, reward, actor = Mlp((WIDTH, 2 * WIDTH)), Mlp((WIDTH, 1)), Mlp((WIDTH, 4))
        state = hidden = jnp.zeros((seen.shape[0], WIDTH))
        rewards, losses = [], []
        for t in range(self.steps):
            hidden, _ = cell(hidden, jnp.concatenate([state, actions[:, t]], -1))
            mean, scale = jnp.split(posterior(jnp.concatenate([hidden, seen[:, t]], -1)), 2, -1)
            guess, spread = jnp.split(prior(hidden), 2, -1)
            state = mean + 0.1 * nn.softplus(scale)
            losses.append(((mean - guess) ** 2 / (nn.softplus(spread) + 0.1)).sum(-1))
            rewards.append(reward(jnp.concatenate([hidden, state], -1))[:, 0])
        for _ in range(self.steps):
            action = nn.softmax(actor(jnp.concatenate([hidden, state], -1)))
            hidden, _ = cell(hidden, jnp.concatenate([state, action], -1))
            state = jnp.split(prior(hidden), 2, -1)[0]
            rewards.append(reward(jnp.concatenate([hidden, state], -1))[:, 0])
        return jnp.stack(rewards, 1).sum(1) - sum(losses[1:], losses[0])


class Adapted(nn.Module):
    """Finn et al. 2017 (MAML): a few inner steps of gradient descent, then the loss."""

    steps: int
    layers: int

    @nn.compact
    def __call__(self, x: Array, y: Array) -> Array:
        """Return the loss after adaption; `x` (tasks, points, 1)."""
        sizes = (WIDTH,) * self.layers + (1,)
        Mlp(sizes)(x)
        start = self.variables["params"]["Mlp_0"]

        def loss(weights: object, a: Array, b: Array) -> Array:
            return ((Mlp(sizes).apply({"params": weights}, a) - b) ** 2).mean()

        def adapted(a: Array, b: Array) -> Array:
            weights = start
            for _ in range(self.steps):
                slopes = jax.grad(loss)(weights, a, b)
                weights = jax.tree.map(lambda w, s: w - 0.01 * s, weights, slopes)
            return loss(weights, a, b)

        return jax.vmap(adapted)(x, y)


def _graph(_: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return floats(NODES, WIDTH), floats(NODES, 3), ints(EDGES), ints(EDGES)


def _protein(_: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return floats(16, 32, WIDTH), floats(32, 32, WIDTH)


def _rays(batch: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return floats(64 * batch, 32, 3), floats(64 * batch, 3)


def _vectors(size: int, batch: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return (floats(32 * batch, size),)


def _criteo(tables: int, batch: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return floats(32 * batch, 13), ints(32 * batch, tables)


def _episodes(steps: int, batch: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return floats(batch, steps, WIDTH), floats(batch, steps, 4)


def _tasks(batch: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return floats(batch, 16, 1), floats(batch, 16, 1)


RECIPES: dict[str, Recipe] = {
    **{
        f"{kind}-{n}": Recipe("gnn", partial(GraphNet, kind, n), _graph)
        for kind in ("gcn", "gat", "mpnn", "egnn", "schnet")
        for n in (3, 5, 8)
    },
    **{f"evoformer-{n}": Recipe("evoformer", partial(Evoformer, n), _protein) for n in (1, 2, 4)},
    **{f"nerf-{n}": Recipe("nerf", partial(Radiance, n), _rays) for n in (4, 8)},
    **{f"realnvp-{n}": Recipe("flow", partial(Flow, n), partial(_vectors, 8)) for n in (4, 8, 16)},
    **{
        f"ode-{s}x{n}": Recipe("ode", partial(Ode, s, n), partial(_vectors, 8))
        for s, n in ((4, 2), (8, 3), (20, 2))
    },
    **{f"pinn-{n}": Recipe("pinn", partial(Physics, n), partial(_vectors, 2)) for n in (3, 6)},
    **{
        f"dlrm-{t}x{n}": Recipe("recommender", partial(Ranker, t, n), partial(_criteo, t))
        for t, n in ((8, 3), (26, 4))
    },
    **{
        f"dcn-{t}x{n}-{c}": Recipe("recommender", partial(Ranker, t, n, c), partial(_criteo, t))
        for t, n, c in ((8, 3, 3), (26, 4, 6))
    },
    **{
        f"dreamer-{s}": Recipe("world-model", partial(WorldModel, s), partial(_episodes, s))
        for s in (4, 8, 15)
    },
    **{
        f"maml-{s}x{n}": Recipe("meta-learning", partial(Adapted, s, n), _tasks)
        for s, n in ((1, 2), (3, 3), (5, 4))
    },
}
