"""A streaming keyword spotter with ring buffers, in the style of MixConv wake-word models.

Each call gets a few new spectrogram frames. Every layer keeps the last frames that it saw
in a state variable: read, append the new ones, write the tail back. Mixed convolutions
split the channels into branches with kernels of different length (MixNet,
arXiv:1907.09595).
"""

from __future__ import annotations

from tools.models.network import Builder, Network


def wakeword(
    frames: int = 3,
    features: int = 40,
    channels: int = 48,
    kernels: tuple[tuple[int, ...], ...] = ((5,), (7, 11), (9, 15), (11, 19, 23), (13, 21)),
) -> Network:
    """Return the network: a strided convolution, one block per entry of `kernels`, a head.

    As in files that TensorFlow's converter writes, all state is read first.
    """
    builder = Builder(name="wakeword_streaming", input_shape=(frames, features))
    widths = [32] + [channels] * len(kernels)
    sizes = {"stream": (2, 1, features)}
    for index, block in enumerate(kernels):
        sizes[f"stream_{index + 1}"] = (max(block) - 1, 1, widths[index])
    head = f"stream_{len(kernels) + 1}"
    sizes[head] = (5, 1, channels)
    # Handles stand in layer order; of the converter's reads the first layer's is last.
    reads = {}
    for name in [*list(sizes)[1:], "stream"]:
        reads[name] = builder.read(f"{name}/read", f"{name}/states", sizes[name])
    x = builder.reshape("expand", "input", (frames, 1, features))
    x = _buffer(builder, "stream", reads["stream"], x)
    x = builder.conv("first", x, widths[0], (5, 1), stride=3, relu=True, padding="valid")
    for index, block in enumerate(kernels):
        name = f"stream_{index + 1}"
        x = _buffer(builder, name, reads[name], x)
        x = _mixed(builder, f"mix{index}", x, block)
        x = builder.conv(f"point{index}", x, channels, relu=True)
    x = _buffer(builder, head, reads[head], x)
    size = builder.shapes[x]
    x = builder.reshape("flatten", x, (size[0] * size[1] * size[2],))
    logits = builder.dense("dense", x, 1)
    return builder.build(builder.unary("logistic", "probability", logits))


def _buffer(builder: Builder, name: str, state: str, new: str) -> str:
    """Return the kept frames followed by the new ones; keep the newest for next time."""
    x = builder.concat(f"{name}/concat", [state, new], axis=1)
    length, _, channels = builder.shapes[x]
    kept = builder.shapes[state][0]
    tail = builder.slice(f"{name}/tail", x, (length - kept, 0, 0), (length, 1, channels))
    builder.assign(f"{name}/assign", f"{name}/states", tail)
    return x


def _mixed(builder: Builder, name: str, x: str, kernels: tuple[int, ...]) -> str:
    """Return the last frame's output of one depthwise convolution per group of channels."""
    length, _, channels = builder.shapes[x]
    if len(kernels) == 1:
        return builder.depthwise(f"{name}_dw", x, (kernels[0], 1), padding="valid")
    made = []
    parts = builder.split(f"{name}_split", x, len(kernels))
    for kernel, part in zip(kernels, parts, strict=True):
        if kernel < length:
            corner = (length - kernel, 0, 0)
            end = (length, 1, channels // len(kernels))
            part = builder.slice(f"{name}_keep{kernel}", part, corner, end)
        made.append(builder.depthwise(f"{name}_dw{kernel}", part, (kernel, 1), padding="valid"))
    return builder.concat(f"{name}_concat", made)
