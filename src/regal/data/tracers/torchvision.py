"""Models of torchvision that timm does not have: segmentation, video, optical flow, classics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.data.items import Item, items_of
from regal.data.tracers.torch_common import import_torchvision, torch_version, traced

import_torchvision()

import torch  # noqa: E402
import torchvision  # noqa: E402

if TYPE_CHECKING:
    from regal.graph.types import Graph

TRAINING_BATCH = 4
FRAMES, CLIP_SIDE, SIDE = 8, 112, 224
PAIR = (3, 128, 128)
# Name -> (family, shapes of the inputs without the batch).
ARCHITECTURES: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    **{
        name: (family, ((3, SIDE, SIDE),))
        for name, family in {
            "alexnet": "vgg", "vgg11": "vgg", "vgg16_bn": "vgg", "googlenet": "inception",
            "inception_v3": "inception", "squeezenet1_0": "squeezenet",
            "squeezenet1_1": "squeezenet", "shufflenet_v2_x0_5": "mobilenet",
            "mnasnet0_5": "mobilenet", "mobilenet_v2": "mobilenet",
            "mobilenet_v3_small": "mobilenet", "efficientnet_b0": "mobilenet",
            "efficientnet_v2_s": "mobilenet", "densenet121": "densenet", "resnet18": "resnet",
            "resnet50": "resnet", "wide_resnet50_2": "resnet",
            "convnext_tiny": "convnext", "vit_b_16": "vit",
            "swin_t": "swin", "swin_v2_t": "swin", "maxvit_t": "maxxvit",
            "deeplabv3_resnet50": "deeplab", "deeplabv3_resnet101": "deeplab",
            "deeplabv3_mobilenet_v3_large": "deeplab", "fcn_resnet50": "deeplab",
            "fcn_resnet101": "deeplab", "lraspp_mobilenet_v3_large": "deeplab",
        }.items()
    },
    **{
        name: (family, ((3, FRAMES, CLIP_SIDE, CLIP_SIDE),))
        for name, family in {
            "r3d_18": "resnet", "mc3_18": "resnet", "r2plus1d_18": "resnet", "swin3d_t": "swin",
        }.items()
    },
    "s3d": ("inception", ((3, 16, SIDE, SIDE),)),
    "mvit_v1_b": ("hiera", ((3, 16, SIDE, SIDE),)),
    "mvit_v2_s": ("hiera", ((3, 16, SIDE, SIDE),)),
    "raft_small": ("optical-flow", (PAIR, PAIR)),
    "raft_large": ("optical-flow", (PAIR, PAIR)),
}  # fmt: skip


def items() -> list[Item]:
    """Return inference and training items of every architecture."""
    families = {name: family for name, (family, _) in ARCHITECTURES.items()}
    return items_of("torch", "torchvision", families, training_batch=TRAINING_BATCH)


def trace(item: Item) -> Graph:
    """Return the graph of an item: its results, or a step of SGD on their means."""
    _, shapes = ARCHITECTURES[item.architecture]

    def make() -> torch.nn.Module:
        model: torch.nn.Module = torchvision.models.get_model(
            item.architecture, weights=None, **_settings(item.architecture)
        )
        return model

    return traced(item, make, lambda _: tuple(torch.zeros(item.batch, *shape) for shape in shapes))


def version() -> str:
    """Return the versions of torchvision and torch."""
    return f"torchvision {torchvision.__version__}, {torch_version()}"


def _settings(name: str) -> dict[str, object]:
    """Return what keeps a constructor from drawing and from looking for weights."""
    if name in ("googlenet", "inception_v3"):
        return {"init_weights": False}
    if name.startswith(("deeplabv3", "fcn", "lraspp")):
        return {"weights_backbone": None}
    return {}
