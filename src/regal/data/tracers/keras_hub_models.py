"""Configurations of keras-hub's backbones: few and narrow layers, structures as published."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from keras_hub import layers as hl
from keras_hub import models as hm

if TYPE_CHECKING:
    from collections.abc import Callable

    Ratios = tuple[float, ...]
    Recipe = tuple[str, Callable[[], Any]]

SIDE, TOKENS, SAMPLES = 64, 32, 8192
IMAGE = (SIDE, SIDE, 3)
WORDS, WIDTH, LAYERS = 1000, 64, 4
# What most language models are told by these names.
TEXT: dict[str, Any] = {
    "vocabulary_size": WORDS, "num_layers": LAYERS, "num_heads": 4, "hidden_dim": WIDTH,
    "intermediate_dim": 4 * WIDTH,
}  # fmt: skip
GROUPED: dict[str, Any] = {
    "vocabulary_size": WORDS, "num_layers": LAYERS, "num_query_heads": 4,
    "num_key_value_heads": 2, "hidden_dim": WIDTH, "intermediate_dim": 4 * WIDTH,
}  # fmt: skip
VISION: dict[str, Any] = {
    "patch_size": 8, "num_layers": LAYERS, "num_heads": 4, "hidden_dim": WIDTH,
    "image_shape": IMAGE,
}  # fmt: skip
EXPERTS: dict[str, Any] = {"num_experts": 4, "moe_intermediate_dim": WIDTH}


def resnet(block: str, depths: list[int], *, first: bool = False) -> Any:
    """Return He et al. 2016, with normalization before convolutions if `first`."""
    return hm.ResNetBackbone(
        input_conv_filters=[64], input_conv_kernel_sizes=[7],
        stackwise_num_filters=[64 * 2**i for i in range(len(depths))],
        stackwise_num_blocks=depths, stackwise_num_strides=[1] + [2] * (len(depths) - 1),
        block_type=block, use_pre_activation=first, image_shape=IMAGE,
    )  # fmt: skip


def csp(
    block: str,
    depths: list[int],
    stage: str,
    *,
    expand: Ratios = (1.0,),
    bottle: Ratios = (1.0,),
    part: Ratios = (1.0,),
) -> Any:
    """Return Wang et al. 2020 (stages whose halves join again)."""
    n = len(depths)
    return hm.CSPNetBackbone(
        stem_filters=16, stem_kernel_size=3, stem_strides=2, stackwise_depth=depths,
        stackwise_strides=[2] * n, stackwise_num_filters=[32 * 2**i for i in range(n)],
        block_type=block, stage_type=stage, expand_ratio=list(expand),
        bottle_ratio=list(bottle), block_ratio=list(part), image_shape=IMAGE,
    )  # fmt: skip


def mit(depths: list[int]) -> Any:
    """Return the encoder of Xie et al. 2021."""
    return hm.MiTBackbone(
        image_shape=IMAGE, num_layers=4, hidden_dims=[16, 32, 64, 128], layerwise_depths=depths,
        layerwise_num_heads=[1, 2, 4, 8], layerwise_sr_ratios=[8, 4, 2, 1],
        layerwise_patch_sizes=[7, 3, 3, 3], layerwise_strides=[4, 2, 2, 2],
        max_drop_path_rate=0.1,
    )  # fmt: skip


def hgnet(depths: list[int], *, light: bool) -> Any:
    """Return the convolutional network that PaddlePaddle's detectors are built on."""
    return hm.HGNetV2Backbone(
        depths=depths, embedding_size=32, hidden_sizes=[64, 128, 256][: len(depths)],
        stem_channels=[3, 16, 32], hidden_act="relu", use_learnable_affine_block=light,
        stackwise_stage_filters=[
            (32, 16, 64, depths[0], 3, 3), (64, 32, 128, depths[1], 3, 3),
            (128, 64, 256, depths[2], 3, 5),
        ],
        apply_downsample=[False, True, True], use_lightweight_conv_block=[False, light, light],
        image_shape=IMAGE,
    )  # fmt: skip


def deeplab() -> Any:
    """Return Chen et al. 2018 on a ResNet."""
    return hm.DeepLabV3Backbone(
        image_encoder=resnet("bottleneck_block", [2, 2, 2, 2]), low_level_feature_key="P2",
        spatial_pyramid_pooling_key="P5", upsampling_size=8, dilation_rates=[6, 12, 18],
        image_shape=IMAGE,
    )  # fmt: skip


