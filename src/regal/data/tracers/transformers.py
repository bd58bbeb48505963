"""Language, vision, speech and multimodal models of transformers, from their configurations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from regal.data.items import INFERENCE, TRAINING, Item
from regal.data.tracers.torch_common import Positional, import_torchvision, traced

import_torchvision()

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES  # noqa: E402

if TYPE_CHECKING:
    from regal.graph.types import Graph

MOST_LAYERS = 6  # deeper models repeat the same layer; the data card says so
LAYER_KEYS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_encoder_layers",
    "encoder_layers", "decoder_layers", "num_decoder_layers", "num_blocks",
)  # fmt: skip
TOKENS = 64
AUDIO_SAMPLES = 16_000
AUDIO_FRAMES = 3_000
TRAINING_BATCH = 4


def items() -> list[Item]:
    """Return inference and training items for every model type that AutoModel knows."""
    return [
        Item(
            framework="torch",
            source="transformers",
            family=family_of(name),
            architecture=name,
            mode=mode,
            batch=1 if mode == INFERENCE else TRAINING_BATCH,
        )
        for name in sorted(MODEL_MAPPING_NAMES)
        for mode in (INFERENCE, TRAINING)
    ]


def family_of(name: str) -> str:
    """Return the family of a model type: the letters that its name begins with."""
    letters = re.match(r"[a-z]+", name.replace("-", "_").split("_")[0])
    return KIN.get(letters.group() if letters else name, letters.group() if letters else name)


def trace(item: Item) -> Graph:
    """Return the graph of an item; depth is cut to MOST_LAYERS, inputs are `TOKENS` tokens."""
    config = shallow(transformers.AutoConfig.for_model(item.architecture))
    names: list[str] = []

    def make() -> torch.nn.Module:
        model = transformers.AutoModel.from_config(config)
        model.config.use_cache = False
        names.extend(inputs_of(model, config, item.batch))
        return Positional(model, tuple(names))

    def inputs(module: torch.nn.Module) -> tuple[torch.Tensor, ...]:
        return tuple(inputs_of(module.model, config, item.batch).values())

    return traced(item, make, inputs, uses_adam=True)


def version() -> str:
    """Return the versions of transformers and torch."""
    return f"transformers {transformers.__version__}, torch {torch.__version__}"


def shallow(config: Any) -> Any:
    """Return `config` with at most MOST_LAYERS layers in every stack that it names."""
    parts = [config, *(v for v in vars(config).values() if hasattr(v, "to_dict"))]
    for part in parts:
        for key in LAYER_KEYS:
            depth = getattr(part, key, None)
            if isinstance(depth, int) and depth > MOST_LAYERS:
                setattr(part, key, MOST_LAYERS)
                types = getattr(part, "layer_types", None)
                if isinstance(types, list) and len(types) > MOST_LAYERS:
                    part.layer_types = types[:MOST_LAYERS]
        part._attn_implementation = "eager"
        part._experts_implementation = "batched_mm"  # a fixed shape, whatever the router says
    return config


def inputs_of(model: torch.nn.Module, config: Any, batch: int) -> dict[str, torch.Tensor]:
    """Return the inputs of a model by the name of its main input."""
    main = str(getattr(model, "main_input_name", "input_ids"))
    text = torch.zeros(batch, TOKENS, dtype=torch.int64)
    if main == "pixel_values":
        size = _first(config, "image_size", 224)
        size = size if isinstance(size, int) else size[0]
        channels = _first(config, "num_channels", 3)
        given = {main: torch.zeros(batch, channels, size, size)}
        if hasattr(config, "text_config") or hasattr(config, "vocab_size"):
            given["input_ids"] = text
        return given
    if main == "input_values":
        return {main: torch.zeros(batch, AUDIO_SAMPLES)}
    if main == "input_features":
        given = {main: torch.zeros(batch, _first(config, "num_mel_bins", 80), AUDIO_FRAMES)}
        if getattr(config, "is_encoder_decoder", False):
            given["decoder_input_ids"] = text
        return given
    given = {"input_ids": text}
    if getattr(config, "is_encoder_decoder", False):
        given["decoder_input_ids"] = text
    vision = getattr(config, "vision_config", None)
    if vision is not None and hasattr(vision, "image_size") and "clip" in config.model_type:
        size = vision.image_size if isinstance(vision.image_size, int) else vision.image_size[0]
        given["pixel_values"] = torch.zeros(batch, 3, size, size)
    return given


def _first(config: Any, key: str, default: Any) -> Any:
    for part in (config, *(v for v in vars(config).values() if hasattr(v, "to_dict"))):
        value = getattr(part, key, None)
        if value is not None:
            return value
    return default


# Families that other sources name differently, or that are one family in all but name.
KIN = {
    "deit": "vit", "beit": "vit", "dinov": "vit", "ijepa": "vit", "vivit": "vit", "videomae": "vit",
    "swinv": "swin", "donut": "swin", "maskformer": "swin", "resnet": "resnet", "regnet": "resnet",
    "bit": "resnet", "convnextv": "convnext", "pvt": "pvt", "mobilenet": "mobilenet",
    "mobilevitv": "mobilevit", "efficientnet": "mobilenet", "levit": "mobilevit", "xlm": "bert",
    "roberta": "bert", "camembert": "bert", "albert": "bert", "electra": "bert", "distilbert": "bert",
    "mpnet": "bert", "ernie": "bert", "deberta": "bert", "megatron": "bert", "data": "bert",
    "modernbert": "bert", "nystromformer": "bert", "mistral": "llama", "qwen": "llama",
    "gemma": "llama", "phi": "llama", "olmo": "llama", "cohere": "llama", "granite": "llama",
    "stablelm": "llama", "starcoder": "llama", "nemotron": "llama", "glm": "llama", "smollm": "llama",
    "exaone": "llama", "helium": "llama", "ministral": "llama", "apertus": "llama", "gpt": "gpt",
    "openai": "gpt", "bloom": "gpt", "codegen": "gpt", "opt": "gpt", "falcon": "gpt", "mpt": "gpt",
    "ctrl": "gpt", "biogpt": "gpt", "mixtral": "moe", "deepseek": "moe", "dbrx": "moe", "jetmoe": "moe",
    "flex": "moe", "switch": "moe", "nllb": "moe", "qwenmoe": "moe", "mt": "t5", "t": "t5", "umt": "t5",
    "longt": "t5", "pop": "t5", "byt": "t5", "bart": "bart", "mbart": "bart", "pegasus": "bart",
    "marian": "bart", "m": "bart", "blenderbot": "bart", "led": "bart", "plbart": "bart", "wav": "wav2vec",
    "hubert": "wav2vec", "wavlm": "wav2vec", "unispeech": "wav2vec", "sew": "wav2vec", "mamba": "mamba",
    "falconmamba": "mamba", "zamba": "mamba", "bamba": "mamba", "jamba": "mamba", "clip": "clip",
    "siglip": "clip", "altclip": "clip", "chinese": "clip", "clipseg": "clip", "metaclip": "clip",
    "groupvit": "clip", "detr": "detr", "conditional": "detr", "deformable": "detr", "table": "detr",
    "yolos": "detr", "rt": "detr", "d": "detr", "dab": "detr",
}  # fmt: skip
