"""Language, vision, speech and multimodal models of transformers, from their configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.data.items import Item, items_of
from regal.data.tracers.torch_common import Positional, import_torchvision, torch_version, traced
from regal.data.tracers.transformers_families import family_of
from regal.data.tracers.transformers_inputs import inputs_of

import_torchvision()

import transformers  # noqa: E402
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES  # noqa: E402

if TYPE_CHECKING:
    import torch

    from regal.graph.types import Graph

MOST_LAYERS = 6  # deeper models repeat the same layer; the data card says so
LAYER_KEYS = (
    "num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_encoder_layers",
    "encoder_layers", "decoder_layers", "num_decoder_layers", "num_blocks",
)  # fmt: skip
TRAINING_BATCH = 4
# What a type cannot do without: it has no default for it, or none that runs.
SETTINGS: dict[str, dict[str, Any]] = {
    "autoformer": {"prediction_length": 24},
    "informer": {"prediction_length": 24},
    "time_series_transformer": {"prediction_length": 24},
    "vilt": {"max_position_embeddings": 64},
    "esm": {"vocab_size": 33},
    "diffusion_gemma": {"pad_token_id": 0},
    "dots1": {"pad_token_id": 0},
}


def items() -> list[Item]:
    """Return inference and training items for every model type that AutoModel knows."""
    families = {name: family_of(name, _config_of(name)) for name in sorted(MODEL_MAPPING_NAMES)}
    return items_of("torch", "transformers", families, training_batch=TRAINING_BATCH)


def trace(item: Item) -> Graph:
    """Return the graph of an item; depth is cut to MOST_LAYERS, inputs are `TOKENS` tokens."""
    config = transformers.AutoConfig.for_model(
        item.architecture, **SETTINGS.get(item.architecture, {})
    )
    config = shallow(config)
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
    return f"transformers {transformers.__version__}, {torch_version()}"


def _config_of(name: str) -> Any:
    """Return the default configuration of a type, None where it has none."""
    try:
        return transformers.AutoConfig.for_model(name)
    except (AttributeError, ImportError, TypeError, ValueError):
        return None


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
