"""Seeded inputs for TensorFlow graphs: small, valid, not saturated."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from regal.backends.tensorflow.request import Feed

# How integers and strings are drawn, tried in this sequence until the graph accepts them.
STYLES = ("small", "ones", "zeros")
# Numbers that steer a model, by a part of their name: others might never end, or mean nothing.
STEERING = (("keep_prob", 0.5), ("factor", 0.7), ("min_size", 20.0), ("threshold", 0.5))


def value_of(
    feed: Feed, seed: int, style: str, maker: Callable[[np.random.Generator], bytes] | None
) -> NDArray[Any]:
    """Return the value of one input in one run; the same arguments give the same value.

    Floating-point numbers are drawn over the range in which nothing saturates, unless their
    name says what they are for. Integers are
    0 to 2, or all 1, or all 0. A string is what `maker` makes, or empty.
    """
    random = np.random.default_rng([seed, zlib.crc32(feed.tensor.encode())])
    if feed.dtype == "string":
        strings = np.full(feed.shape, b"", dtype=object)
        if maker is not None:
            for index in np.ndindex(strings.shape):
                strings[index] = maker(random)
        return strings
    dtype = np.dtype(feed.dtype)
    if dtype.kind == "b":
        drawn = random.integers(0, 2, feed.shape)
        return np.asarray({"ones": drawn * 0 + 1, "zeros": drawn * 0}.get(style, drawn), dtype)
    if dtype.kind in "iu":
        drawn = random.integers(0, 3, feed.shape)
        return np.asarray({"ones": drawn * 0 + 1, "zeros": drawn * 0}.get(style, drawn), dtype)
    if dtype.kind == "c":
        return (random.uniform(-1, 1, feed.shape) + 1j * random.uniform(-1, 1, feed.shape)).astype(
            dtype
        )
    steering = next((value for part, value in STEERING if part in feed.tensor.lower()), None)
    if steering is not None:
        return np.full(feed.shape, steering).astype(dtype)
    # Also bfloat16 and the like, which numpy has no kind for.
    return np.asarray(random.uniform(-1.0, 1.0, feed.shape)).astype(dtype)


def variable_value(name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return the value of a variable that no initializer fills: positive, so that roots exist."""
    if np.dtype(dtype).kind == "O":
        return np.full(shape, b"", dtype=object)
    random = np.random.default_rng(zlib.crc32(name.encode()))
    drawn = random.uniform(0.01, 0.1, shape)
    if np.dtype(dtype).kind in "iub":
        drawn = np.zeros(shape)
    return np.asarray(drawn).astype(dtype)
