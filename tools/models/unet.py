"""A U-Net for segmentation after Ronneberger et al. 2015, arXiv:1505.04597."""

from __future__ import annotations

from tools.models.network import Builder, Network


def unet(size: int = 64, filters: int = 8, depth: int = 3, classes: int = 4) -> Network:
    """Return an encoder and a decoder of `depth` levels, joined by skip connections."""
    builder = Builder(name="unet", input_shape=(size, size, 3))
    x = "input"
    skips: list[str] = []
    for level in range(depth):
        x = _double(builder, f"down{level}", x, filters * 2**level)
        skips.append(x)
        x = builder.pool("max_pool", f"down{level}_pool", x, 2, stride=2)
    x = _double(builder, "bottom", x, filters * 2**depth)
    for level in reversed(range(depth)):
        x = builder.upsample(f"up{level}_resize", x)
        x = builder.conv(f"up{level}_reduce", x, filters * 2**level, 3, relu=True)
        x = builder.concat(f"up{level}_concat", [skips[level], x])
        x = _double(builder, f"up{level}", x, filters * 2**level)
    return builder.build(builder.conv("classes", x, classes))


def _double(builder: Builder, name: str, x: str, filters: int) -> str:
    x = builder.conv(f"{name}_conv1", x, filters, 3, relu=True)
    return builder.conv(f"{name}_conv2", x, filters, 3, relu=True)
