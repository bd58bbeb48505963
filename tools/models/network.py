"""The small float network form that every shipped model is built in.

A `Network` is a list of nodes in the order in which its author wrote them, over named
values in NHWC layout. Shapes are without the batch. `fit.py` gives it weights and value
ranges; `quantize.py` and `onnx_writer.py` turn it into files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Shape = tuple[int, ...]

WEIGHTED_KINDS = frozenset({"conv", "depthwise", "dense"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One layer. Only the fields that its kind uses are set."""

    kind: str  # see `fit.evaluate_node` for what each kind computes
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    kernel: tuple[int, int] = (1, 1)  # height, width
    stride: int = 1
    padding: str = "same"  # "same" or "valid", TensorFlow's rule
    relu: bool = False  # fused behind the node
    normalize: bool = False  # folded batch normalization
    axis: int = -1  # concat and split; counts the batch axis as 0
    begin: tuple[int, ...] = ()  # slice; without the batch
    end: tuple[int, ...] = ()
    before: tuple[int, int] = (0, 0)  # pad: rows, columns on top and left
    after: tuple[int, int] = (0, 0)
    variable: str = ""  # read, assign


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Nodes as written, the shape of every value and of every state variable."""

    name: str
    nodes: tuple[Node, ...]
    shapes: dict[str, Shape]
    input: str
    output: str
    variables: dict[str, Shape]


@dataclass(slots=True)
class Builder:
    """Collects nodes; each method returns the name of the value it makes."""

    name: str
    input_shape: Shape
    nodes: list[Node] = field(default_factory=list)
    shapes: dict[str, Shape] = field(default_factory=dict)
    variables: dict[str, Shape] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shapes["input"] = self.input_shape

    def conv(
        self,
        name: str,
        x: str,
        filters: int,
        kernel: int | tuple[int, int] = 1,
        *,
        stride: int = 1,
        relu: bool = False,
        padding: str = "same",
    ) -> str:
        """Add a convolution with folded batch normalization."""
        size = (kernel, kernel) if isinstance(kernel, int) else kernel
        height, width = self._window(x, size, stride, padding)
        node = Node(
            kind="conv", name=name, inputs=(x,), outputs=(name,), kernel=size,
            stride=stride, relu=relu, normalize=True, padding=padding,
        )  # fmt: skip
        return self._add(node, (height, width, filters))

    def depthwise(
        self,
        name: str,
        x: str,
        kernel: int | tuple[int, int],
        *,
        stride: int = 1,
        padding: str = "same",
    ) -> str:
        """Add a depthwise convolution, without normalization of its own."""
        size = (kernel, kernel) if isinstance(kernel, int) else kernel
        height, width = self._window(x, size, stride, padding)
        node = Node(
            kind="depthwise", name=name, inputs=(x,), outputs=(name,), kernel=size,
            stride=stride, padding=padding,
        )  # fmt: skip
        return self._add(node, (height, width, self.shapes[x][2]))

    def pool(
        self,
        kind: str,
        name: str,
        x: str,
        kernel: int,
        *,
        stride: int = 1,
        padding: str = "same",
    ) -> str:
        """Add an "avg_pool" or "max_pool"."""
        height, width = self._window(x, (kernel, kernel), stride, padding)
        node = Node(
            kind=kind, name=name, inputs=(x,), outputs=(name,), kernel=(kernel, kernel),
            stride=stride, padding=padding,
        )  # fmt: skip
        return self._add(node, (height, width, self.shapes[x][2]))

    def add(self, name: str, a: str, b: str, *, relu: bool = False) -> str:
        """Add the sum of two values of one shape."""
        if self.shapes[a] != self.shapes[b]:
            raise ValueError(f"{name}: {a} {self.shapes[a]} and {b} {self.shapes[b]} differ")
        node = Node(kind="add", name=name, inputs=(a, b), outputs=(name,), relu=relu)
        return self._add(node, self.shapes[a])

    def concat(self, name: str, parts: Sequence[str], axis: int = 3) -> str:
        """Add a concatenation; `axis` counts the batch as 0."""
        shape = list(self.shapes[parts[0]])
        shape[axis - 1] = sum(self.shapes[part][axis - 1] for part in parts)
        node = Node(kind="concat", name=name, inputs=tuple(parts), outputs=(name,), axis=axis)
        return self._add(node, tuple(shape))

    def split(self, name: str, x: str, parts: int) -> tuple[str, ...]:
        """Add a split of the channels into equal parts."""
        height, width, channels = self.shapes[x]
        outputs = tuple(f"{name}_{index}" for index in range(parts))
        self.nodes.append(Node(kind="split", name=name, inputs=(x,), outputs=outputs, axis=3))
        for output in outputs:
            self.shapes[output] = (height, width, channels // parts)
        return outputs

    def slice(self, name: str, x: str, begin: Shape, end: Shape) -> str:
        """Add the part [begin, end) of a value; without the batch axis."""
        node = Node(kind="slice", name=name, inputs=(x,), outputs=(name,), begin=begin, end=end)
        return self._add(node, tuple(b - a for a, b in zip(begin, end, strict=True)))

    def pad(self, name: str, x: str, before: int, after: int) -> str:
        """Add zero rows and columns."""
        height, width, channels = self.shapes[x]
        node = Node(
            kind="pad", name=name, inputs=(x,), outputs=(name,),
            before=(before, before), after=(after, after),
        )  # fmt: skip
        more = before + after
        return self._add(node, (height + more, width + more, channels))

    def upsample(self, name: str, x: str) -> str:
        """Add a nearest-neighbor upsampling by two."""
        height, width, channels = self.shapes[x]
        node = Node(kind="upsample", name=name, inputs=(x,), outputs=(name,))
        return self._add(node, (2 * height, 2 * width, channels))

    def unary(self, kind: str, name: str, x: str) -> str:
        """Add a "relu", "softmax" or "logistic"."""
        return self._add(Node(kind=kind, name=name, inputs=(x,), outputs=(name,)), self.shapes[x])

    def mean(self, name: str, x: str) -> str:
        """Add the mean over rows and columns."""
        node = Node(kind="mean", name=name, inputs=(x,), outputs=(name,))
        return self._add(node, (self.shapes[x][2],))

    def reshape(self, name: str, x: str, shape: Shape) -> str:
        """Add a change of shape."""
        return self._add(Node(kind="reshape", name=name, inputs=(x,), outputs=(name,)), shape)

    def dense(self, name: str, x: str, units: int) -> str:
        """Add a fully connected layer whose outputs are normalized."""
        node = Node(kind="dense", name=name, inputs=(x,), outputs=(name,), normalize=True)
        return self._add(node, (units,))

    def read(self, name: str, variable: str, shape: Shape) -> str:
        """Add a read of a state variable, declared with it."""
        self.variables[variable] = shape
        node = Node(kind="read", name=name, inputs=(), outputs=(name,), variable=variable)
        return self._add(node, shape)

    def assign(self, name: str, variable: str, x: str) -> None:
        """Add a write of a state variable."""
        self.nodes.append(
            Node(kind="assign", name=name, inputs=(x,), outputs=(), variable=variable)
        )

    def build(self, output: str) -> Network:
        """Return the finished network.

        Raises:
            ValueError: two nodes have one name.
        """
        names = [node.name for node in self.nodes]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"network {self.name}: names used twice: {sorted(twice)}")
        return Network(
            name=self.name, nodes=tuple(self.nodes), shapes=dict(self.shapes),
            input="input", output=output, variables=dict(self.variables),
        )  # fmt: skip

    def _add(self, node: Node, shape: Shape) -> str:
        self.nodes.append(node)
        self.shapes[node.outputs[0]] = shape
        return node.outputs[0]

    def _window(
        self, x: str, kernel: tuple[int, int], stride: int, padding: str
    ) -> tuple[int, int]:
        height, width, _ = self.shapes[x]
        if padding == "same":
            return -(-height // stride), -(-width // stride)
        return (height - kernel[0]) // stride + 1, (width - kernel[1]) // stride + 1


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Return the zeros before and after one axis under TensorFlow's "same" rule."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2
