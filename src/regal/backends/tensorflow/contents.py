"""What strings a graph can read: messages, sounds; told by the operators that take them apart."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    Maker = Callable[[np.random.Generator], bytes]

_PARSERS = ("ParseExample", "ParseExampleV2", "ParseSingleExample")
_SAMPLES = 16_000  # of a sound whose length nothing tells
_RATE = 16_000  # samples per second


def maker_of(tf: Any, tensor: Any) -> Maker | None:
    """Return a function that makes contents which the readers of a string tensor can read.

    None: nothing tells what it should hold.
    """
    for op in tensor.consumers():
        if op.type == "DecodeWav":
            samples = op.get_attr("desired_samples")
            count = samples if samples > 0 else _SAMPLES
            return lambda random: _sound(random, count)
        if op.type in _PARSERS:
            features = _features(tf, op)
            return lambda random: _example(tf, random, features)
    return None


def _sound(random: np.random.Generator, count: int) -> bytes:
    """Return a WAV file of one channel: `count` random samples of 16 bits."""
    data = random.integers(-3000, 3000, count).astype("<i2").tobytes()
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, _RATE, 2 * _RATE, 2, 16)
    body = b"WAVE" + form + struct.pack("<4sI", b"data", len(data)) + data
    return struct.pack("<4sI", b"RIFF", len(body)) + body


def _features(tf: Any, op: Any) -> list[tuple[bytes, str, int]]:
    """Return (key, type, number of values) of what a parser wants to find."""
    if op.type == "ParseSingleExample":
        keys = [key.encode() for key in op.get_attr("dense_keys")]
    elif op.type == "ParseExampleV2":
        keys = list(tf.get_static_value(op.inputs[3]))
    else:
        first = 2 + op.get_attr("Nsparse")
        keys = [tf.get_static_value(t).item() for t in op.inputs[first:][: op.get_attr("Ndense")]]
    types = [dtype.name for dtype in op.get_attr("Tdense")]
    counts = [tf.TensorShape(shape).num_elements() or 1 for shape in op.get_attr("dense_shapes")]
    return list(zip(keys, types, counts, strict=True))


def _example(tf: Any, random: np.random.Generator, features: list[tuple[bytes, str, int]]) -> bytes:
    """Return an Example message with random values for `features`."""
    example = tf.train.Example()
    for key, dtype, count in features:
        feature = example.features.feature[key.decode()]
        if dtype == "string":
            feature.bytes_list.value.extend([b"regal"] * count)
        elif dtype == "int64":
            feature.int64_list.value.extend(int(n) for n in random.integers(0, 3, count))
        else:
            feature.float_list.value.extend(float(x) for x in random.uniform(-1, 1, count))
    data: bytes = example.SerializeToString()
    return data
