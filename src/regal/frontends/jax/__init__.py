"""Read JAX programs: jaxprs, as `jax.make_jaxpr` returns them."""