def sam() -> Any:
    """Return Kirillov et al. 2023."""
    return hm.SAMBackbone(
        image_encoder=vit_det(4),
        prompt_encoder=hl.SAMPromptEncoder(
            hidden_size=32, image_embedding_size=(4, 4), input_image_size=(SIDE, SIDE),
            mask_in_channels=16,
        ),
        mask_decoder=hl.SAMMaskDecoder(
            num_layers=2, hidden_size=32, intermediate_dim=64, num_heads=4, embedding_dim=32,
            num_multimask_outputs=3, iou_head_depth=3, iou_head_hidden_dim=32,
        ),
    )  # fmt: skip


def vit_det(layers: int) -> Any:
    """Return Li et al. 2022: attention in windows, and across the image every other layer."""
    return hm.ViTDetBackbone(
        hidden_size=WIDTH, num_layers=layers, intermediate_dim=4 * WIDTH, num_heads=4,
        global_attention_layer_indices=list(range(1, layers, 2)), image_shape=IMAGE,
        patch_size=16, num_output_channels=32, window_size=2,
    )  # fmt: skip


def clip() -> Any:
    """Return Radford et al. 2021."""
    return hm.CLIPBackbone(
        vision_encoder=hm.CLIPVisionEncoder(intermediate_dim=128, **VISION),
        text_encoder=hm.CLIPTextEncoder(embedding_dim=WIDTH, max_sequence_length=TOKENS, **TEXT),
        projection_dim=WIDTH,
    )


def siglip() -> Any:
    """Return Zhai et al. 2023."""
    return hm.SigLIPBackbone(
        vision_encoder=hm.SigLIPVisionEncoder(intermediate_dim=128, **VISION),
        text_encoder=hm.SigLIPTextEncoder(embedding_dim=WIDTH, max_sequence_length=TOKENS, **TEXT),
    )


def parseq() -> Any:
    """Return Bautista and Atienza 2022: a reader of text in images."""
    return hm.PARSeqBackbone(
        image_encoder=hm.ViTBackbone(mlp_dim=128, use_class_token=False, **VISION),
        vocabulary_size=100, max_label_length=25, decoder_hidden_dim=WIDTH,
        num_decoder_layers=2, num_decoder_heads=4, decoder_mlp_dim=128,
    )  # fmt: skip


def pali_gemma() -> Any:
    """Return Beyer et al. 2024."""
    return hm.PaliGemmaBackbone(
        image_size=SIDE, head_dim=16, vit_patch_size=16, vit_num_heads=4, vit_hidden_dim=WIDTH,
        vit_num_layers=2, vit_intermediate_dim=128, **GROUPED,
    )  # fmt: skip


def depth_anything() -> Any:
    """Return Yang et al. 2024: depth from features of four layers."""
    return hm.DepthAnythingBackbone(
        image_encoder=hm.DINOV2Backbone(
            patch_size=4, num_layers=4, hidden_dim=WIDTH, num_heads=4, intermediate_dim=128,
            image_shape=IMAGE, position_embedding_shape=IMAGE, apply_layernorm=True,
        ),
        reassemble_factors=[4, 2, 1, 0.5], neck_hidden_dims=[16, 32, 64, 64],
        fusion_hidden_dim=32, head_hidden_dim=16, head_in_index=-1,
        feature_keys=["stage1", "stage2", "stage3", "stage4"],
    )  # fmt: skip


