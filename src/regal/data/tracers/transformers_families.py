"""Families of the models of transformers: what they are built of, whatever they are called.

The split keeps a family on one side, so kin must not be missed: rules look at configurations
first, names decide where configurations say too little.
"""

from __future__ import annotations

from typing import Any

# Words that a name begins with -> family, where the rules below would be wrong or too broad.
BY_NAME = {
    "mamba": "mamba", "falcon_mamba": "mamba", "falcon_h1": "mamba", "zamba": "mamba",
    "bamba": "mamba", "jamba": "mamba", "nemotron_h": "mamba", "granitemoehybrid": "mamba",
    "recurrent_gemma": "mamba", "rwkv": "mamba", "xlstm": "mamba", "kimi_linear": "mamba",
    "olmo_hybrid": "mamba", "lfm": "mamba", "bailing_hybrid": "mamba", "qwen3_next": "mamba",
    "nemo_speechlm": "mamba", "minimax": "mamba", "minimax_m2": "moe", "minimax_m3": "moe",
    "sam": "sam", "edgetam": "sam", "detr": "detr", "yolos": "detr", "mask": "detr",
    "oneformer": "detr", "rf_detr": "detr", "lw_detr": "detr", "deimv2": "detr",
    "grounding-dino": "detr", "mm-grounding-dino": "detr", "omdet": "detr", "table-transf": "detr",
    "conditional_detr": "detr", "d_fine": "detr", "dab-detr": "detr", "deformable_detr": "detr",
    "rt_detr": "detr",
    "maskformer-swin": "swin", "swin": "swin", "donut": "swin", "convnext": "convnext",
    "dinov3_convnext": "convnext", "hiera": "hiera", "sam2_hiera": "hiera", "pvt": "pvt",
    "poolformer": "metaformer", "swiftformer": "metaformer", "focalnet": "swin", "dinat": "swin",
    "levit": "mobilevit", "mobilevit": "mobilevit", "mobilenet": "mobilenet",
    "efficientnet": "mobilenet", "resnet": "resnet", "regnet": "resnet", "bit": "resnet",
    "hgnet": "mobilenet", "segformer": "pvt", "glpn": "pvt", "cvt": "pvt", "textnet": "mobilenet",
    "bitnet": "llama", "timm": "resnet", "pp_ocr": "ocr", "pp_doc": "detr", "uvdoc": "ocr",
    "mgp": "vit", "trocr": "vit", "perceiver": "perceiver", "funnel": "funnel", "fnet": "fnet",
    "reformer": "long-attention", "longformer": "long-attention", "led": "long-attention",
    "big_bird": "long-attention", "bigbird": "long-attention", "longt5": "long-attention",
    "yoso": "long-attention", "mra": "long-attention", "nystromformer": "long-attention",
    "xlnet": "xlnet", "canine": "long-attention", "convbert": "convbert", "lxmert": "clip",
    "gpt": "gpt", "openai-gpt": "gpt", "openai_privacy": "moe", "gpt_oss": "moe", "bloom": "gpt",
    "opt": "gpt", "codegen": "gpt", "ctrl": "gpt", "biogpt": "gpt", "imagegpt": "gpt", "mpt": "gpt",
    "xglm": "gpt", "cpmant": "gpt", "decision_transformer": "gpt", "gpt_neox": "gpt",
    "persimmon": "gpt", "falcon": "gpt", "t5": "t5", "mt5": "t5", "umt5": "t5", "udop": "t5",
    "pix2struct": "t5", "switch_transformers": "moe", "nllb-moe": "moe", "pop2piano": "t5",
    "dpt": "vit", "zoedepth": "vit", "depth_anything": "vit", "depth_pro": "vit",
    "efficientloftr": "matching", "lightglue": "matching", "superglue": "matching",
    "autoformer": "time-series", "informer": "time-series", "time_series": "time-series",
    "patchtst": "time-series", "patchtsmixer": "mlp_mixer", "timesfm": "time-series",
    "esm": "protein", "neomme": "protein", "visual_bert": "bert", "layoutlm": "bert",
    "data2vec-vision": "vit", "data2vec-audio": "speech", "clap": "speech", "clvp": "speech",
    "bark": "speech", "vits": "speech", "audio": "speech", "pe_audio": "speech", "univnet": "codec",
    "dac": "codec", "encodec": "codec", "mimi": "codec", "xcodec": "codec", "snac": "codec",
    "wavtokenizer": "codec", "neucodec": "codec", "higgs_audio_v2_tokenizer": "codec",
    "vibevoice_acoustic": "codec", "pocket_tts_audio": "codec", "csm": "speech", "dia": "speech",
    "moshi": "speech", "kyutai": "speech", "moonshine": "speech", "speech": "speech",
    "glm_image_vqmodel": "autoencoder", "vivit": "vit", "layoutlmv3": "vit", "vilt": "vit",
}  # fmt: skip


def family_of(name: str, config: Any) -> str:
    """Return the family of a model type.

    Args:
        name: the type, as AutoConfig knows it.
        config: its default configuration, None if there is none.
    """
    known = [prefix for prefix in BY_NAME if name.startswith(prefix)]
    if known:
        return BY_NAME[max(known, key=len)]
    if config is None:
        return name
    parts = [config, *(v for v in vars(config).values() if hasattr(v, "to_dict"))]

    def has(*keys: str) -> bool:
        return any(getattr(part, key, None) for part in parts for key in keys)

    is_rotary = has("rope_theta", "rope_parameters", "rope_scaling")
    if hasattr(config, "vision_config"):
        return "vision-language" if is_rotary or hasattr(config, "qformer_config") else "clip"
    if has("num_mel_bins", "sampling_rate", "conv_stride", "audio_config"):
        return "speech"
    if has("num_local_experts", "num_experts", "n_routed_experts", "num_experts_per_tok"):
        return "moe"
    if getattr(config, "is_encoder_decoder", False):
        return "bart"
    if hasattr(config, "text_config"):
        return "vision-language"
    if has("image_size", "patch_size"):
        return "vit"
    return "llama" if is_rotary else "bert"
