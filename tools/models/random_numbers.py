"""Random numbers whose bits stay the same on every machine and numpy version."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


def uniform(seed: int, name: str, shape: tuple[int, ...]) -> Array:
    """Return numbers in [-1, 1), a function of seed, name and shape alone.

    Only the raw bits of the generator are used: numpy promises those, not its
    distributions.
    """
    bits = np.random.PCG64([seed, zlib.crc32(name.encode())])
    raw = np.asarray(bits.random_raw(int(np.prod(shape))), dtype=np.uint64)
    unit = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-52
    return (unit - 1.0).reshape(shape)


def images(seed: int, count: int, shape: tuple[int, ...]) -> Array:
    """Return `count` smooth pictures in [-1, 1], shape [count, height, width, channels].

    Each is coarse random patches, enlarged twice as much each time and summed: like a
    photo it has structure at every scale, so that pooled features differ between pictures.
    """
    height, width, channels = shape
    total = np.zeros((count, height, width, channels))
    cells = 2
    while cells <= max(height, width):
        coarse = uniform(seed, f"patches{cells}", (count, cells, cells, channels))
        rows = np.arange(height) * cells // height
        columns = np.arange(width) * cells // width
        total += coarse[:, rows][:, :, columns]
        cells *= 2
    return np.clip(total / 2.0, -1.0, 1.0)
