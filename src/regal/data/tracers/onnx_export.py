"""PyTorch models as ONNX files: what torch.onnx.export makes of small ones, weights included."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from regal.data.items import Item
from regal.data.tracers import timm as timm_tracer
from regal.data.tracers import torch_zoo
from regal.data.tracers.torch_common import import_torchvision
from regal.frontends import load

import_torchvision()

import onnxscript  # noqa: E402
import timm  # noqa: E402
import torch  # noqa: E402

if TYPE_CHECKING:
    from regal.graph.types import Graph

# Small ones: their weights are real here, and written to a file.
NAMES = (
    "resnet18", "mobilenetv3_small_100", "levit_128s", "vit_tiny_patch16_224", "edgenext_xx_small",
    "convnext_atto", "mobilevit_xxs", "ghostnet_100", "regnety_002", "mixer_s32_224",
    "efficientvit_b0",
    "poolformer_s12", "mnasnet_small", "tinynet_e", "xcit_nano_12_p16_224", "pit_ti_224",
    "fastvit_t8", "repvit_m0_9", "hrnet_w18_small", "inception_v3", "densenet121", "dla34",
    "rexnet_100", "gernet_s", "vovnet39a", "swin_tiny_patch4_window7_224", "coat_lite_tiny",
    "nasnetalarge", "pvt_v2_b0", "efficientnet_b0", "lcnet_050", "resnest14d", "selecsls42b",
    "efficientformer_l1", "crossvit_tiny_240", "visformer_tiny", "xception41", "starnet_s1",
)  # fmt: skip
ZOO = (
    "unet-3", "unetpp-3", "bifpn-4x3", "hourglass-2x4", "seq2seq-2x8", "bilstm-2x16",
    "wavenet-2x10", "dlrm-26x3", "mmoe-8-3x2", "experts-4x8", "treelstm-4", "randwire-ws-24x3-0",
    "cells-8x4-0", "gnn-mean-4", "dcn-26-4x3", "tcn-8", "gru-3x12-attention",
)  # fmt: skip


def items() -> list[Item]:
    """Return inference items of timm's and the zoo's small models."""
    known = {item.architecture: item for item in (*timm_tracer.items(), *torch_zoo.items())}
    names = [*NAMES, *(name for name in ZOO if name in known)]
    families = {name: _family_of(name, known) for name in names}
    return [
        Item(framework="onnx", source="torch.onnx", family=families[name], architecture=name)
        for name in names
    ]


def trace(item: Item) -> Graph:
    """Return the graph of an item, exported and read back."""
    if item.architecture in torch_zoo.RECIPES:
        _, make, inputs = torch_zoo.RECIPES[item.architecture]
        model, args = make().eval(), inputs(item.batch)
    else:
        model = timm.create_model(item.architecture).eval()
        args = (torch.zeros(item.batch, *model.default_cfg["input_size"]),)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.onnx"
        torch.onnx.export(model, args, path, dynamo=True, verbose=False, external_data=False)
        return load(path).graph


def version() -> str:
    """Return the versions of torch and onnxscript."""
    return (
        f"torch {torch.__version__}, onnxscript {onnxscript.__version__}, timm {timm.__version__}"
    )


def _family_of(name: str, known: dict[str, Item]) -> str:
    if name in known:
        return known[name].family
    module = timm.models.get_arch_name(name) and timm.models.model_entrypoint(name).__module__
    module = module.rpartition(".")[2]
    return timm_tracer.FAMILY_OF.get(module, module)
