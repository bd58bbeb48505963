"""Fingerprints of memory: they change with every byte, with their order, and with the length."""

from __future__ import annotations

import numpy as np
import pytest

from regal._native import fingerprints


def print_of(data: np.ndarray) -> int:
    addresses = np.array([data.ctypes.data], dtype=np.int64)
    return int(fingerprints(addresses, np.array([data.nbytes], dtype=np.int64))[0])


@pytest.mark.parametrize("size", [1, 7, 63, 64, 65, 1000])
def test_every_bit_counts(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    seen = {print_of(data)}
    for position in range(size):
        for bit in range(8):
            data[position] ^= 1 << bit
            seen.add(print_of(data))
            data[position] ^= 1 << bit
    assert len(seen) == 1 + 8 * size


def test_the_order_counts_within_and_across_stripes() -> None:
    data = np.arange(64, dtype=np.int64)
    swapped = [data]
    for first, second in ((0, 1), (0, 8), (3, 60), (7, 8)):
        other = data.copy()
        other[[first, second]] = other[[second, first]]
        swapped.append(other)
    assert len({print_of(each) for each in swapped}) == len(swapped)


def test_turning_all_signs_counts() -> None:
    data = np.random.default_rng(0).standard_normal(256).astype(np.float32)
    assert print_of(data) != print_of(-data)


def test_zeros_of_other_lengths_differ() -> None:
    assert len({print_of(np.zeros(n, dtype=np.uint8)) for n in range(1, 200)}) == 199


def test_equal_bytes_elsewhere_are_equal() -> None:
    data = np.arange(1001, dtype=np.uint8)
    assert print_of(data) == print_of(data.copy())


def test_counts_that_differ_yield_nothing() -> None:
    assert fingerprints(np.zeros(1, dtype=np.int64), np.zeros(2, dtype=np.int64)).size == 0
