"""A NASNet-A network of normal and reduction cells, in its CIFAR layout, with few channels.

Cells: Zoph et al. 2018, arXiv:1707.07012, figure 4: separable convolutions of 3, 5 and 7,
each twice, over the outputs of the two cells before. Layers are named as in
`keras.applications.nasnet`, because the converter's order depends on the names.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.models.network import Builder, Network


def nasnet(size: int = 32, filters: int = 12, repeats: int = 2, classes: int = 10) -> Network:
    """Return stem, then three groups of `repeats` normal cells, reductions between them."""
    builder = Builder(name="nasnet_a_mobile", input_shape=(size, size, 3))
    cells = _Cells(builder)
    x = p = builder.conv("stem_conv1", "input", 3 * filters, 3)
    for group in range(3):
        width = filters * 2**group
        first = group * (repeats + 1)
        if group:
            x, p = cells.reduction(f"reduce_{group * repeats}", x, p, width), x
        for index in range(repeats):
            x, p = cells.normal(str(first + index), x, p, width), x
    pooled = builder.mean("global_average_pooling2d", cells.relu(x))
    logits = builder.dense("predictions", pooled, classes)
    return builder.build(builder.unary("softmax", "probabilities", logits))


@dataclass(slots=True)
class _Cells:
    """A builder and the number of activations so far, which name themselves in Keras."""

    builder: Builder
    activations: int = 0

    def relu(self, x: str) -> str:
        return self.builder.unary("relu", self._activation(), x)

    def _activation(self) -> str:
        self.activations += 1
        number = self.activations - 1
        # Keras calls it "activation"; its export finds that name taken and the numbers
        # too, and gives it one behind all others.
        return f"activation_{number}" if number else "activation_first"

    def separable(self, name: str, x: str, filters: int, kernel: int, stride: int = 1) -> str:
        """Return ReLU, separable convolution, ReLU, separable convolution."""
        b = self.builder
        x = self.relu(x)
        x = b.depthwise(f"separable_conv_1_{name}", x, kernel, stride=stride)
        x = b.conv(f"separable_conv_1_{name}/pointwise", x, filters, relu=True)
        self._activation()  # the one that is fused behind the convolution
        x = b.depthwise(f"separable_conv_2_{name}", x, kernel)
        return b.conv(f"separable_conv_2_{name}/pointwise", x, filters)

    def adjust(self, block: str, previous: str, current: str, filters: int) -> str:
        """Return the cell before the last, brought to the size of the last one."""
        b = self.builder
        height, width, channels = b.shapes[previous]
        if height != b.shapes[current][0]:
            x = b.unary("relu", f"adjust_relu_1_{block}", previous)
            left = b.pool("avg_pool", f"adjust_avg_pool_1_{block}", x, 1, stride=2)
            left = b.conv(f"adjust_conv_1_{block}", left, filters // 2)
            right = b.pad(f"zero_padding2d_{block}", x, 0, 1)
            end = (height + 1, width + 1, channels)
            right = b.slice(f"cropping2d_{block}", right, (1, 1, 0), end)
            right = b.pool("avg_pool", f"adjust_avg_pool_2_{block}", right, 1, stride=2)
            right = b.conv(f"adjust_conv_2_{block}", right, filters - filters // 2)
            return b.concat(f"concatenate_{block}", [left, right])
        if channels != filters:
            return b.conv(f"adjust_conv_projection_{block}", self.relu(previous), filters)
        return previous

    def normal(self, block: str, current: str, previous: str, filters: int) -> str:
        """Return a cell that keeps rows and columns."""
        b = self.builder
        p = self.adjust(block, previous, current, filters)
        h = b.conv(f"normal_conv_1_{block}", self.relu(current), filters)
        left = self.separable(f"normal_left1_{block}", h, filters, 5)
        right = self.separable(f"normal_right1_{block}", p, filters, 3)
        x1 = b.add(f"normal_add_1_{block}", left, right)
        left = self.separable(f"normal_left2_{block}", p, filters, 5)
        right = self.separable(f"normal_right2_{block}", p, filters, 3)
        x2 = b.add(f"normal_add_2_{block}", left, right)
        left = b.pool("avg_pool", f"normal_left3_{block}", h, 3)
        x3 = b.add(f"normal_add_3_{block}", left, p)
        left = b.pool("avg_pool", f"normal_left4_{block}", p, 3)
        right = b.pool("avg_pool", f"normal_right4_{block}", p, 3)
        x4 = b.add(f"normal_add_4_{block}", left, right)
        left = self.separable(f"normal_left5_{block}", h, filters, 3)
        x5 = b.add(f"normal_add_5_{block}", left, h)
        return b.concat(f"normal_concat_{block}", [p, x1, x2, x3, x4, x5])

    def reduction(self, block: str, current: str, previous: str, filters: int) -> str:
        """Return a cell that halves rows and columns."""
        b = self.builder
        p = self.adjust(block, previous, current, filters)
        h = b.conv(f"reduction_conv_1_{block}", self.relu(current), filters)
        padded = b.pad(f"reduction_pad_1_{block}", h, 0, 1)
        left = self.separable(f"reduction_left1_{block}", h, filters, 5, 2)
        right = self.separable(f"reduction_right1_{block}", p, filters, 7, 2)
        x1 = b.add(f"reduction_add_1_{block}", left, right)
        left = self._halve("max_pool", f"reduction_left2_{block}", padded)
        right = self.separable(f"reduction_right2_{block}", p, filters, 7, 2)
        x2 = b.add(f"reduction_add_2_{block}", left, right)
        left = self._halve("avg_pool", f"reduction_left3_{block}", padded)
        right = self.separable(f"reduction_right3_{block}", p, filters, 5, 2)
        x3 = b.add(f"reduction_add3_{block}", left, right)
        left = b.pool("avg_pool", f"reduction_left4_{block}", x1, 3)
        x4 = b.add(f"add_{block}", x2, left)
        left = self.separable(f"reduction_left4_{block}", x1, filters, 3)
        right = self._halve("max_pool", f"reduction_right5_{block}", padded)
        x5 = b.add(f"reduction_add4_{block}", left, right)
        return b.concat(f"reduction_concat_{block}", [x2, x3, x4, x5])

    def _halve(self, kind: str, name: str, padded: str) -> str:
        return self.builder.pool(kind, name, padded, 3, stride=2, padding="valid")
