"""What all PyTorch sources share: torchvision beside a CPU build, loss modules, the modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from regal.data.items import INFERENCE, JOINT, TRAINING
from regal.frontends.torch.eager import adam, momentum, recorded_inference, recorded_step
from regal.frontends.torch.trace import fake_module, joint_graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from regal.data.items import Item
    from regal.graph.types import Graph

    Inputs = Callable[[torch.nn.Module], tuple[torch.Tensor, ...]]

# Of regal.frontends.torch: 2 counts no more bytes of an expanded view than its storage has, and
# lets batch statistics be written by composite operators, too.
TRACER = 2
# torchvision's wheels load their C++ operators only beside the build of torch that they were
# made for, and its import fails without them. Architectures need their names, not their code.
TORCHVISION_OPERATORS = (
    "nms(Tensor a, Tensor b, float c) -> Tensor",
    "qnms(Tensor a, Tensor b, float c) -> Tensor",
    "roi_align(Tensor a, Tensor b, float c, SymInt d, SymInt e, int f, bool g) -> Tensor",
    "qroi_align(Tensor a, Tensor b, float c, SymInt d, SymInt e, int f, bool g) -> Tensor",
    "roi_pool(Tensor a, Tensor b, float c, SymInt d, SymInt e) -> (Tensor, Tensor)",
    "ps_roi_align(Tensor a, Tensor b, float c, SymInt d, SymInt e, int f) -> (Tensor, Tensor)",
    "ps_roi_pool(Tensor a, Tensor b, float c, SymInt d, SymInt e) -> (Tensor, Tensor)",
    "deform_conv2d(Tensor a, Tensor b, Tensor c, Tensor d, Tensor e, SymInt f, SymInt g, SymInt h,"
    " SymInt i, SymInt j, SymInt k, SymInt l, SymInt m, bool n) -> Tensor",
    "_roi_align_backward(Tensor a, Tensor b, float c, SymInt d, SymInt e, SymInt f, SymInt g,"
    " SymInt h, SymInt i, int j, bool k) -> Tensor",
    "_roi_pool_backward(Tensor a, Tensor b, Tensor c, float d, SymInt e, SymInt f, SymInt g,"
    " SymInt h, SymInt i, SymInt j) -> Tensor",
    "_ps_roi_align_backward(Tensor a, Tensor b, Tensor c, float d, SymInt e, SymInt f, int g,"
    " SymInt h, SymInt i, SymInt j, SymInt k) -> Tensor",
    "_ps_roi_pool_backward(Tensor a, Tensor b, Tensor c, float d, SymInt e, SymInt f, SymInt g,"
    " SymInt h, SymInt i, SymInt j) -> Tensor",
    "_deform_conv2d_backward(Tensor a, Tensor b, Tensor c, Tensor d, Tensor e, Tensor f, SymInt g,"
    " SymInt h, SymInt i, SymInt j, SymInt k, SymInt l, SymInt m, SymInt n, bool o)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)
_declared: list[torch.library.Library] = []  # a library lives as long as its object


def torch_version() -> str:
    """Return what decides the bytes of a traced graph besides the source: torch and the tracer."""
    return f"torch {torch.__version__}, tracer {TRACER}"


def import_torchvision() -> None:
    """Make `import torchvision` work beside a build of torch that its operators do not fit."""
    try:
        import torchvision
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for schema in TORCHVISION_OPERATORS:
            library.define(schema)
        _declared.append(library)
        import torchvision  # noqa: F401


class ClassifierLoss(torch.nn.Module):
    """A classifier with its cross-entropy loss: what AOTAutograd differentiates."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor]:
        """Return the loss of inputs `x` with labels `y`, in a tuple."""
        scores = self.model(x)
        scores = scores[0] if isinstance(scores, tuple | list) else scores
        return (torch.nn.functional.cross_entropy(scores, y),)


class MeanLoss(torch.nn.Module):
    """A model with the mean of its outputs as loss: all of it is differentiated."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *args: Any) -> tuple[torch.Tensor]:
        """Return the sum of the means of all floating-point outputs, in a tuple."""
        found = [
            leaf.float().mean()
            for leaf in torch.utils._pytree.tree_leaves(self.model(*args))
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
        ]
        return (torch.stack(found).sum(),)


class Positional(torch.nn.Module):
    """A model with keyword inputs as one with positional ones and plain outputs."""

    def __init__(self, model: torch.nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return all tensors that the model returns."""
        given = dict(zip(self.names, args, strict=True))
        result = self.model(**given, return_dict=False)
        leaves = torch.utils._pytree.tree_leaves(result)
        return tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))


def traced(
    item: Item,
    make: Callable[[], torch.nn.Module],
    inputs: Inputs,
    loss: type[torch.nn.Module] = MeanLoss,
    *,
    uses_adam: bool = False,
) -> Graph:
    """Return the graph of an item in its mode.

    Args:
        item: inference, training (one eager step with its optimizer) or joint (AOTAutograd).
        make: builds the module.
        inputs: the arguments for the module, and its labels where the loss wants them.
        loss: wraps the module in what is differentiated.
        uses_adam: train by AdamW instead of SGD with momentum.
    """
    is_inference = item.mode == INFERENCE
    module, mode = fake_module(lambda: make().train(not is_inference))
    with mode:
        args = inputs(module)
    if is_inference:
        return recorded_inference(module, mode, args, item.key)
    if item.mode == JOINT:
        return joint_graph(loss(module), args, item.key)
    if item.mode != TRAINING:
        raise ValueError(f"item '{item.key}': unknown mode '{item.mode}'")
    if uses_adam:
        return recorded_step(loss(module), mode, args, item.key, adam, ("mean", "square"))
    return recorded_step(loss(module), mode, args, item.key, momentum, ("velocity",))
