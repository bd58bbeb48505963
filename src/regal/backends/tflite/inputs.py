"""Seeded inputs that exercise a model: moderate values, so that differences are not clipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from regal.frontends.tflite import TfliteSource
    from regal.frontends.tflite.model import FileSubgraph

_FLOATS: Final = ("float32", "float16", "float64")
_QUANTIZED: Final = ("int8", "uint8", "int16")
_WORDS: Final = (b"a", b"quick test", b"of the model", b"with words")
# Unquantized integers are often indices; 0 and 1 are valid in nearly everything.
_SMALL_INTEGERS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """One input of an entry: what the runtime wants, and what values make sense."""

    argument: str  # its name in a signature
    dtype: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int
    limit: int  # integers stay below it


def input_specs(source: TfliteSource, entry: int) -> list[InputSpec]:
    """Return the inputs of subgraph `entry`, bound to their shapes."""
    subgraph = source.file.subgraphs[entry]
    arguments = _arguments(source, entry)
    return [
        InputSpec(
            argument=arguments.get(t, subgraph.tensors[t].name),
            dtype=subgraph.tensors[t].type.name,
            shape=source.shapes.of[entry][t],
            scale=subgraph.tensors[t].scale,
            zero_point=subgraph.tensors[t].zero_point,
            limit=_limit(source, subgraph, entry, t),
        )
        for t in subgraph.inputs
    ]


def values_of(
    spec: InputSpec, seed: int, entry: int, invocation: int, position: int
) -> NDArray[Any]:
    """Return the value of one input for one invocation; equal arguments give equal values.

    Numbers are normal around a level, and level and spread change from one invocation to the
    next: a classifier that saw only one kind of noise would give one answer. Quantized values
    keep within two thirds of their range, around the zero point; other integers are small.
    """
    random = np.random.default_rng([seed, entry, invocation, position])
    level, spread = random.uniform(-0.5, 0.5), random.uniform(0.1, 0.5)
    if spec.dtype in _FLOATS:
        return (level + spread * random.standard_normal(spec.shape)).astype(spec.dtype)
    if spec.dtype == "bool":
        return random.integers(0, 2, spec.shape).astype(bool)
    if spec.dtype == "string":
        picked = random.integers(0, len(_WORDS), spec.shape)
        return np.array(_WORDS, dtype=object)[picked]
    if spec.dtype.startswith("complex"):
        parts = random.standard_normal((2, *spec.shape))
        return np.asarray(parts[0] + 1j * parts[1]).astype(spec.dtype)
    if spec.dtype in _QUANTIZED:
        kind = np.iinfo(spec.dtype)
        middle = (kind.min + kind.max + 1) // 2
        center = spec.zero_point if spec.scale else middle
        if abs(center - middle) > (kind.max - middle) // 2:
            center = middle  # one-sided: values that are never negative
        reach = (kind.max - kind.min) // 3
        drawn = level + spread * random.standard_normal(spec.shape)
        whole = np.rint(center + reach * np.clip(drawn, -1, 1))
        return np.clip(whole, kind.min, kind.max).astype(spec.dtype)
    return random.integers(0, max(spec.limit, 1), spec.shape).astype(spec.dtype)


def _arguments(source: TfliteSource, entry: int) -> Mapping[int, str]:
    """Return tensor -> argument name of the first signature that runs the entry."""
    for signature in source.file.signatures:
        if signature.subgraph == entry:
            return signature.arguments
    return {}


def _limit(source: TfliteSource, subgraph: FileSubgraph, entry: int, tensor: int) -> int:
    """Return a bound for integer inputs: the number of rows that look-ups with it can reach."""
    rows = []
    for op in subgraph.operators:
        if op.kind in ("GATHER", "EMBEDDING_LOOKUP") and len(op.inputs) > 1:
            table, index = op.inputs[:2] if op.kind == "GATHER" else op.inputs[1::-1]
            shape = source.shapes.of[entry][table]
            if index == tensor and shape:
                rows.append(shape[0])
    return min(rows, default=_SMALL_INTEGERS)
