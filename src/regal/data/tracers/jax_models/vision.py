"""Image networks: convolutional, mixers, transformers, encoder-decoders."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from flax import linen as nn

from regal.data.tracers.jax_models import Recipe, floats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jax import Array

SIDE = 64


class Norm(nn.Module):
    """Normalization over groups of channels: no running statistics to carry."""

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return `x` normalized."""
        return nn.GroupNorm(num_groups=8)(x)


class Block(nn.Module):
    """A residual block, plain or bottleneck, before or after activation."""

    width: int
    stride: int
    is_bottleneck: bool
    is_preactivated: bool

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return the block's output."""
        y = nn.relu(Norm()(x)) if self.is_preactivated else x
        side = x
        out = self.width * (4 if self.is_bottleneck else 1)
        if self.stride > 1 or x.shape[-1] != out:
            side = nn.Conv(out, (1, 1), self.stride)(y)
        kernels = (1, 3, 1) if self.is_bottleneck else (3, 3)
        widths = (self.width, self.width, out) if self.is_bottleneck else (self.width, out)
        strided = kernels.index(3)
        for i, (kernel, width) in enumerate(zip(kernels, widths, strict=True)):
            is_last = i == len(kernels) - 1
            y = nn.Conv(width, (kernel, kernel), self.stride if i == strided else 1)(y)
            if i == 0 and not self.is_bottleneck:
                y = nn.relu(Norm()(y))
            elif not (is_last and self.is_preactivated):
                y = Norm()(y) if is_last else nn.relu(Norm()(y))
        return y + side if self.is_preactivated else nn.relu(y + _fit(side, y))


def _fit(side: Array, like: Array) -> Array:
    step = side.shape[1] // like.shape[1]
    return side if step <= 1 else nn.avg_pool(side, (step, step), (step, step))


