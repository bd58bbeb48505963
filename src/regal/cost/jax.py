"""JAX's primitives: normalized kinds and what they compute."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from regal.cost import formulas as f

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.cost.formulas import Rule
    from regal.cost.operands import Operands

KINDS: Final = {
    "conv": "conv_general_dilated conv_general_dilated_local",
    "matmul": "dot_general dot ragged_dot ragged_dot_general",
    "attention": "dot_product_attention",
    "rnn": "rnn",
    "pool": "reduce_window reduce_window_max reduce_window_min reduce_window_sum"
    " select_and_scatter select_and_scatter_add select_and_gather_add",
    "pointwise": "abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp"
    " complex conj convert_element_type cos cosh digamma div eq erf erf_inv erfc exp exp2 expm1"
    " floor ge gt imag integer_pow is_finite le lgamma log log1p logistic lt max min mul ne neg"
    " nextafter not or population_count pow real reduce_precision rem round rsqrt select_n"
    " shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square sub tan"
    " tanh xor igamma igammac polygamma bessel_i0e bessel_i1e regularized_incomplete_beta zeta"
    " triangular_solve cholesky lu qr eigh svd fft",
    "reduce": "argmax argmin reduce reduce_and reduce_max reduce_min reduce_or reduce_prod"
    " reduce_sum reduce_xor cumsum cumprod cummax cummin cumlogsumexp",
    "gather": "gather dynamic_slice",
    "scatter": "scatter scatter-add scatter_add scatter_mul scatter_min scatter_max scatter_sub"
    " dynamic_update_slice",
    "copy": "broadcast broadcast_in_dim concatenate copy copy_p iota pad rev slice transpose"
    " split stack tile unstack gather_concat",
    "view": "expand_dims reshape squeeze stop_gradient bitcast_convert_type sharding_constraint"
    " optimization_barrier pvary random_wrap random_unwrap",
    "sort": "sort top_k approx_top_k",
    "random": "random_bits random_fold_in random_seed random_split random_gamma threefry2x32"
    " rng_bit_generator rng_uniform",
    "control": "cond scan while pjit jit closed_call core_call custom_jvp_call custom_vjp_call"
    " custom_vjp_call_jaxpr remat remat2 checkpoint custom_lin xla_call",
    "none": "empty empty2 create_token",
}  # fmt: skip


def _product(op: Operands) -> int:
    """Return the products of a general dot: result elements times the contracted sizes.

    The frontend notes the contracted axes of the left side.
    """
    left = op.shape(0)
    return 2 * op.written * prod(left[axis] for axis in op.ints("lhs_contracting"))


def _convolution(op: Operands) -> int:
    """Return the products of a convolution, its weights' axes as the frontend notes them."""
    axis = op.number("rhs_out_axis")
    products = 2 * op.written * prod(size for i, size in enumerate(op.shape(1)) if i != axis)
    return products // prod(op.ints("lhs_dilation") or (1,))  # zeros between the elements


def _window(op: Operands) -> int:
    """Return one operation per element of each window of the larger side's smaller one."""
    return min(op.first, op.written) * prod(op.ints("window_dimensions") or (1,))


FLOPS: Final[Mapping[str, Rule]] = {
    "dot_general": _product,
    "conv_general_dilated": _convolution,
    **dict.fromkeys(KINDS["pool"].split(), _window),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), f.per_output(1)),
    "integer_pow": f.per_output(1),
    "fft": f.sorting,
}
