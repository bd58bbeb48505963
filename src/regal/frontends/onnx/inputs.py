"""Seeded inputs on which a model runs without complaint: small, valid, not saturated."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NUMPY_OF = {
    "float": "float32",
    "double": "float64",
    "float16": "float16",
    "int8": "int8",
    "uint8": "uint8",
    "int16": "int16",
    "uint16": "uint16",
    "int32": "int32",
    "uint32": "uint32",
    "int64": "int64",
    "uint64": "uint64",
    "bool": "bool",
}
# How integers are drawn, tried in this sequence until the model accepts them. The last one
# also leaves out optional inputs.
STYLES = ("small", "ones", "zeros", "absent")
# Integers that steer a model, by a part of their name; the first that fits wins.
STEERING = (
    ("max_length", 12),
    ("min_length", 1),
    ("num_beams", 2),
    ("num_return_sequences", 1),
    ("trip_count", 3),
    ("length_penalty", 1),
    ("mask", 1),
    ("len", 1),
)
ELEMENTS_OF_SEQUENCE = 2


def values(
    name: str, kind: str, shape: Sequence[int], seed: int, style: str
) -> NDArray[np.generic] | None:
    """Return values for the tensor input `name`, or None where the type cannot be made.

    Token ids, masks, lengths and indices stay small and valid; data are drawn over the range
    in which nothing saturates. The same arguments give the same values.

    Args:
        name: of the input; some names say what its integers mean.
        kind: element type in ONNX Runtime's words, "float" or "int64".
        shape: all dimensions.
        seed: number of the run.
        style: one of STYLES.
    """
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    size = tuple(shape)
    if kind == "string":
        words = np.array(["a", "bc", "regal"], dtype=object)
        return np.asarray(words[random.integers(0, 3, size)], dtype=object).reshape(size)
    if kind not in NUMPY_OF:
        return None
    dtype = np.dtype(NUMPY_OF[kind])
    if dtype.kind == "f":
        return np.asarray(random.uniform(-1.0, 1.0, size)).astype(dtype)
    if style == "zeros":
        return np.zeros(size, dtype)
    if style == "ones":
        return np.ones(size, dtype)
    if dtype.kind == "b":
        return np.asarray(random.integers(0, 2, size)).astype(dtype)
    steering = next((number for part, number in STEERING if part in name.lower()), None)
    if steering is not None:
        return np.full(size, steering, dtype)
    if dtype.itemsize == 1:
        information = np.iinfo(dtype)
        low, high = int(information.min), int(information.max)
        return np.asarray(random.integers(low, high, size, endpoint=True)).astype(dtype)
    return np.asarray(random.integers(0, 3, size)).astype(dtype)
