"""PyTorch's ATen operators, backward ones included: normalized kinds and what they compute."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from regal.cost import formulas as f

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.cost.formulas import Rule
    from regal.cost.operands import Operands

# By the bare name of an operator (`bare_name`): "aten.add_.Tensor" and "aten.add.Scalar" are
# both "add".
KINDS: Final = {
    "conv": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d"
    " convolution convolution_overrideable convolution_backward mkldnn_convolution"
    " slow_conv2d_forward slow_conv2d_backward thnn_conv2d conv_depthwise3d deform_conv2d"
    " deform_conv2d_backward",
    "matmul": "mm bmm addmm baddbmm addbmm matmul mv addmv dot vdot inner linear bilinear"
    " trilinear einsum addr outer ger addmm_activation scaled_mm int_mm grouped_mm"
    " tensordot linalg_multi_dot chain_matmul mkldnn_linear linear_backward sparse_mm cdist"
    " euclidean_dist grouped_mm_backward",
    "attention": "scaled_dot_product_attention scaled_dot_product_attention_math"
    " scaled_dot_product_flash_attention scaled_dot_product_flash_attention_for_cpu"
    " scaled_dot_product_efficient_attention scaled_dot_product_fused_attention_overrideable"
    " scaled_dot_product_flash_attention_for_cpu_backward flex_attention"
    " scaled_dot_product_flash_attention_backward native_multi_head_attention"
    " transformer_encoder_layer_fwd",
    "rnn": "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell"
    " thnn_fused_lstm_cell thnn_fused_gru_cell mkldnn_rnn_layer mkldnn_rnn_layer_backward",
    "pool": "avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d"
    " max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices lp_pool2d"
    " adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d"
    " adaptive_max_pool2d adaptive_max_pool3d avg_pool2d_backward avg_pool3d_backward"
    " max_pool2d_with_indices_backward max_pool3d_with_indices_backward"
    " adaptive_avg_pool2d_backward adaptive_avg_pool3d_backward adaptive_max_pool2d_backward"
    " fractional_max_pool2d roi_align roi_align_backward roi_pool mkldnn_max_pool2d"
    " mkldnn_adaptive_avg_pool2d",
    "pointwise": "abs acos acosh add addcdiv addcmul and angle asin asinh assert_async"
    " assert_scalar atan atan2 atanh binary_cross_entropy binary_cross_entropy_backward"
    " binary_cross_entropy_with_logits bitwise_and bitwise_left_shift bitwise_not bitwise_or"
    " bitwise_right_shift bitwise_xor bucketize cast_to_float ceil celu clamp clamp_max clamp_min"
    " clip complex conj conj_physical copysign cos cosh cross deg2rad div divide dropout elu"
    " elu_backward eq erf erfc erfinv exp exp2 expm1 fake_quantize_per_tensor_affine"
    " feature_dropout floor floor_divide fmax fmin fmod ge gelu gelu_backward glu glu_backward"
    " glu_jvp greater greater_equal gt hardshrink hardsigmoid hardsigmoid_backward hardswish"
    " hardswish_backward hardtanh hardtanh_backward huber_loss huber_loss_backward hypot iand"
    " ilshift imag ior isfinite isinf isnan isneginf isposinf ixor l1_loss ldexp le leaky_relu"
    " leaky_relu_backward lerp less less_equal lgamma linalg_cross log log10 log1p log2"
    " log_sigmoid log_sigmoid_backward log_sigmoid_forward logaddexp logaddexp2 logical_and"
    " logical_not logical_or logical_xor logit lshift lt masked_fill maximum minimum mish"
    " mish_backward mse_loss mse_loss_backward mul multiply mvlgamma nan_to_num native_dropout"
    " native_dropout_backward ne neg negative not_equal or polar polygamma pow prelu"
    " prelu_backward prelu_kernel prelu_kernel_backward rad2deg real reciprocal relu relu6"
    " remainder round rrelu rshift rsqrt rsub selu sgn sigmoid sigmoid_backward sign signbit"
    " silu silu_backward sin sinc sinh smooth_l1_loss smooth_l1_loss_backward softplus"
    " softplus_backward softshrink sqrt square sub subtract tan tanh tanh_backward"
    " threshold threshold_backward to to_copy to_dtype true_divide trunc type_as where xlogy xor"
    " special_expit special_log1p special_xlog1py convert_element_type complex_mul"
    " special_entr special_i0 fft_r2c fft_c2r fft_c2c fft_rfft fft_irfft fft_fft fft_ifft"
    " fft_rfft2 fft_irfft2 fft_fft2 fft_ifft2 fft_rfftn fft_irfftn fft_fftn fft_ifftn stft istft"
    " add_relu foreach_add foreach_mul fused_dropout fused_adam fused_sgd amp_update_scale"
    " linalg_inv linalg_inv_ex linalg_det linalg_qr linalg_svd linalg_eigh linalg_solve_ex"
    " linalg_solve_triangular linalg_lu_factor_ex cholesky linalg_cholesky_ex triangular_solve"
    " weight_norm weight_norm_interface weight_norm_interface_backward is_nonzero isclose",
    "reduce": "all amax amin aminmax any argmax argmin bincount count_nonzero cosine_similarity"
    " ctc_loss ctc_loss_backward cummax cummin cumprod cumsum dist equal frobenius_norm"
    " histc kl_div linalg_vector_norm linalg_norm logcumsumexp logsumexp max mean median min mode"
    " nanmean nanmedian nansum norm nll_loss nll_loss2d nll_loss2d_backward nll_loss2d_forward"
    " nll_loss_backward nll_loss_forward nll_loss_nd normalize prod std std_mean sum var var_mean"
    " local_scalar_dense embedding_bag embedding_bag_backward cross_entropy_loss trace"
    " pairwise_distance multi_margin_loss sum_to_size unsafe_masked_index_put_accumulate"
    " segment_reduce index_reduce renorm linalg_matrix_norm",
    "softmax": "softmax log_softmax softmax_backward_data log_softmax_backward_data safe_softmax"
    " masked_softmax masked_softmax_backward sparse_softmax softmin gumbel_softmax",
    "norm": "batch_norm native_batch_norm native_batch_norm_legit"
    " native_batch_norm_legit_no_training native_batch_norm_legit_functional"
    " native_batch_norm_backward batch_norm_with_update batch_norm_with_update_functional"
    " batch_norm_no_update batch_norm_backward cudnn_batch_norm batch_norm_impl_index layer_norm"
    " native_layer_norm native_layer_norm_backward group_norm native_group_norm"
    " native_group_norm_backward instance_norm local_response_norm rms_norm fused_rms_norm"
    " fused_rms_norm_backward",
    "resize": "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_nearest_exact1d"
    " upsample_nearest_exact2d upsample_linear1d upsample_bilinear2d upsample_trilinear3d"
    " upsample_bicubic2d upsample_bilinear2d_aa upsample_bicubic2d_aa upsample_nearest1d_backward"
    " upsample_nearest2d_backward upsample_nearest3d_backward upsample_linear1d_backward"
    " upsample_bilinear2d_backward upsample_bicubic2d_backward upsample_trilinear3d_backward"
    " upsample_nearest_exact2d_backward upsample_bilinear2d_aa_backward"
    " upsample_bicubic2d_aa_backward grid_sampler grid_sampler_2d"
    " grid_sampler_3d grid_sampler_2d_backward grid_sampler_3d_backward affine_grid_generator",
    "gather": "embedding gather index index_select take take_along_dim masked_select"
    " unsafe_masked_index unsafe_index embedding_renorm",
    "scatter": "scatter scatter_add scatter_reduce index_add index_copy index_fill index_put"
    " index_put_impl unsafe_index_put masked_scatter put select_scatter slice_scatter"
    " diagonal_scatter as_strided_scatter embedding_dense_backward embedding_backward"
    " index_select_backward max_unpool2d max_unpool3d value_selecting_reduction_backward"
    " masked_scatter_backward",
    "copy": "cat concat concatenate stack hstack vstack clone contiguous copy repeat"
    " repeat_interleave roll flip fliplr rot90 pad constant_pad_nd reflection_pad1d"
    " reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d"
    " reflection_pad1d_backward reflection_pad2d_backward replication_pad2d_backward"
    " replication_pad1d_backward replication_pad3d_backward circular_pad channel_shuffle"
    " pixel_shuffle pixel_unshuffle native_channel_shuffle im2col col2im unfold_backward"
    " slice_backward select_backward diagonal_backward triu tril triu_indices tril_indices"
    " diag_embed block_diag one_hot meshgrid arange linspace logspace range eye zeros ones full"
    " zeros_like ones_like full_like new_zeros new_ones new_full fill zero scalar_tensor tensor"
    " efficientzerotensor split_with_sizes_copy split_copy view_copy slice_copy select_copy"
    " expand_copy permute_copy transpose_copy t_copy unbind_copy as_strided_copy unsqueeze_copy"
    " squeeze_copy tile hann_window hamming_window bartlett_window kaiser_window"
    " cartesian_prod combinations broadcast_to_copy resize set fill_diagonal",
    "view": "alias as_strided broadcast_tensors broadcast_to chunk detach diagonal expand"
    " expand_as flatten getitem imag_view lift lift_fresh lift_fresh_copy mH mT matrix_H movedim"
    " narrow numpy_T permute ravel real_view reshape reshape_alias reshape_as select slice split"
    " split_with_sizes squeeze swapaxes swapdims t tensor_split transpose unbind unfold unflatten"
    " unsafe_chunk unsafe_split unsafe_split_with_sizes unsafe_view unsqueeze view view_as"
    " view_as_complex view_as_real conj_view values indices sym_size sym_numel sym_stride"
    " sym_storage_offset sym_constrain_range sym_constrain_range_for_size size dim numel"
    " assert_tensor_metadata",
    "sort": "sort topk argsort msort kthvalue unique unique2 unique_dim unique_consecutive"
    " nonzero nonzero_static searchsorted nms qnms histogramdd multinomial_alias_draw",
    "random": "rand randn randint randperm rand_like randn_like randint_like normal"
    " normal_functional uniform bernoulli multinomial exponential log_normal geometric cauchy"
    " poisson random binomial dirichlet standard_gamma trunc_normal",
    "none": "empty empty_like empty_strided empty_permuted new_empty new_empty_strided print",
}  # fmt: skip


KIND_OF: Final = {name: kind for kind, names in KINDS.items() for name in names.split()}


def bare_name(kind: str) -> str:
    """Return "add" for "aten.add_.Tensor": no namespace, overload, underscores at the ends."""
    parts = kind.split(".")
    return (parts[1] if len(parts) > 2 else parts[0]).strip("_")


def _convolution(op: Operands) -> int:
    if op.flag("transposed"):
        return 2 * prod(op.shape(0)) * prod(op.shape(1)[1:])
    return 2 * op.written * prod(op.shape(1)[1:])


def _convolution_gradients(op: Operands) -> int:
    """Return the products of each gradient that is asked for: data, weights, or both.

    Inputs: gradient of the result, data, weights.
    """
    moved = op.shape(1) if op.flag("transposed") else op.shape(0)
    once = 2 * prod(moved) * prod(op.shape(2)[1:])
    asked = [t for t in op.outputs if t is not None and t.shape in (op.shape(1), op.shape(2))]
    return once * min(len(asked), 2)


def _attention(factor: int, query: int) -> Rule:
    """Return the rule: `factor` operations per query, key and channel.

    Args:
        factor: 4 forward (scores, values), 10 backward (the scores once more, four gradients).
        query: position of the queries (..., rows, channels); the keys follow.
    """

    def rule(op: Operands) -> int:
        keys = op.shape(query + 1)
        return factor * prod(op.shape(query)) * keys[-2] if len(keys) > 1 else 0

    return rule


def _pooling(op: Operands) -> int:
    """Return one operation per element of each window; one side may hold fewer axes of it."""
    sizes = op.ints("kernel_size") or (op.number("kernel_size"),)
    axes = int(next((c for c in bare_name(op.kind) if c.isdigit()), "2"))
    window = prod(sizes) if len(sizes) > 1 else sizes[0] ** axes
    if not window:
        return max(op.first, op.written)  # adaptive: every element is read once
    is_backward = op.kind.split(".")[1].endswith("_backward") if "." in op.kind else False
    return window * (op.first if is_backward else op.written)


def _layer(steps: int, matrices: int) -> Rule:
    """Return the rule of whole recurrent layers: every step multiplies with every weight."""

    def rule(op: Operands) -> int:
        rows = prod(op.shape(steps)[:-1])
        weights = [t for t in op.inputs[matrices:] if t is not None and len(t.shape) == 2]
        return 2 * rows * sum(prod(t.shape) for t in weights)

    return rule


_PRODUCT = f.matrix_product()
_ADDED_PRODUCT = f.matrix_product(first=1)  # what is added comes first
_BACK = f.per_output(f.BATCH_NORM_GRADIENT)

FLOPS: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(
        ("convolution", "conv1d", "conv2d", "conv3d", "convolution_overrideable"), _convolution
    ),
    **dict.fromkeys(
        ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        f.spread(1, 0, slice(1, None)),
    ),
    "convolution_backward": _convolution_gradients,
    "deform_conv2d": lambda op: 2 * op.written * prod(op.shape(1)[1:]),
    **dict.fromkeys(
        ("mm", "bmm", "matmul", "linear", "mv", "dot", "vdot", "inner", "scaled_mm", "int_mm"),
        _PRODUCT,
    ),
    **dict.fromkeys(
        ("addmm", "baddbmm", "addbmm", "addmv", "addmm_activation"), _ADDED_PRODUCT
    ),
    "grouped_mm": _PRODUCT,
    "einsum": f.einsum,
    "outer": f.per_output(1),
    "ger": f.per_output(1),
    "addr": f.per_output(2),
    "cdist": lambda op: 3 * op.written * (op.shape(0) or (0,))[-1],
    **dict.fromkeys(
        (
            "scaled_dot_product_attention", "scaled_dot_product_flash_attention",
            "scaled_dot_product_attention_math",
            "scaled_dot_product_flash_attention_for_cpu",
            "scaled_dot_product_efficient_attention",
            "scaled_dot_product_fused_attention_overrideable", "flex_attention",
        ),
        _attention(4, 0),
    ),
    "scaled_dot_product_flash_attention_for_cpu_backward": _attention(10, 1),
    "scaled_dot_product_flash_attention_backward": _attention(10, 1),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), _layer(0, 1)),
    **dict.fromkeys(("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"), _layer(0, 2)),
    "mkldnn_rnn_layer": _layer(0, 1),
    "batch_norm": f.per_output(f.BATCH_NORM_INFERENCE),
    "native_batch_norm_legit_no_training": f.per_output(f.BATCH_NORM_INFERENCE),
    "batch_norm_no_update": f.per_output(f.BATCH_NORM_INFERENCE),
    **dict.fromkeys(
        ("native_batch_norm", "native_batch_norm_legit", "native_batch_norm_legit_functional",
         "batch_norm_with_update", "batch_norm_with_update_functional"),
        f.per_output(f.BATCH_NORM_TRAINING),
    ),
    **dict.fromkeys(
        ("native_batch_norm_backward", "native_layer_norm_backward", "native_group_norm_backward",
         "batch_norm_backward", "fused_rms_norm_backward"),
        _BACK,
    ),
    "mean": f.mean,
    "nanmean": f.mean,
    **dict.fromkeys(("linalg_vector_norm", "norm", "frobenius_norm"), f.per_input(2)),
    **dict.fromkeys(("var", "var_mean", "std", "std_mean"), f.per_input(4)),
    "logsumexp": f.per_input(3),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin"), f.per_output(1)),
    **dict.fromkeys(("addcmul", "addcdiv", "lerp"), f.per_output(3)),
    **dict.fromkeys(
        (name for name in KINDS["resize"].split() if "nearest" in name), f.nothing
    ),
    **dict.fromkeys((n for n in KINDS["pool"].split() if "roi" not in n), _pooling),
    "fft_r2c": f.sorting,  # elements x log2 of the last axis, as a sort has it
    "fft_c2r": f.sorting,
    "fft_c2c": f.sorting,
}  # fmt: skip
