"""Spoil JSON files: wrong values, missing keys, swapped parts, broken bytes."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random

NESTED: list[Any] = []
for _ in range(200):
    NESTED = [NESTED]

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 63, 64, 1 << 31, 1 << 40, 1 << 60, 1 << 61, (1 << 62) - 1,
    1 << 63, -(1 << 63), 10**40, 1.5, -0.0, 1e308, float("nan"), float("inf"), "", "x", "a\nb",
    "x" * 2000, "\ud800", "\x00", "\x1b[31m", "graph", "tflite", "onnx", "state", "captured",
    "cpu0", [], [0], [-1], [[0, 0]], [1, 2, 3], {}, {"": 0}, NESTED,
)  # fmt: skip


def spoiled(document: dict[str, Any], rng: random.Random) -> bytes:
    """Return the file of `document` after one to three random changes."""
    changed = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(CHANGES)(changed, rng)
    data = json.dumps(changed).encode()
    return _broken(data, rng) if rng.random() < 0.1 else data


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key or index) below `node`."""
    keys = list(node) if isinstance(node, dict) else range(len(node))
    found = []
    for key in keys:
        found.append((node, key))
        if isinstance(node[key], dict | list) and node[key] is not NESTED:
            found += _places(node[key])
    return found


def _replace(document: dict[str, Any], rng: random.Random) -> None:
    container, key = rng.choice(_places(document) or [(document, "x")])
    container[key] = copy.deepcopy(rng.choice(VALUES))


def _nudge(document: dict[str, Any], rng: random.Random) -> None:
    numbers = [(c, k) for c, k in _places(document) if type(c[k]) is int]
    if numbers:
        container, key = rng.choice(numbers)
        container[key] += rng.choice((-1, 1, -2, 16, -16))


def _drop(document: dict[str, Any], rng: random.Random) -> None:
    container, key = rng.choice(_places(document) or [({0: 0}, 0)])
    del container[key]


def _repeat(document: dict[str, Any], rng: random.Random) -> None:
    lists = [c[k] for c, k in _places(document) if isinstance(c[k], list) and c[k]]
    if lists:
        chosen = rng.choice(lists)
        chosen.insert(rng.randrange(len(chosen) + 1), copy.deepcopy(rng.choice(chosen)))


def _swap(document: dict[str, Any], rng: random.Random) -> None:
    """Trade two values of one type: names, offsets, whole ops."""
    places = _places(document)
    a, i = rng.choice(places or [({0: 0}, 0)])
    same = [(b, j) for b, j in places if type(b[j]) is type(a[i])]
    b, j = rng.choice(same or [(a, i)])
    a[i], b[j] = copy.deepcopy(b[j]), copy.deepcopy(a[i])


def _rename(document: dict[str, Any], rng: random.Random) -> None:
    keyed = [(c, k) for c, k in _places(document) if isinstance(c, dict)]
    if keyed:
        container, key = rng.choice(keyed)
        container[rng.choice((f"{key}s", "", "-1", "99", "\ud800"))] = container.pop(key)


CHANGES = (_replace, _replace, _nudge, _nudge, _drop, _repeat, _swap, _swap, _rename)


def _broken(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return rng.choice(
        (
            data[:at],
            data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :],
            data[:at] + data[at // 2 : at] + data[at:],
            b"\xef\xbb\xbf" + data,
            b"[" * 100_000,
            b'{"a":' * 100_000,
            b"",
            b"1" * 100_000,
        )
    )