def t5_gemma(layers: int) -> Any:
    """Return an encoder and a decoder of Gemma's layers."""
    sides: dict[str, Any] = {}
    for side in ("encoder", "decoder"):
        sides |= {
            f"{side}_hidden_dim": WIDTH, f"{side}_intermediate_dim": 128,
            f"{side}_num_layers": layers, f"{side}_num_attention_heads": 4,
            f"{side}_num_key_value_heads": 2, f"{side}_head_dim": 16,
            f"{side}_layer_types": ["sliding_attention", "full_attention"] * (layers // 2),
        }  # fmt: skip
    return hm.T5GemmaBackbone(vocabulary_size=WORDS, sliding_window=16, **sides)


def smol(layers: int) -> Any:
    """Return SmolLM3: every fourth layer without rotations."""
    return hm.SmolLM3Backbone(
        vocabulary_size=WORDS, hidden_dim=WIDTH, intermediate_dim=128, num_layers=layers,
        num_attention_heads=4, num_key_value_heads=2, attention_bias=False,
        attention_dropout=0.0, rope_layer_enabled_list=[i % 4 != 3 for i in range(layers)],
        layer_types=["full_attention"] * layers, mlp_bias=False, layer_norm_epsilon=1e-6,
        max_position_embeddings=512, rope_theta=10000.0, partial_rotary_factor=1.0,
    )  # fmt: skip


def moonshine(layers: int) -> Any:
    """Return Jeffries et al. 2024: speech to text."""
    return hm.MoonshineBackbone(
        vocabulary_size=WORDS, filter_dim=WIDTH, encoder_num_layers=layers,
        decoder_num_layers=layers, hidden_dim=WIDTH, intermediate_dim=128, encoder_num_heads=4,
        decoder_num_heads=4,
    )  # fmt: skip


def video_prism() -> Any:
    """Return Zhao et al. 2024: attention in frames, then in time."""
    return hm.VideoPrismBackbone(
        num_frames=4, patch_size=16, hidden_dim=WIDTH, intermediate_dim=128, num_heads=4,
        num_spatial_layers=3, num_temporal_layers=2, num_auxiliary_layers=1, image_shape=IMAGE,
    )  # fmt: skip


def xception() -> Any:
    """Return Chollet 2017, shallower."""
    return hm.XceptionBackbone(
        stackwise_conv_filters=[[16, 32], [32, 64], [128, 128], [128, 128]],
        stackwise_pooling=[True, True, True, False], image_shape=IMAGE,
    )  # fmt: skip


RECIPES: dict[str, Recipe] = {
    "albert": ("bert", partial(hm.AlbertBackbone, embedding_dim=32, **TEXT)),
    "bert": ("bert", partial(hm.BertBackbone, **TEXT)),
    "deberta-v3": ("bert", partial(hm.DebertaV3Backbone, **TEXT)),
    "distilbert": ("bert", partial(hm.DistilBertBackbone, **TEXT)),
    "electra": (
        "bert",
        partial(
            hm.ElectraBackbone, vocab_size=WORDS, num_layers=LAYERS, num_heads=4,
            hidden_dim=WIDTH, embedding_dim=32, intermediate_dim=128,
        ),
    ),
    "roberta": ("bert", partial(hm.RobertaBackbone, **TEXT)),
    "roformer-v2": ("bert", partial(hm.RoformerV2Backbone, head_size=16, **TEXT)),
    "esm": ("protein", partial(hm.ESMBackbone, **TEXT)),
    "f-net": (
        "fnet",
        partial(
            hm.FNetBackbone, vocabulary_size=WORDS, num_layers=LAYERS, hidden_dim=WIDTH,
            intermediate_dim=128,
        ),
    ),
    "xlnet": ("xlnet", partial(hm.XLNetBackbone, **TEXT)),
    "bart": ("bart", partial(hm.BartBackbone, **TEXT)),
    "t5": ("t5", partial(hm.T5Backbone, **TEXT)),
    "t5-gemma": ("t5", partial(t5_gemma, 4)),
    "whisper": (
        "speech",
        partial(
            hm.WhisperBackbone, max_encoder_sequence_length=64, max_decoder_sequence_length=64,
            **TEXT,
        ),
    ),
    "moonshine": ("speech", partial(moonshine, 3)),
    "bloom": ("gpt", partial(hm.BloomBackbone, **TEXT)),
    "gpt2": ("gpt", partial(hm.GPT2Backbone, **TEXT)),
    "gpt-neo-x": ("gpt", partial(hm.GPTNeoXBackbone, **TEXT)),
    "opt": ("gpt", partial(hm.OPTBackbone, **TEXT)),
    "falcon": (
        "gpt",
        partial(
            hm.FalconBackbone, vocabulary_size=WORDS, num_layers=LAYERS, num_attention_heads=4,
            hidden_dim=WIDTH, intermediate_dim=128,
        ),
    ),
    "gemma": ("llama", partial(hm.GemmaBackbone, head_dim=16, **GROUPED)),
    "gemma2": (
        "llama",
        partial(
            hm.GemmaBackbone, head_dim=16, use_post_ffw_norm=True, use_post_attention_norm=True,
            attention_logit_soft_cap=50.0, use_sliding_window_attention=True,
            sliding_window_size=16, **GROUPED,
        ),
    ),
    "gemma3": ("llama", partial(hm.Gemma3Backbone, image_size=SIDE, head_dim=16, **GROUPED)),
    "llama": ("llama", partial(hm.LlamaBackbone, **GROUPED)),
    "mistral": ("llama", partial(hm.MistralBackbone, sliding_window=16, **GROUPED)),
    "phi3": ("llama", partial(hm.Phi3Backbone, **GROUPED)),
    "qwen": ("llama", partial(hm.QwenBackbone, **GROUPED)),
    "qwen3": ("llama", partial(hm.Qwen3Backbone, head_dim=16, **GROUPED)),
    "smollm3": ("llama", partial(smol, 4)),
    "mixtral": ("moe", partial(hm.MixtralBackbone, num_experts=4, sliding_window=16, **GROUPED)),
    "gpt-oss": ("moe", partial(hm.GptOssBackbone, num_experts=4, sliding_window=16, **GROUPED)),
    "qwen-moe": (
        "moe",
        partial(hm.QwenMoeBackbone, shared_expert_intermediate_dim=128, **EXPERTS, **GROUPED),
    ),
    "qwen3-moe": ("moe", partial(hm.Qwen3MoeBackbone, head_dim=16, **EXPERTS, **GROUPED)),
    "rwkv7": (
        "mamba",
        partial(
            hm.RWKV7Backbone, hidden_size=WIDTH, head_size=16, num_layers=3,
            vocabulary_size=WORDS, intermediate_dim=128,
        ),
    ),
    "vit": ("vit", partial(hm.ViTBackbone, mlp_dim=128, **VISION)),
    "deit": ("vit", partial(hm.DeiTBackbone, intermediate_dim=128, **VISION)),
    "dinov2": (
        "vit",
        partial(
            hm.DINOV2Backbone, intermediate_dim=128, position_embedding_shape=IMAGE, **VISION
        ),
    ),
    "dinov2-swiglu": (
        "vit",
        partial(
            hm.DINOV2Backbone, intermediate_dim=128, position_embedding_shape=IMAGE,
            use_swiglu_ffn=True, num_register_tokens=4, drop_path_rate=0.1, **VISION,
        ),
    ),
    "dinov3": ("vit", partial(hm.DINOV3Backbone, intermediate_dim=128, **VISION)),
    "vit-det": ("vit", partial(vit_det, 6)),
    "depth-anything": ("vit", depth_anything),
    "video-prism": ("vit", video_prism),
    "sam": ("sam", sam),
    "swin": (
        "swin",
        partial(
            hm.SwinTransformerBackbone, image_shape=IMAGE, embed_dim=16, depths=(2, 2, 2),
            num_heads=(1, 2, 4), window_size=4,
        ),
    ),
    "mit": ("pvt", partial(mit, [2, 2, 2, 2])),
    "mit-deep": ("pvt", partial(mit, [3, 4, 6, 3])),
    "segformer": (
        "pvt",
        lambda: hm.SegFormerBackbone(image_encoder=mit([2, 2, 2, 2]), projection_filters=32),
    ),
    "clip": ("clip", clip),
    "siglip": ("clip", siglip),
    "pali-gemma": ("vision-language", pali_gemma),
    "parseq": ("ocr", parseq),
    "resnet-basic": ("resnet", partial(resnet, "basic_block", [2, 2, 2, 2])),
    "resnet-bottleneck": ("resnet", partial(resnet, "bottleneck_block", [3, 4, 6, 3])),
    "resnet-v2": ("resnet", partial(resnet, "bottleneck_block", [2, 3, 3, 2], first=True)),
    "darknet": ("resnet", partial(csp, "dark_block", [1, 2, 4, 2], "dark")),
    "cspresnet": (
        "resnet",
        partial(
            csp, "bottleneck_block", [2, 3, 3, 2], "csp", expand=(2.0,), bottle=(0.5,)
        ),
    ),
    "cspdarknet": (
        "resnet",
        partial(
            csp, "dark_block", [1, 2, 4, 2], "csp", expand=(2.0, 1.0),
            bottle=(0.5, 1.0), part=(1.0, 0.5),
        ),
    ),
    "cs3darknet": (
        "resnet", partial(csp, "dark_block", [1, 2, 4, 2], "cs3", part=(0.5,))
    ),
    "densenet": (
        "densenet",
        partial(
            hm.DenseNetBackbone, stackwise_num_repeats=[3, 6, 8, 4], image_shape=IMAGE,
            growth_rate=8,
        ),
    ),
    "hgnetv2": ("mobilenet", partial(hgnet, [1, 2, 1], light=False)),
    "hgnetv2-light": ("mobilenet", partial(hgnet, [1, 2, 2], light=True)),
    "deeplab-v3": ("deeplab", deeplab),
    "retinanet": (
        "retinanet",
        lambda: hm.RetinaNetBackbone(
            image_encoder=resnet("basic_block", [2, 2, 2, 2]), min_level=3, max_level=6,
            use_p5=False, image_shape=IMAGE,
        ),
    ),
    "vgg": (
        "vgg",
        partial(
            hm.VGGBackbone, stackwise_num_repeats=[2, 2, 3, 3],
            stackwise_num_filters=[16, 32, 64, 64], image_shape=IMAGE,
        ),
    ),
    "xception": ("xception", xception),
}  # fmt: skip
