"""Profiles of PipeDream (graph.txt): layers with forward and backward times, and their edges.

Lines "id -- description -- forward_compute_time=.., backward_compute_time=..,
activation_size=.., parameter_size=.." and, indented, "id -- id". Times are milliseconds, sizes
bytes; an activation may be a list, one size per output.

A training step is made of it: a forward op per layer and, in inverse order, a backward op. The
backward op reads the gradients that the readers of the layer made, what the forward op read, and
its parameters; it makes the gradient of each of its inputs, and that of its parameters, which is
a result. Forward and backward of a layer are colocated: they share the parameters. Layers named
"Input.." are inputs of the graph; "__getitem__(i)" is output i of the layer before it, in the
same memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.task_graphs.fields import NS_PER_MS, bytes_of, ns_of, number_in, text_of
from regal.frontends.task_graphs.tasks import TaskGraph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.graph.types import LoadedModel

FIELDS = (
    "forward_compute_time",
    "backward_compute_time",
    "activation_size",
    "parameter_size",
)
GETITEM = re.compile(r"__getitem__\((\d{1,6})\)")


def parse(data: bytes, name: str) -> LoadedModel:
    """Return the training step.

    Raises:
        ModelError: names the line or the layer.
    """
    layers, edges = _layers(text_of(data, name), name)
    sources: dict[str, list[str]] = {label: [] for label in layers}
    targets: dict[str, list[str]] = {label: [] for label in layers}
    for a, b in edges:
        if a not in sources[b]:
            sources[b].append(a)
            targets[a].append(b)
    step = _Step(TaskGraph(name.removesuffix(".txt")), layers, sources, targets)
    for label in layers:
        step.add_forward(label)
    for label in layers:
        step.connect_forward(label)
    for label in reversed(layers):
        step.add_backward(label)
    for label in layers:
        step.connect_backward(label)
    return step.graph.model()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    kind: str
    description: str
    forward_ns: int
    backward_ns: int
    activations: tuple[int, ...]  # bytes of each output
    parameter_bytes: int

    @property
    def is_input(self) -> bool:
        return self.kind.startswith("Input") and not self.forward_ns and not self.parameter_bytes


class _Step:
    """The training step while it is built: which values each layer has made."""

    def __init__(
        self,
        graph: TaskGraph,
        layers: Mapping[str, _Layer],
        sources: Mapping[str, list[str]],
        targets: Mapping[str, list[str]],
    ) -> None:
        self.graph = graph
        self._layers = layers
        self._sources = sources
        self._targets = targets
        self._forward: dict[str, int] = {}
        self._backward: dict[str, int] = {}
        self._outputs: dict[str, list[int]] = {}
        self._parameters: dict[str, int] = {}
        self._gradients: dict[tuple[str, str], int] = {}  # (layer, its source) -> value

    def add_forward(self, label: str) -> None:
        """Add the forward op of a layer with its outputs, or an input of the graph."""
        layer = self._layers[label]
        if layer.is_input and not self._sources[label]:
            self._outputs[label] = [self.graph.input(label, layer.activations[0])]
            return
        task = self.graph.task(label, layer.kind, times_ns={"": layer.forward_ns}, colocation=label)
        self._forward[label] = task
        if layer.parameter_bytes:
            self._parameters[label] = self.graph.parameter(
                f"{label}.parameters", layer.parameter_bytes
            )
            self.graph.read(task, self._parameters[label])
        self._outputs[label] = [
            self.graph.value(task, size, name=f"{label}.out{i}")
            for i, size in enumerate(layer.activations)
        ]

    def connect_forward(self, label: str) -> None:
        """Let the forward op of a layer read what its sources made."""
        if label in self._forward:
            for value in self._values_read(label):
                self.graph.read(self._forward[label], value)

    def add_backward(self, label: str) -> None:
        """Add the backward op of a layer and the gradients that it makes."""
        if label not in self._forward:
            return
        layer = self._layers[label]
        task = self.graph.task(
            f"{label}.backward",
            f"{layer.kind}Backward",
            times_ns={"": layer.backward_ns},
            colocation=label,
        )
        self._backward[label] = task
        for source in self._sources[label]:
            if source in self._forward:
                size = sum(self._sizes_of(source, label))
                self._gradients[label, source] = self.graph.value(
                    task, size, name=f"{label}.gradient of {source}"
                )
        if label in self._parameters:
            self.graph.value(
                task, layer.parameter_bytes, name=f"{label}.gradient of its parameters"
            )
            self.graph.read(task, self._parameters[label])

    def connect_backward(self, label: str) -> None:
        """Let the backward op of a layer read gradients and what the forward op read and made."""
        if label not in self._backward:
            return
        task = self._backward[label]
        for target in self._targets[label]:
            self.graph.read(task, self._gradients[target, label])
        for value in self._values_read(label):
            self.graph.read(task, value)
        if not self._targets[label]:  # the loss
            for value in self._outputs[label]:
                self.graph.read(task, value)
                self.graph.keep(value)
        self.graph.wait(task, self._forward[label])

    def _values_read(self, label: str) -> list[int]:
        return [
            self._outputs[source][i]
            for source in self._sources[label]
            for i in self._outputs_read(source, label)
        ]

    def _sizes_of(self, source: str, label: str) -> list[int]:
        sizes = self._layers[source].activations
        return [sizes[i] for i in self._outputs_read(source, label)]

    def _outputs_read(self, source: str, label: str) -> list[int]:
        """Return which outputs of `source` the layer `label` reads: all, or the one it names."""
        count = len(self._outputs[source])
        item = GETITEM.fullmatch(self._layers[label].description)
        if item is not None and count > 1 and int(item.group(1)) < count:
            return [int(item.group(1))]
        return list(range(count))


def _layers(text: str, name: str) -> tuple[dict[str, _Layer], list[tuple[str, str]]]:
    layers: dict[str, _Layer] = {}
    edges: list[tuple[int, str, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"'{name}': line {number}"
        words = [word.strip() for word in line.split(" -- ")]
        if line.startswith(("\t", " ")) and len(words) == 2:
            edges.append((number, words[0], words[1]))
        elif len(words) >= 3:
            if words[0] in layers:
                raise ModelError(f"{where} is another layer '{words[0]}'; ids are unique")
            # A description may itself hold " -- "; a fourth part "stage_id=.." is a placement.
            end = next((i for i, w in enumerate(words) if w.startswith(FIELDS[0])), len(words))
            layers[words[0]] = _layer(" -- ".join(words[1:end]), " ".join(words[end:]), where)
        elif line.strip():
            raise ModelError(f"{where} is neither a layer nor an edge of a PipeDream profile")
    for number, a, b in edges:
        for end_of_edge in (a, b):
            if end_of_edge not in layers:
                raise ModelError(
                    f"'{name}': line {number} names layer '{end_of_edge}', which does not exist"
                )
    return layers, [(a, b) for _, a, b in edges]


def _layer(description: str, fields: str, where: str) -> _Layer:
    found: dict[str, str] = dict(re.findall(r"(\w+)=(\[[^\]]*\]|[^,\s]+)", fields))
    missing = [field for field in FIELDS if field not in found]
    if missing:
        raise ModelError(f"{where}: its layer has no '{missing[0]}'")
    words = found["activation_size"].strip("[]").split(";")
    sizes = [
        bytes_of(number_in(word.strip(), f"{where}: 'activation_size'"), where) for word in words
    ]
    times = [
        ns_of(number_in(found[key], f"{where}: '{key}'"), NS_PER_MS, f"{where}: '{key}'")
        for key in FIELDS[:2]
    ]
    parameters = number_in(found["parameter_size"], f"{where}: 'parameter_size'")
    return _Layer(
        kind=re.split(r"[(\s]", description, maxsplit=1)[0] or "layer",
        description=description,
        forward_ns=times[0],
        backward_ns=times[1],
        activations=tuple(sizes),
        parameter_bytes=bytes_of(parameters, where),
    )
