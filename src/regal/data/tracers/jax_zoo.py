"""Architectures in flax, traced to jaxprs without any array: inference, gradients, whole steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import flax
import jax
import jax.numpy as jnp

from regal.data.items import INFERENCE, JOINT, MODES, TRAINING, Item, items_of
from regal.data.tracers.jax_models import sequences, structured, vision
from regal.frontends.jax.jaxpr import graph_of
from regal.graph.types import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from regal.graph.types import Graph

RECIPES = {**vision.RECIPES, **sequences.RECIPES, **structured.RECIPES}
TRAINING_BATCH = 8
RATE = 0.001


def items() -> list[Item]:
    """Return items of every recipe in every mode."""
    families = {name: recipe.family for name, recipe in RECIPES.items()}
    return items_of("jax", "flax", families, modes=MODES, training_batch=TRAINING_BATCH)


def trace(item: Item) -> Graph:
    """Return the graph of an item: "joint" has loss and gradients, "training" Adam as well."""
    recipe = RECIPES[item.architecture]
    model, inputs = recipe.make(), recipe.inputs(item.batch)
    variables = jax.eval_shape(model.init, jax.random.key(0), *inputs)

    def loss(weights: Any, *given: Any) -> jax.Array:
        leaves = jax.tree.leaves(model.apply(weights, *given))
        return jnp.stack([(leaf.astype(jnp.float32) ** 2).mean() for leaf in leaves]).sum()

    held: tuple[Any, ...] = (variables,)
    programs: dict[str, Callable[..., Any]] = {
        INFERENCE: model.apply,
        JOINT: jax.value_and_grad(loss),
        TRAINING: _step_of(loss),
    }
    if item.mode == TRAINING:
        held = (variables, variables, variables)  # weights, and Adam's two moments
    closed = jax.make_jaxpr(programs[item.mode])(*held, *inputs)
    roles = [Role.PARAMETER] * len(jax.tree.leaves(held))
    return graph_of(closed, item.key, roles)


def version() -> str:
    """Return the versions of flax and jax."""
    return f"flax {flax.__version__}, jax {jax.__version__}"


def _step_of(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    """Return one step of Adam: new weights and moments are new arrays, as without donation."""

    def step(weights: Any, mean: Any, square: Any, *given: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(weights, *given)
        mean = jax.tree.map(lambda m, s: 0.9 * m + 0.1 * s, mean, slopes)
        square = jax.tree.map(lambda v, s: 0.999 * v + 0.001 * s * s, square, slopes)
        weights = jax.tree.map(
            lambda w, m, v: w - RATE * m / (jnp.sqrt(v) + 1e-8), weights, mean, square
        )
        return value, weights, mean, square

    return step
