"""The policy of fusion and layout keys as trainers see it: independent bins for each gene."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from regal.fusion.policy import fusion_node_names, fusion_prior_logits, keyed_ops
from regal.learning.exploration import paired_fields
from regal.learning.export import Exported
from regal.learning.network import TIME_WEIGHT, Body, Line, graph_tensors, zero_head
from regal.learning.paper import PARTS, BinDistribution
from regal.policy.model import FUSION

if TYPE_CHECKING:
    from regal.learning.network import GraphTensors
    from regal.learning.options import NetworkOptions
    from regal.policy.inputs import PolicyInputs


class FusionNetwork(nn.Module):
    """Message passing; logits of Beta distributions for the fusion and the layout key of each op.

    Heads see embeddings and, by straight lines, features. All 0 beside the prior at first: on
    average uniform keys.
    """

    def __init__(self, options: NetworkOptions, seed: int) -> None:
        """Make a network with the random weights of `seed`."""
        super().__init__()
        width = len(fusion_node_names())
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.body = Body(options, width)
            self.fusion = zero_head(options.hidden, options.hidden)
            self.fusion_line = Line(width)
            self.layout = zero_head(options.hidden, options.hidden)
            self.layout_line = Line(width)
        self.prior: Tensor
        self.register_buffer("prior", torch.as_tensor(fusion_prior_logits()))

    def forward(self, graph: GraphTensors) -> tuple[Tensor, Tensor]:
        """Return the (n, LOGITS) of fusion keys and those of layout keys; ops without a key too."""
        nodes = self.body(graph).nodes
        share = graph.context[TIME_WEIGHT]
        fusion = self.fusion(nodes) + self.fusion_line(graph.nodes, share) + self.prior
        layout = self.layout(nodes) + self.layout_line(graph.nodes, share) + self.prior
        return fusion, layout


class FusionPolicy:
    """A `Trainable`: the network, and how its logits become choices."""

    def __init__(self, network: FusionNetwork, *, correlation: float = 1.0) -> None:
        """Wrap a network.

        Args:
            network: whose weights are trained.
            correlation: of the choices of alike ops when they are drawn; see `exploration`.
        """
        self._network, self._correlation = network, correlation

    @property
    def network(self) -> FusionNetwork:
        """Return the network whose weights are trained."""
        return self._network

    def distribution(self, inputs: PolicyInputs) -> BinDistribution:
        """Return what the policy may choose, with gradients: a row per fusion and layout gene."""
        fusion, layout = self._network(graph_tensors(inputs))
        ops = keyed_ops(inputs)
        logits = torch.cat((fusion[ops[0]], layout[ops[1]]))
        rows = [inputs.nodes[one] for one in ops]
        return BinDistribution(logits, partial(paired_fields, rows, PARTS, self._correlation))

    def exported(self) -> Exported:
        """Return how it is exported."""

        def forward(graph: GraphTensors) -> tuple[Tensor, ...]:
            return tuple(self._network(graph))

        return Exported(kind=FUSION, outputs=("fusion", "layout"), forward=forward)
