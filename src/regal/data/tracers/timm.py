"""Image models of timm: every module, the architectures that differ in structure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from regal.data.items import INFERENCE, JOINT, TRAINING, Item, items_of
from regal.data.tracers.torch_common import (
    ClassifierLoss,
    import_torchvision,
    torch_version,
    traced,
)

import_torchvision()

import timm  # noqa: E402
import torch  # noqa: E402

if TYPE_CHECKING:
    from regal.graph.types import Graph

MOST_PER_MODULE = 10
MOST_JOINT_PER_MODULE = 1
TRAINING_BATCH = 8
SIZES = re.compile(r"_?(\d{3}|[0-9]+to[0-9]+)$")  # the same structure at another image size


def items() -> list[Item]:
    """Return items for all architectures of all modules, spread over each module's names."""
    found = []
    for module in timm.models.list_modules():
        names = _different([n for n in timm.list_models(module=module) if "test_" not in n])
        for position, name in enumerate(_spread(names, MOST_PER_MODULE)):
            modes = (INFERENCE, TRAINING, JOINT)[: 3 if position < MOST_JOINT_PER_MODULE else 2]
            found += items_of(
                "torch",
                "timm",
                {name: FAMILY_OF.get(module, module)},
                modes=modes,
                training_batch=TRAINING_BATCH,
            )
    return found


def trace(item: Item) -> Graph:
    """Return the graph of an item."""

    def inputs(model: torch.nn.Module) -> tuple[torch.Tensor, ...]:
        x = torch.zeros(item.batch, *model.default_cfg["input_size"])
        labels = torch.zeros(item.batch, dtype=torch.int64)
        return (x,) if item.mode == INFERENCE else (x, labels)

    return traced(item, lambda: timm.create_model(item.architecture), inputs, ClassifierLoss)


def version() -> str:
    """Return the versions of timm and torch."""
    return f"timm {timm.__version__}, {torch_version()}"


def _different(names: list[str]) -> list[str]:
    """Return one name per structure: image sizes at the end of a name change none."""
    by_stem: dict[str, str] = {}
    for name in names:
        by_stem.setdefault(SIZES.sub("", name), name)
    return list(by_stem.values())


def _spread(names: list[str], most: int) -> list[str]:
    """Return at most `most` names, evenly spread over the list."""
    if len(names) <= most:
        return names
    return [names[i * (len(names) - 1) // (most - 1)] for i in range(most)]


# Modules whose architectures are kin: they must stay on one side of the split.
FAMILY_OF = {
    **dict.fromkeys(
        ("resnet", "resnetv2", "resnest", "res2net", "sknet", "senet", "byobnet", "byoanet",
         "regnet", "tresnet", "nfnet", "cspnet", "cspnext", "selecsls"), "resnet"),
    **dict.fromkeys(("densenet", "rdnet"), "densenet"),
    **dict.fromkeys(
        ("vision_transformer", "vision_transformer_hybrid", "vision_transformer_relpos",
         "vision_transformer_sam", "deit", "beit", "eva", "cait", "convit", "naflexvit",
         "deepseek_vit", "gemma4_vit", "qwen3_vit", "volo", "xcit", "tnt", "vitamin"), "vit"),
    **dict.fromkeys(
        ("swin_transformer", "swin_transformer_v2", "swin_transformer_v2_cr", "davit", "gcvit",
         "nest", "focalnet"), "swin"),
    **dict.fromkeys(
        ("efficientnet", "mobilenetv3", "mobilenetv5", "hardcorenas", "rexnet", "lcnetv2",
         "ghostnet", "repghost", "hgnet"), "mobilenet"),
    **dict.fromkeys(("nasnet", "pnasnet"), "nasnet"),
    **dict.fromkeys(("inception_v3", "inception_v4", "inception_resnet_v2"), "inception"),
    **dict.fromkeys(("xception", "xception_aligned"), "xception"),
    **dict.fromkeys(("hiera", "hieradet_sam2", "mvitv2"), "hiera"),
    **dict.fromkeys(("efficientformer", "efficientformer_v2", "swiftformer", "metaformer"),
                    "metaformer"),
    **dict.fromkeys(("convnext", "convmixer", "inception_next", "mambaout"), "convnext"),
    **dict.fromkeys(("pvt_v2", "twins", "pit", "visformer"), "pvt"),
    **dict.fromkeys(("fastvit", "repvit", "starnet", "fasternet", "shvit"), "fastvit"),
    **dict.fromkeys(("coat", "crossvit"), "coat"),
    **dict.fromkeys(("mobilevit", "edgenext", "tiny_vit", "levit", "efficientvit_msra"),
                    "mobilevit"),
    **dict.fromkeys(("efficientvit_mit", "lowformer", "cpubone"), "efficientvit"),
}  # fmt: skip
