"""What the models of transformers want to be given: tensors of the right shapes, all zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

TOKENS = 64  # words per text
AUDIO_SAMPLES = 16_000
AUDIO_FRAMES = 3_000
IMAGE_SIDE = 224

Inputs = dict[str, torch.Tensor]


def inputs_of(model: torch.nn.Module, config: Any, batch: int) -> Inputs:
    """Return the inputs of a model by name: those of its type, or those of its main input."""
    own = BY_TYPE.get(str(config.model_type))
    if own is not None:
        return own(config, batch)
    main = str(getattr(model, "main_input_name", "input_ids"))
    if main == "pixel_values":
        given = {main: _image(config, batch)}
        if hasattr(config, "text_config") or hasattr(config, "vocab_size"):
            given["input_ids"] = _words(batch)
        return given
    if main == "input_values":
        return {main: torch.zeros(batch, AUDIO_SAMPLES)}
    if main == "input_features":
        given = {main: torch.zeros(batch, first_of(config, "num_mel_bins", 80), AUDIO_FRAMES)}
    else:
        given = {"input_ids": _words(batch)}
    if getattr(config, "is_encoder_decoder", False):
        given["decoder_input_ids"] = _words(batch)
    if hasattr(config, "vision_config") and "clip" in config.model_type:
        given["pixel_values"] = _image(config, batch)
    return given


def first_of(config: Any, key: str, default: Any) -> Any:
    """Return a value of the configuration, or of the first of its parts that has it."""
    for part in (config, *(v for v in vars(config).values() if hasattr(v, "to_dict"))):
        value = getattr(part, key, None)
        if value is not None:
            return value
    return default


def _words(batch: int) -> torch.Tensor:
    return torch.zeros(batch, TOKENS, dtype=torch.int64)


def _image(config: Any, batch: int) -> torch.Tensor:
    vision = getattr(config, "vision_config", None) or config
    size = first_of(vision, "image_size", IMAGE_SIDE)
    height, width = (size, size) if isinstance(size, int) else (size[0], size[-1])
    return torch.zeros(batch, first_of(vision, "num_channels", 3), height, width)


def _both(config: Any, batch: int) -> Inputs:
    return {"input_ids": _words(batch), "pixel_values": _image(config, batch)}


def _both_short(config: Any, batch: int) -> Inputs:
    words = first_of(config, "max_position_embeddings", 16)
    return {
        "input_ids": torch.zeros(batch, min(words, TOKENS), dtype=torch.int64),
        "pixel_values": _image(config, batch),
    }


def _both_for_decoder(config: Any, batch: int) -> Inputs:
    return _both(config, batch) | {"decoder_input_ids": _words(batch)}


def _wave(_: Any, batch: int) -> Inputs:
    return {"input_values": torch.zeros(batch, 1, AUDIO_SAMPLES)}


def _frames(config: Any, batch: int) -> Inputs:
    return {"input_features": torch.zeros(batch, 512, first_of(config, "num_mel_bins", 80))}


def _spectrogram(config: Any, batch: int) -> Inputs:
    return {"input_values": torch.zeros(batch, config.max_length, config.num_mel_bins)}


def _series(config: Any, batch: int) -> Inputs:
    """Return the past and future of a time series, as Autoformer and its kin want them."""
    past = config.context_length + max(config.lags_sequence)
    ahead = config.prediction_length
    features = config.num_time_features + config.num_dynamic_real_features + 1
    return {
        "past_values": torch.zeros(batch, past),
        "past_time_features": torch.zeros(batch, past, features),
        "past_observed_mask": torch.ones(batch, past),
        "future_values": torch.zeros(batch, ahead),
        "future_time_features": torch.zeros(batch, ahead, features),
    }


def _patches(config: Any, batch: int) -> Inputs:
    channels = config.num_input_channels
    return {"past_values": torch.zeros(batch, config.context_length, channels)}


def _two_images(_: Any, batch: int) -> Inputs:
    return {"pixel_values": torch.zeros(batch, 2, 3, 256, 256)}


def _boxes(_: Any, batch: int) -> Inputs:
    return {"input_ids": _words(batch), "bbox": torch.zeros(batch, TOKENS, 8)}


def _regions(config: Any, batch: int) -> Inputs:
    return {
        "input_ids": _words(batch),
        "visual_feats": torch.zeros(batch, 36, config.visual_feat_dim),
        "visual_pos": torch.zeros(batch, 36, config.visual_pos_dim),
    }


def _returns(config: Any, batch: int) -> Inputs:
    steps = 20
    return {
        "states": torch.zeros(batch, steps, config.state_dim),
        "actions": torch.zeros(batch, steps, config.act_dim),
        "rewards": torch.zeros(batch, steps, 1),
        "returns_to_go": torch.zeros(batch, steps, 1),
        "timesteps": torch.zeros(batch, steps, dtype=torch.int64),
        "attention_mask": torch.ones(batch, steps),
    }


def _anything(config: Any, batch: int) -> Inputs:
    return {"inputs": torch.zeros(batch, 256, config.d_model)}


def _audio_and_words(config: Any, batch: int) -> Inputs:
    size = config.audio_config.spec_size
    bins = config.audio_config.num_mel_bins
    features = torch.zeros(batch, 1, 4 * size, bins)
    return {"input_ids": _words(batch), "input_features": features}


BY_TYPE: dict[str, Callable[[Any, int], Inputs]] = {
    **dict.fromkeys(
        ("aimv2", "align", "altclip", "blip", "bridgetower", "chameleon", "clipseg", "flava", "git",
         "groupvit", "idefics", "metaclip_2", "mlcd", "siglip", "siglip2",
         "vilt", "vision-text-dual-encoder", "x_clip"),
        _both,
    ),
    **dict.fromkeys(("owlv2", "owlvit"), _both_short),
    **dict.fromkeys(("blip-2", "instructblip", "pix2struct", "florence2"), _both_for_decoder),
    **dict.fromkeys(("encodec", "dac", "mimi", "xcodec", "snac"), _wave),
    **dict.fromkeys(("canary", "parakeet_ctc", "parakeet_encoder", "lasr_ctc", "lasr_encoder"),
                    _frames),
    **dict.fromkeys(("autoformer", "informer", "time_series_transformer"), _series),
    **dict.fromkeys(("patchtst", "patchtsmixer"), _patches),
    **dict.fromkeys(("efficientloftr", "lightglue", "superglue"), _two_images),
    "audio-spectrogram-transformer": _spectrogram,
    "bros": _boxes,
    "lxmert": _regions,
    "decision_transformer": _returns,
    "perceiver": _anything,
    "clap": _audio_and_words,
}  # fmt: skip
