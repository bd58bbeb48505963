"""Tidy a joint graph before it is split: what no kernel reads need not be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch.fx import GraphModule

RUNNING = (3, 4)  # positions of the running statistics among the arguments
TRAIN = 7


def drop_unread_statistics(joint: GraphModule) -> None:
    """Take the running statistics from gradients of normalization in training.

    Their kernels then read the statistics of the batch alone. Eager PyTorch passes its buffers,
    which are there anyhow; in a functional graph they would be kept as new tensors.
    """
    changed = False
    for node in joint.graph.find_nodes(
        op="call_function", target=torch.ops.aten.native_batch_norm_backward.default
    ):
        if node.args[TRAIN] is True:
            for position in RUNNING:
                node.update_arg(position, None)
            changed = True
    if changed:
        joint.recompile()
