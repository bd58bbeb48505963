"""Architectures written with keras layers, for those that keras.applications does not have."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import keras
from keras import layers as kl

if TYPE_CHECKING:
    from collections.abc import Callable

Model = Any  # keras.Model; keras has no annotations
WORDS, TOKENS, WIDTH, SIDE = 1000, 32, 64, 64


def _block(x: Any, width: int) -> Any:
    for _ in range(2):
        x = kl.Conv2D(width, 3, padding="same", activation="relu")(x)
        x = kl.BatchNormalization()(x)
    return x


def unet(depth: int) -> Model:
    """Return Ronneberger et al. 2015."""
    x = source = kl.Input((SIDE, SIDE, 3))
    kept = []
    for level in range(depth):
        x = _block(x, 16 * 2**level)
        kept.append(x)
        x = kl.MaxPooling2D()(x)
    x = _block(x, 16 * 2**depth)
    for level in reversed(range(depth)):
        x = kl.Conv2DTranspose(16 * 2**level, 2, strides=2)(x)
        x = _block(kl.Concatenate()([x, kept[level]]), 16 * 2**level)
    return keras.Model(source, kl.Conv2D(2, 1)(x))


def recurrent(cell: str, count: int, *, both: bool, unroll: bool) -> Model:
    """Return stacked recurrent layers over words."""
    x = source = kl.Input((16,), dtype="int32")
    x = kl.Embedding(WORDS, WIDTH)(x)
    for _ in range(count):
        layer = getattr(kl, cell)(WIDTH, return_sequences=True, unroll=unroll)
        x = kl.Bidirectional(layer)(x) if both else layer(x)
    return keras.Model(source, kl.Dense(10)(kl.GlobalAveragePooling1D()(x)))


def transformer(depth: int, *, causal: bool) -> Model:
    """Return layers of attention: after normalization (causal), or before (Vaswani et al. 2017)."""
    x = source = kl.Input((TOKENS,), dtype="int32")
    x = kl.Embedding(WORDS, WIDTH)(x)
    for _ in range(depth):
        attend = kl.MultiHeadAttention(4, WIDTH // 4)
        if causal:
            y = kl.LayerNormalization()(x)
            x = kl.Add()([x, attend(y, y, use_causal_mask=True)])
            y = kl.LayerNormalization()(x)
            x = kl.Add()([x, kl.Dense(WIDTH)(kl.Dense(4 * WIDTH, activation="gelu")(y))])
        else:
            x = kl.LayerNormalization()(kl.Add()([x, attend(x, x)]))
            y = kl.Dense(WIDTH)(kl.Dense(4 * WIDTH, activation="gelu")(x))
            x = kl.LayerNormalization()(kl.Add()([x, y]))
    return keras.Model(source, kl.Dense(WORDS)(x))


def translator(depth: int) -> Model:
    """Return an encoder and a decoder of attention layers."""
    source, target = (kl.Input((TOKENS,), dtype="int32") for _ in range(2))
    embed = kl.Embedding(WORDS, WIDTH)
    x, y = embed(source), embed(target)
    for _ in range(depth):
        x = kl.LayerNormalization()(kl.Add()([x, kl.MultiHeadAttention(4, 16)(x, x)]))
        x = kl.LayerNormalization()(kl.Add()([x, kl.Dense(WIDTH, activation="relu")(x)]))
    for _ in range(depth):
        own = kl.MultiHeadAttention(4, 16)(y, y, use_causal_mask=True)
        y = kl.LayerNormalization()(kl.Add()([y, own]))
        y = kl.LayerNormalization()(kl.Add()([y, kl.MultiHeadAttention(4, 16)(y, x)]))
        y = kl.LayerNormalization()(kl.Add()([y, kl.Dense(WIDTH, activation="relu")(y)]))
    return keras.Model([source, target], kl.Dense(WORDS)(y))


def vit(depth: int) -> Model:
    """Return Dosovitskiy et al. 2021, on patches of 8 x 8."""
    x = source = kl.Input((SIDE, SIDE, 3))
    x = kl.Reshape((-1, WIDTH))(kl.Conv2D(WIDTH, 8, strides=8)(x))
    for _ in range(depth):
        y = kl.LayerNormalization()(x)
        x = kl.Add()([x, kl.MultiHeadAttention(4, 16)(y, y)])
        y = kl.LayerNormalization()(x)
        x = kl.Add()([x, kl.Dense(WIDTH)(kl.Dense(4 * WIDTH, activation="gelu")(y))])
    return keras.Model(source, kl.Dense(10)(kl.GlobalAveragePooling1D()(x)))


def mixer(depth: int) -> Model:
    """Return Tolstikhin et al. 2021."""
    x = source = kl.Input((SIDE, SIDE, 3))
    x = kl.Reshape((-1, WIDTH))(kl.Conv2D(WIDTH, 8, strides=8)(x))
    for _ in range(depth):
        y = kl.Permute((2, 1))(kl.LayerNormalization()(x))
        y = kl.Dense(64)(kl.Dense(128, activation="gelu")(y))
        x = kl.Add()([x, kl.Permute((2, 1))(y)])
        y = kl.LayerNormalization()(x)
        x = kl.Add()([x, kl.Dense(WIDTH)(kl.Dense(128, activation="gelu")(y))])
    return keras.Model(source, kl.Dense(10)(kl.GlobalAveragePooling1D()(x)))


def wavenet(blocks: int, count: int) -> Model:
    """Return van den Oord et al. 2016."""
    x = source = kl.Input((256, WIDTH))
    skips = []
    for _ in range(blocks):
        for i in range(count):
            conv = partial(kl.Conv1D, WIDTH, 2, padding="causal", dilation_rate=2**i)
            y = kl.Multiply()([conv(activation="tanh")(x), conv(activation="sigmoid")(x)])
            skips.append(kl.Conv1D(WIDTH, 1)(y))
            x = kl.Add()([x, kl.Conv1D(WIDTH, 1)(y)])
    return keras.Model(source, kl.Conv1D(WIDTH, 1)(kl.ReLU()(kl.Add()(skips))))


def autoencoder(depth: int) -> Model:
    """Return strided convolutions down, and transposed ones up."""
    x = source = kl.Input((SIDE, SIDE, 3))
    for level in range(depth):
        x = kl.Conv2D(16 * 2**level, 3, strides=2, padding="same")(x)
        x = kl.LeakyReLU()(kl.BatchNormalization()(x))
    for level in reversed(range(depth)):
        x = kl.Conv2DTranspose(16 * 2**level, 3, strides=2, padding="same")(x)
        x = kl.LeakyReLU()(kl.BatchNormalization()(x))
    return keras.Model(source, kl.Conv2D(3, 3, padding="same")(x))


def ranker(tables: int, depth: int, crosses: int) -> Model:
    """Return Wang et al. 2021 (DCN v2): crosses of features beside a deep perceptron."""
    dense, sparse = kl.Input((13,)), kl.Input((tables,), dtype="int32")
    found = [kl.Flatten()(kl.Embedding(WORDS, 16)(sparse[:, i : i + 1])) for i in range(tables)]
    x0 = x = y = kl.Concatenate()([dense, *found])
    for _ in range(crosses):
        x = kl.Add()([kl.Multiply()([x0, kl.Dense(13 + 16 * tables)(x)]), x])
    for _ in range(depth):
        y = kl.Dense(64, activation="relu")(y)
    return keras.Model([dense, sparse], kl.Dense(1)(kl.Concatenate()([x, y])))


def text_cnn(widths: int) -> Model:
    """Return Kim 2014: windows of several widths over words."""
    x = source = kl.Input((TOKENS,), dtype="int32")
    x = kl.Embedding(WORDS, WIDTH)(x)
    pooled = [
        kl.GlobalMaxPooling1D()(kl.Conv1D(32, w + 2, activation="relu")(x)) for w in range(widths)
    ]
    return keras.Model(source, kl.Dense(10)(kl.Dropout(0.5)(kl.Concatenate()(pooled))))


def resnet(stages: tuple[int, ...]) -> Model:
    """Return He et al. 2016 with plain blocks."""
    x = source = kl.Input((SIDE, SIDE, 3))
    x = kl.MaxPooling2D()(kl.Conv2D(16, 7, strides=2, padding="same", activation="relu")(x))
    for stage, depth in enumerate(stages):
        for i in range(depth):
            width, stride = 16 * 2**stage, 2 if stage and not i else 1
            y = kl.Conv2D(width, 3, strides=stride, padding="same")(x)
            y = kl.ReLU()(kl.BatchNormalization()(y))
            y = kl.BatchNormalization()(kl.Conv2D(width, 3, padding="same")(y))
            if x.shape[1:] != y.shape[1:]:
                x = kl.BatchNormalization()(kl.Conv2D(width, 1, strides=stride)(x))
            x = kl.ReLU()(kl.Add()([x, y]))
    return keras.Model(source, kl.Dense(10)(kl.GlobalAveragePooling2D()(x)))


RECIPES: dict[str, tuple[str, Callable[[], Model]]] = {
    **{f"unet-{d}": ("unet", partial(unet, d)) for d in (2, 3, 4)},
    **{
        f"{'bi' if both else ''}{cell.lower()}-{n}{'-unrolled' if u else ''}": (
            "recurrent",
            partial(recurrent, cell, n, both=both, unroll=u),
        )
        for cell in ("LSTM", "GRU", "SimpleRNN")
        for n, both, u in ((2, False, True), (2, True, False), (3, False, False))
    },
    **{f"gpt-{n}": ("gpt", partial(transformer, n, causal=True)) for n in (2, 6)},
    **{f"bert-{n}": ("bert", partial(transformer, n, causal=False)) for n in (2, 6)},
    **{f"transformer-{n}": ("t5", partial(translator, n)) for n in (2, 4)},
    **{f"vit-{n}": ("vit", partial(vit, n)) for n in (3, 8)},
    **{f"mixer-{n}": ("mlp_mixer", partial(mixer, n)) for n in (4, 8)},
    **{f"wavenet-{b}x{n}": ("wavenet", partial(wavenet, b, n)) for b, n in ((1, 6), (2, 8))},
    **{f"autoencoder-{n}": ("autoencoder", partial(autoencoder, n)) for n in (3, 5)},
    **{
        f"dcn-{t}x{d}-{c}": ("recommender", partial(ranker, t, d, c))
        for t, d, c in ((8, 3, 3), (20, 4, 5))
    },
    **{f"text-cnn-{w}": ("text-cnn", partial(text_cnn, w)) for w in (3, 6)},
    **{
        f"resnet-{'x'.join(map(str, s))}": ("resnet", partial(resnet, s))
        for s in ((2, 2, 2), (2, 2, 2, 2), (3, 4, 6, 3))
    },
}