class ResNet(nn.Module):
    """He et al. 2016."""

    stages: Sequence[int]
    is_bottleneck: bool = False
    is_preactivated: bool = False
    width: int = 32

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return class scores of (batch, side, side, 3) images."""
        x = nn.relu(Norm()(nn.Conv(self.width, (7, 7), 2)(x)))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for stage, depth in enumerate(self.stages):
            for i in range(depth):
                stride = 2 if stage and not i and self.is_preactivated else 1
                width = self.width * 2**stage
                x = Block(width, stride, self.is_bottleneck, self.is_preactivated)(x)
            if not self.is_preactivated and stage + 1 < len(self.stages):
                x = nn.avg_pool(x, (2, 2), (2, 2))
        return nn.Dense(10)(x.mean((1, 2)))


class DenseNet(nn.Module):
    """Huang et al. 2017."""

    stages: Sequence[int]
    growth: int = 16

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return class scores."""
        x = nn.Conv(2 * self.growth, (3, 3))(x)
        for stage, depth in enumerate(self.stages):
            for _ in range(depth):
                y = nn.Conv(4 * self.growth, (1, 1))(nn.relu(Norm()(x)))
                y = nn.Conv(self.growth, (3, 3))(nn.relu(Norm()(y)))
                x = jnp.concatenate([x, y], -1)
            if stage + 1 < len(self.stages):
                x = nn.Conv(x.shape[-1] // 2, (1, 1))(nn.relu(Norm()(x)))
                x = nn.avg_pool(x, (2, 2), (2, 2))
        return nn.Dense(10)(x.mean((1, 2)))


class Inverted(nn.Module):
    """Sandler et al. 2018 (MobileNetV2); with `squeeze`, Tan & Le 2019 (EfficientNet)."""

    stages: Sequence[int]
    squeeze: bool = False

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return class scores."""
        x = nn.swish(Norm()(nn.Conv(16, (3, 3), 2)(x)))
        for stage, depth in enumerate(self.stages):
            width = 16 * (stage + 1)
            for i in range(depth):
                inner = 4 * x.shape[-1]
                y = nn.swish(Norm()(nn.Conv(inner, (1, 1))(x)))
                stride = 2 if i == 0 and stage else 1
                y = nn.Conv(inner, (3, 3), stride, feature_group_count=inner)(y)
                y = nn.swish(Norm()(y))
                if self.squeeze:
                    s = nn.swish(nn.Dense(inner // 16)(y.mean((1, 2))))
                    y = y * nn.sigmoid(nn.Dense(inner)(s))[:, None, None, :]
                y = Norm()(nn.Conv(width, (1, 1))(y))
                x = x + y if x.shape == y.shape else y
        return nn.Dense(10)(x.mean((1, 2)))


class Inception(nn.Module):
    """Szegedy et al. 2015: four branches a block."""

    blocks: int

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return class scores."""
        x = nn.max_pool(nn.relu(nn.Conv(32, (7, 7), 2)(x)), (3, 3), (2, 2), "SAME")
        for i in range(self.blocks):
            conv = partial(nn.Conv, 16 * (1 + i // 3))
            a = nn.relu(conv((1, 1))(x))
            b = nn.relu(conv((3, 3))(nn.relu(conv((1, 1))(x))))
            c = nn.relu(conv((5, 5))(nn.relu(conv((1, 1))(x))))
            d = nn.relu(conv((1, 1))(nn.max_pool(x, (3, 3), (1, 1), "SAME")))
            x = jnp.concatenate([a, b, c, d], -1)
            if i % 3 == 2:
                x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        return nn.Dense(10)(x.mean((1, 2)))


class ConvNext(nn.Module):
    """Liu et al. 2022."""

    stages: Sequence[int]

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return class scores."""
        x = nn.LayerNorm()(nn.Conv(24, (4, 4), 4)(x))
        for stage, depth in enumerate(self.stages):
            width = 24 * 2**stage
            if stage:
                x = nn.Conv(width, (2, 2), 2)(nn.LayerNorm()(x))
            for i in range(depth):
                y = nn.LayerNorm()(nn.Conv(width, (7, 7), feature_group_count=width)(x))
                y = nn.Dense(width)(nn.gelu(nn.Dense(4 * width)(y)))
                x = x + y * self.param(f"scale{stage}_{i}", nn.initializers.ones, (width,))
        return nn.Dense(10)(x.mean((1, 2)))


class Mixer(nn.Module):
    """Tolstikhin et al. 2021; with `gates`, Liu et al. 2021 (gMLP)."""

    depth: int
    gates: bool = False
    width: int = 64

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return class scores."""
        x = nn.Conv(self.width, (8, 8), 8)(x)
        x = x.reshape(x.shape[0], -1, self.width)
        for _ in range(self.depth):
            if self.gates:
                u, v = jnp.split(nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x))), 2, -1)
                v = nn.Dense(x.shape[1])(nn.LayerNorm()(v).swapaxes(1, 2)).swapaxes(1, 2)
                x = x + nn.Dense(self.width)(u * v)
                continue
            y = nn.LayerNorm()(x).swapaxes(1, 2)
            y = nn.Dense(x.shape[1])(nn.gelu(nn.Dense(2 * x.shape[1])(y)))
            x = x + y.swapaxes(1, 2)
            y = nn.Dense(4 * self.width)(nn.LayerNorm()(x))
            x = x + nn.Dense(self.width)(nn.gelu(y))
        return nn.Dense(10)(nn.LayerNorm()(x).mean(1))


