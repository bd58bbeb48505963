"""Denoisers and autoencoders of diffusers, at their default configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.data.items import Item, items_of
from regal.data.tracers.torch_common import Positional, import_torchvision, torch_version, traced

import_torchvision()

import diffusers  # noqa: E402
import torch  # noqa: E402

if TYPE_CHECKING:
    from regal.graph.types import Graph

Shape = tuple[int, ...]
TOKENS = 77
TRAINING_BATCH = 4

# Architecture -> (class, family, configuration, shapes of the inputs without the batch).
ARCHITECTURES: dict[str, tuple[str, str, dict[str, Any], dict[str, Shape]]] = {
    "unet2d": ("UNet2DModel", "diffusion-unet", {"sample_size": 64},
               {"sample": (3, 64, 64), "timestep": ()}),
    "unet2d-small": (
        "UNet2DModel", "diffusion-unet",
        {"sample_size": 32, "block_out_channels": (128, 256), "layers_per_block": 1,
         "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
         "up_block_types": ("AttnUpBlock2D", "UpBlock2D")},
        {"sample": (3, 32, 32), "timestep": ()}),
    "unet2d-condition": (
        "UNet2DConditionModel", "diffusion-unet", {"cross_attention_dim": 768},
        {"sample": (4, 64, 64), "timestep": (), "encoder_hidden_states": (TOKENS, 768)}),
    "unet2d-condition-shallow": (
        "UNet2DConditionModel", "diffusion-unet",
        {"cross_attention_dim": 768, "layers_per_block": 1},
        {"sample": (4, 64, 64), "timestep": (), "encoder_hidden_states": (TOKENS, 768)}),
    "unet2d-condition-deep": (
        "UNet2DConditionModel", "diffusion-unet",
        {"cross_attention_dim": 1024, "layers_per_block": 3},
        {"sample": (4, 32, 32), "timestep": (), "encoder_hidden_states": (TOKENS, 1024)}),
    "unet1d": ("UNet1DModel", "diffusion-unet", {"in_channels": 14, "out_channels": 14,
                                                 "extra_in_channels": 16},
               {"sample": (14, 65536), "timestep": ()}),
    "unet3d-condition": (
        "UNet3DConditionModel", "diffusion-unet", {"cross_attention_dim": 1024},
        {"sample": (4, 4, 32, 32), "timestep": (), "encoder_hidden_states": (TOKENS, 1024)}),
    "autoencoder-kl": (
        "AutoencoderKL", "autoencoder",
        {"block_out_channels": (128, 256, 512, 512), "layers_per_block": 2,
         "down_block_types": ("DownEncoderBlock2D",) * 4,
         "up_block_types": ("UpDecoderBlock2D",) * 4},
        {"sample": (3, 256, 256)}),
    "autoencoder-kl-small": ("AutoencoderKL", "autoencoder", {}, {"sample": (3, 64, 64)}),
    "autoencoder-tiny": ("AutoencoderTiny", "autoencoder", {}, {"sample": (3, 128, 128)}),
    "vq": ("VQModel", "autoencoder", {}, {"sample": (3, 64, 64)}),
    "dit": ("DiTTransformer2DModel", "dit", {"num_layers": 12, "sample_size": 32},
            {"hidden_states": (4, 32, 32), "timestep": (1,), "class_labels": (1,)}),
    "dit-4": ("DiTTransformer2DModel", "dit", {"num_layers": 4, "sample_size": 32},
              {"hidden_states": (4, 32, 32), "timestep": (1,), "class_labels": (1,)}),
    "pixart": ("PixArtTransformer2DModel", "dit",
               {"num_layers": 8, "sample_size": 32, "use_additional_conditions": False},
               {"hidden_states": (4, 32, 32), "encoder_hidden_states": (TOKENS, 1152),
                "timestep": (1,)}),
    "sd3": ("SD3Transformer2DModel", "dit", {"num_layers": 6, "sample_size": 32},
            {"hidden_states": (16, 32, 32), "encoder_hidden_states": (TOKENS, 4096),
             "pooled_projections": (2048,), "timestep": (1,)}),
    "prior": ("PriorTransformer", "dit", {"num_layers": 8},
              {"hidden_states": (768,), "timestep": (1,), "proj_embedding": (768,),
               "encoder_hidden_states": (TOKENS, 768)}),
    "controlnet": (
        "ControlNetModel", "diffusion-unet", {"cross_attention_dim": 768},
        {"sample": (4, 64, 64), "timestep": (), "encoder_hidden_states": (TOKENS, 768),
         "controlnet_cond": (3, 512, 512)}),
    "uvit2d": ("UVit2DModel", "dit", {"num_hidden_layers": 6}, {}),
    "stable-cascade": ("StableCascadeUNet", "diffusion-unet", {}, {}),
}  # fmt: skip
BY_LABEL = frozenset({"timestep", "class_labels"})


def items() -> list[Item]:
    """Return inference and training items of every architecture."""
    families = {name: family for name, (_, family, _, shapes) in ARCHITECTURES.items() if shapes}
    return items_of("torch", "diffusers", families, training_batch=TRAINING_BATCH)


def trace(item: Item) -> Graph:
    """Return the graph of an item: one denoising step, or one step of training."""
    kind, _, config, shapes = ARCHITECTURES[item.architecture]

    def make() -> torch.nn.Module:
        return Positional(getattr(diffusers, kind)(**config), tuple(shapes))

    def inputs(_: torch.nn.Module) -> tuple[torch.Tensor, ...]:
        return tuple(_input(name, shape, item.batch) for name, shape in shapes.items())

    return traced(item, make, inputs, uses_adam=True)


def version() -> str:
    """Return the versions of diffusers and torch."""
    return f"diffusers {diffusers.__version__}, {torch_version()}"


def _input(name: str, shape: Shape, batch: int) -> torch.Tensor:
    if name in BY_LABEL:
        return torch.zeros(batch if shape else (), dtype=torch.int64)
    return torch.zeros(batch, *shape)
