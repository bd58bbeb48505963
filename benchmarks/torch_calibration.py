"""Constants of kernels that Inductor generates, on this machine, on one thread.

`python -m benchmarks.torch_calibration` prints what one call takes, what bytes take near and far,
what an element of some operators takes, and what copies between layouts take: the constants of
`regal.torch.measured`. As in a graph, a convolution runs before each call, and what the call reads
was written just before it.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROW = 256
ROWS = 512
REPEATS = 60
SIZES = (4, 64, 128, 512, 1024, 2048, 4096, 16384)
NORMALIZED = (2, 64, 64, 64)
IMAGES = (
    (8, 32, 7, 7), (8, 512, 2, 2), (8, 64, 16, 16), (2, 64, 64, 64), (8, 64, 64, 64),
    (2, 16, 112, 112), (8, 3, 64, 64),
)  # fmt: skip


def operators() -> dict[str, Callable[[Any, Any], Any]]:
    """Return groups of a cheap operator and one more."""
    import torch

    return {
        "add": lambda x, y: x + y,
        "three": lambda x, y: ((x + y) * y).relu(),
        "exp": lambda x, y: (x + y).exp(),
        "sigmoid": lambda x, y: (x + y).sigmoid(),
        "tanh": lambda x, y: (x + y).tanh(),
        "erf": lambda x, y: (x + y).erf(),
        "sum": lambda x, y: (x * y).sum(-1),
        "softmax": lambda x, y: (x + y).softmax(-1),
        "layer norm": lambda x, y: torch.nn.functional.layer_norm(x + y, (x.shape[-1],)),
    }


def on_images() -> dict[str, Callable[[Any, Any], Any]]:
    """Return groups of an image and a vector per channel; those of an image alone ignore it."""
    import torch

    functional = torch.nn.functional
    return {
        "relu": lambda x, v: x.relu(),
        "batch norm": lambda x, v: functional.batch_norm(x, v, v, v, v),
        "enlarged": lambda x, v: functional.interpolate(x, scale_factor=2, mode="nearest").relu(),
    }


def last(image: Any) -> Any:
    """Return a copy that is channels last."""
    import torch

    return image.clone(memory_format=torch.channels_last)


def first(image: Any) -> Any:
    """Return a copy that is contiguous."""
    import torch

    return image.clone(memory_format=torch.contiguous_format)


def region_of(function: Callable[..., Any], *args: Any) -> Any:
    """Return a compiled region of a function of tensors."""
    from torch.fx.experimental.proxy_tensor import make_fx

    from regal.backends.torch.regions import Region, compiled_call

    module = make_fx(lambda *given: (function(*given),), tracing_mode="fake")(*args)
    output = module.graph.output_node()
    region = Region(module, tuple(node.meta["val"] for node in output.args[0]), "calibration")
    region.use(compiled_call(region))
    return region


def took_ns(run: Callable[..., object], *args: Any) -> int:
    """Return the median of some calls behind a convolution, in time of this thread."""
    import torch

    from regal.backends.torch.trial import clock_ns

    image, weight = torch.rand(2, 64, 64, 64), torch.rand(64, 64, 3, 3)
    run(*args)
    times = []
    for _ in range(REPEATS):
        torch.conv2d(image, weight, padding=1)
        args[0].mul_(1)
        started = clock_ns()
        run(*args)
        times.append(clock_ns() - started)
    return int(median(times))


def main() -> None:
    import torch

    from regal.backends.torch.trial import keep_freed_memory

    torch.set_num_threads(1)
    keep_freed_memory()
    add = operators()["add"]
    for rows in SIZES:
        x, y = torch.rand(rows, ROW), torch.rand(rows, ROW)
        region = region_of(add, x, y)
        took = took_ns(region, x, y)
        print(f"{3 * x.nbytes:>10} bytes: {took:>9} ns, {3 * x.nbytes / took:6.1f} bytes per ns")
    x, y = torch.rand(ROWS, ROW), torch.rand(ROWS, ROW)
    plain = region_of(add, x, y)
    base = took_ns(plain, x, y)
    for name, function in operators().items():
        region = region_of(function, x, y)
        took = took_ns(region, x, y)
        eager = took_ns(function, x, y)
        print(f"{name:>10}: {took:>8} ns, {(took - base) / x.numel():6.3f} ns per element more"
              f" than an addition; op by op {eager}")  # fmt: skip
    image, vector = torch.rand(NORMALIZED), torch.rand(NORMALIZED[1])
    for name, function in on_images().items():
        for given in (image, last(image)):
            region = region_of(function, given, vector)
            took = took_ns(region, given, vector)
            elements = region.values[0].numel()
            eager = took_ns(function, given, vector)
            print(f"{name:>10}, strides {given.stride()}: {took:>8} ns,"
                  f" {took / elements:6.3f} ns per element of the result;"
                  f" op by op {eager}")  # fmt: skip
    for shape in IMAGES:
        image = torch.rand(shape)
        region = region_of(last, image)
        ours = took_ns(region, image)
        aten = took_ns(last, image)
        print(f"copy of {shape} to channels last: {ours} ns; PyTorch's own {aten}")
        back = took_ns(region_of(first, other := last(image)), other)
        print(f"copy of {shape} to contiguous: {back} ns")


if __name__ == "__main__":
    main()