class Vit(nn.Module):
    """Dosovitskiy et al. 2021; with `pools`, tokens are merged between stages."""

    depth: int
    pools: int = 0
    width: int = 64

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """Return class scores."""
        x = nn.Conv(self.width, (8, 8), 8)(x)
        x = x.reshape(x.shape[0], -1, self.width)
        x = x + self.param("position", nn.initializers.normal(0.02), x.shape[1:])
        for i in range(self.depth):
            y = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(4)(y, y)
            y = nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x)))
            x = x + nn.Dense(x.shape[-1])(y)
            if self.pools and i % self.pools == self.pools - 1:
                x = nn.Dense(2 * x.shape[-1])(x.reshape(x.shape[0], x.shape[1] // 2, -1))
        return nn.Dense(10)(nn.LayerNorm()(x).mean(1))


class UNet(nn.Module):
    """Ronneberger et al. 2015; with `time`, a denoiser (Ho et al. 2020) with attention."""

    depth: int
    blocks: int = 1
    time: bool = False

    @nn.compact
    def __call__(self, x: Array, time: Array | None = None) -> Array:
        """Return an image per image."""
        code = None
        if time is not None:
            angles = time[:, None] * jnp.exp(-jnp.arange(16) / 4.0)
            code = nn.swish(nn.Dense(64)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)))
        kept = []
        x = nn.Conv(16, (3, 3))(x)
        for level in range(self.depth):
            for _ in range(self.blocks):
                x = self._unit(x, 16 * 2**level, code)
            kept.append(x)
            x = nn.Conv(x.shape[-1], (3, 3), 2)(x)
        x = self._unit(x, 16 * 2**self.depth, code)
        if self.time:
            tokens = Norm()(x).reshape(x.shape[0], -1, x.shape[-1])
            x = x + nn.SelfAttention(4)(tokens).reshape(x.shape)
        for level in reversed(range(self.depth)):
            n, h, w, c = x.shape
            x = nn.Conv(c // 2, (3, 3))(jax.image.resize(x, (n, 2 * h, 2 * w, c), "nearest"))
            x = jnp.concatenate([x, kept[level]], -1)
            for _ in range(self.blocks):
                x = self._unit(x, 16 * 2**level, code)
        return nn.Conv(3, (1, 1))(x)

    def _unit(self, x: Array, width: int, code: Array | None) -> Array:
        y = nn.Conv(width, (3, 3))(nn.swish(Norm()(x)))
        if code is not None:
            y = y + nn.Dense(width)(code)[:, None, None, :]
        y = nn.Conv(width, (3, 3))(nn.swish(Norm()(y)))
        return y + (x if x.shape == y.shape else nn.Conv(width, (1, 1))(x))


def _image(batch: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return (floats(batch, SIDE, SIDE, 3),)


def _noisy(batch: int) -> tuple[jax.ShapeDtypeStruct, ...]:
    return floats(batch, SIDE, SIDE, 3), floats(batch)


RECIPES: dict[str, Recipe] = {
    **{
        f"resnet-{'x'.join(map(str, s))}{'-bottleneck' if b else ''}{'-v2' if v else ''}": Recipe(
            "resnet", partial(ResNet, s, b, v), _image
        )
        for s in ((2, 2, 2), (3, 4, 6), (3, 4, 23, 3))
        for b in (False, True)
        for v in (False, True)
    },
    **{
        f"densenet-{'x'.join(map(str, s))}": Recipe("densenet", partial(DenseNet, s), _image)
        for s in ((4, 4, 4), (6, 12, 24), (6, 12, 32, 32))
    },
    **{
        f"{'efficientnet' if q else 'mobilenet'}-{'x'.join(map(str, s))}": Recipe(
            "mobilenet", partial(Inverted, s, q), _image
        )
        for s in ((1, 2, 2), (1, 2, 3, 4), (2, 3, 4, 6, 3))
        for q in (False, True)
    },
    **{f"inception-{n}": Recipe("inception", partial(Inception, n), _image) for n in (3, 6, 9)},
    **{
        f"convnext-{'x'.join(map(str, s))}": Recipe("convnext", partial(ConvNext, s), _image)
        for s in ((1, 1, 2), (2, 2, 6), (3, 3, 9, 3))
    },
    **{
        f"{'gmlp' if g else 'mixer'}-{n}": Recipe("mlp_mixer", partial(Mixer, n, g), _image)
        for n in (4, 8, 12)
        for g in (False, True)
    },
    **{f"vit-{n}": Recipe("vit", partial(Vit, n), _image) for n in (3, 6, 12)},
    **{f"merging-vit-{n}": Recipe("vit", partial(Vit, n, 2), _image) for n in (4, 6)},
    **{
        f"unet-{d}x{b}": Recipe("unet", partial(UNet, d, b), _image)
        for d, b in ((2, 1), (3, 1), (4, 2))
    },
    **{
        f"ddpm-{d}x{b}": Recipe("diffusion-unet", partial(UNet, d, b, True), _noisy)
        for d, b in ((2, 1), (3, 2), (4, 3))
    },
}
