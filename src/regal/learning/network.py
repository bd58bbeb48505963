"""The network: a graph and its devices in; embeddings, and logits of proposals, out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from regal.policy.bins import BIAS_BINS, MEAN_BINS, SPREAD_BINS, prior_logits
from regal.policy.inputs import (
    CONTEXT,
    DEVICE_FEATURES,
    EDGE_FEATURES,
    node_feature_names,
)

if TYPE_CHECKING:
    from regal.learning.options import NetworkOptions
    from regal.policy.inputs import PolicyInputs

LOGITS = MEAN_BINS + SPREAD_BINS + BIAS_BINS  # of each gene, in this sequence
PLACE = DEVICE_FEATURES.index("place")
TIME_WEIGHT = CONTEXT.index("time_weight")


class GraphTensors(NamedTuple):
    """`PolicyInputs` as tensors, field by field."""

    nodes: Tensor
    sources: Tensor
    targets: Tensor
    edges: Tensor
    context: Tensor
    devices: Tensor
    groups: Tensor
    group_sizes: Tensor


class Embedded(NamedTuple):
    """What the body of the network makes of a graph of n ops, G groups and D devices."""

    nodes: Tensor  # (n, hidden)
    groups: Tensor  # (G, hidden): mean over the ops of each group
    devices: Tensor  # (D, hidden)
    graph: Tensor  # (pooled,)


class Proposed(NamedTuple):
    """Logits of bins per gene, LOGITS each: mean, spread, elite bias."""

    priority: Tensor  # (n, LOGITS)
    affinity: Tensor  # (G, D, LOGITS)
    transfer: Tensor  # (n, LOGITS): of the tensors that an op makes


def graph_tensors(inputs: PolicyInputs) -> GraphTensors:
    """Return the inputs as tensors; they share memory."""
    return GraphTensors(*(torch.as_tensor(array) for array in inputs.arrays().values()))


def group_means(rows: Tensor, graph: GraphTensors) -> Tensor:
    """Return the (G, width) means of the (n, width) rows over the ops of each group."""
    zeros = torch.zeros((graph.group_sizes.shape[0], rows.shape[1]), dtype=rows.dtype)
    return zeros.index_add(0, graph.groups, rows) / graph.group_sizes.unsqueeze(1)


class Body(nn.Module):
    """Gated message passing in both directions, with the whole graph as context."""

    def __init__(self, options: NetworkOptions, features: int | None = None) -> None:
        """Make a body for ops with so many features; None: those of `node_feature_names`."""
        super().__init__()
        hidden = options.hidden
        width = len(node_feature_names()) if features is None else features
        self.nodes = _mlp(width + len(CONTEXT), hidden, hidden)
        self.devices = _mlp(len(DEVICE_FEATURES) + len(CONTEXT), hidden, hidden)
        self.layers = nn.ModuleList(
            _Layer(hidden, sees_graph=options.sees_graph) for _ in range(options.layers)
        )
        self.last = nn.LayerNorm(hidden)
        self.pooled_size = 2 * hidden + len(CONTEXT)

    def forward(self, graph: GraphTensors) -> Embedded:
        """Return the embeddings.

        Cost: O((n + e) * hidden^2) per layer.
        """
        context = graph.context.unsqueeze(0)
        nodes = self.nodes(
            torch.cat((graph.nodes, context.expand(graph.nodes.shape[0], -1)), dim=1)
        )
        devices = self.devices(
            torch.cat((graph.devices, context.expand(graph.devices.shape[0], -1)), dim=1)
        )
        for layer in self.layers:
            nodes = layer(nodes, graph)
        nodes = self.last(nodes)
        groups = group_means(nodes, graph)
        pooled = torch.cat((nodes.mean(dim=0), nodes.amax(dim=0), graph.context))
        return Embedded(nodes, groups, devices, pooled)


class _Layer(nn.Module):
    """One round of messages, and what the graph as a whole says, added to the nodes."""

    def __init__(self, hidden: int, *, sees_graph: bool) -> None:
        super().__init__()
        self.sees_graph = sees_graph
        self.norm = nn.LayerNorm(hidden)
        self.value = nn.Linear(hidden, hidden)
        self.source_gate = nn.Linear(hidden, hidden)
        self.target_gate = nn.Linear(hidden, hidden)
        self.edge_gate = nn.Linear(len(EDGE_FEATURES), hidden)
        self.edge_value = nn.Linear(len(EDGE_FEATURES), hidden, bias=False)
        self.context = nn.Linear(2 * hidden, hidden)
        self.update = _mlp(6 * hidden, hidden, hidden)

    def forward(self, nodes: Tensor, graph: GraphTensors) -> Tensor:
        seen = self.norm(nodes)
        whole = self.context(torch.cat((seen.mean(dim=0), seen.amax(dim=0)))).unsqueeze(0)
        parts = [seen, whole.expand(seen.shape[0], -1)]
        if self.sees_graph:
            parts += self._messages(seen, graph)
        else:
            parts.append(torch.zeros((seen.shape[0], 4 * seen.shape[1]), dtype=seen.dtype))
        update: Tensor = self.update(torch.cat(parts, dim=1))
        return nodes + update

    def _messages(self, seen: Tensor, graph: GraphTensors) -> list[Tensor]:
        """Return mean and maximum of the messages from producers, then from readers."""
        gate = torch.sigmoid(
            self.source_gate(seen)[graph.sources]
            + self.target_gate(seen)[graph.targets]
            + self.edge_gate(graph.edges)
        )
        messages = gate * (self.value(seen)[graph.sources] + self.edge_value(graph.edges))
        half = messages.shape[0] // 2
        pooled = []
        for part, targets in (
            (messages[:half], graph.targets[:half]),
            (messages[half:], graph.targets[half:]),
        ):
            zeros = torch.zeros_like(seen)
            ones = torch.ones((targets.shape[0], 1), dtype=seen.dtype)
            counts = torch.zeros((seen.shape[0], 1), dtype=seen.dtype).index_add(0, targets, ones)
            total = zeros.index_add(0, targets, part)
            index = targets.unsqueeze(1).expand(-1, seen.shape[1])
            # The zeros take part: an op without neighbors, or with negative messages only, has 0.
            most = zeros.scatter_reduce(0, index, part, reduce="amax", include_self=True)
            pooled += [total / counts.clamp(min=1.0), most]
        return pooled


class PaperHeads(nn.Module):
    """Logits of Beta distributions per gene; all 0 beside the prior at first: nearly uniform.

    Each head sees the embedding and, by a straight line, the features themselves: what is simple
    is learned first, and holds for other graphs.
    """

    def __init__(self, options: NetworkOptions) -> None:
        super().__init__()
        hidden, features = options.hidden, len(node_feature_names())
        self.priority = zero_head(hidden, hidden)
        self.priority_line = Line(features)
        self.transfer = zero_head(hidden, hidden)
        self.transfer_line = Line(features)
        self.pair_op = nn.Linear(hidden, hidden)
        self.pair_device = nn.Linear(hidden, hidden)
        self.affinity = zero_head(hidden, hidden)
        self.affinity_line = Line(features)
        self.prior: Tensor
        self.register_buffer("prior", torch.as_tensor(prior_logits()))

    def forward(self, embedded: Embedded, graph: GraphTensors) -> Proposed:
        """Return the logits."""
        # Products of ops and devices: equal devices differ by their places alone.
        ops = nn.functional.silu(self.pair_op(embedded.groups)).unsqueeze(1)
        pairs = ops * torch.tanh(self.pair_device(embedded.devices)).unsqueeze(0)
        features = group_means(graph.nodes, graph).unsqueeze(1)
        opposed = features * graph.devices[:, PLACE].reshape(1, -1, 1)
        share = graph.context[TIME_WEIGHT]
        priority = self.priority_line(graph.nodes, share)
        transfer = self.transfer_line(graph.nodes, share)
        return Proposed(
            self.priority(embedded.nodes) + priority + self.prior,
            self.affinity(pairs) + self.affinity_line(opposed, share) + self.prior,
            self.transfer(embedded.nodes) + transfer + self.prior,
        )


class Line(nn.Module):
    """One line from features to logits for running time, one for memory; all 0 at first.

    With one for both, what was learned of running time, which gains far more, spoiled memory.
    """

    def __init__(self, features: int) -> None:
        """Make lines from so many features."""
        super().__init__()
        self.time = nn.Linear(features, LOGITS, bias=False)
        self.memory = nn.Linear(features, LOGITS, bias=False)
        nn.init.zeros_(self.time.weight)
        nn.init.zeros_(self.memory.weight)

    def forward(self, rows: Tensor, share: Tensor) -> Tensor:
        """Return the logits of rows of features; `share`: of running time in the objective."""
        mixed: Tensor = share * self.time(rows) + (1.0 - share) * self.memory(rows)
        return mixed


class PaperNetwork(nn.Module):
    """Body and heads of the paper's policy."""

    def __init__(self, options: NetworkOptions) -> None:
        super().__init__()
        self.options = options
        self.body = Body(options)
        self.heads = PaperHeads(options)

    def forward(self, graph: GraphTensors) -> tuple[Embedded, Proposed]:
        """Return embeddings and logits."""
        embedded = self.body(graph)
        return embedded, self.heads(embedded, graph)


def new_network(options: NetworkOptions, seed: int) -> PaperNetwork:
    """Return a network with the random weights of `seed`; its proposals are the prior."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PaperNetwork(options)


def parameter_count(network: nn.Module) -> int:
    """Return how many numbers training sets."""
    return sum(parameter.numel() for parameter in network.parameters())


def _mlp(n_in: int, hidden: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_in, hidden), nn.SiLU(), nn.Linear(hidden, n_out))


def zero_head(n_in: int, hidden: int) -> nn.Sequential:
    """Return a head whose logits are 0 at first."""
    head = _mlp(n_in, hidden, LOGITS)
    nn.init.zeros_(head[-1].weight)
    nn.init.zeros_(head[-1].bias)
    return head
