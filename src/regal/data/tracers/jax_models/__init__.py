"""Architectures written in flax: name -> (family, module, inputs)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

if TYPE_CHECKING:
    from collections.abc import Callable

    from flax import linen as nn


@dataclass(frozen=True, slots=True)
class Recipe:
    """One architecture: its family, the module, and the inputs for a batch of a size."""

    family: str
    make: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[jax.ShapeDtypeStruct, ...]]


def floats(*shape: int) -> jax.ShapeDtypeStruct:
    """Return the type of an array of float32."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def ints(*shape: int) -> jax.ShapeDtypeStruct:
    """Return the type of an array of int32."""
    return jax.ShapeDtypeStruct(shape, jnp.int32)
