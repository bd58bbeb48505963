"""Give gradients of images that were enlarged to the nearest pixel their own operator back.

PyTorch traces that enlarging as a gather at computed positions, and its gradient as a scatter that
adds one element after the other. Eager code has a kernel for it that takes a tenth of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._dispatch.python import no_python_dispatcher
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Node
from torch.fx.node import map_arg

from regal.torch.remat import chain_of, fresh_value, is_repeatable

if TYPE_CHECKING:
    from torch.fx import GraphModule

aten = torch.ops.aten

SCATTERS = (aten._unsafe_index_put.default, aten.index_put.default)
ZEROS = (aten.new_zeros.default, aten.zeros.default, aten.zeros_like.default)


def restore_resizing_gradients(joint: GraphModule) -> int:
    """Replace scatters that are the gradient of enlarging to the nearest pixel; return how many.

    Positions count as what they are: their nodes, which read nothing, are computed here, and
    compared with what the operator itself does to an image of positions.

    Args:
        joint: of AOTAutograd, with fake tensors; those of free sizes, and of other devices than
            CPUs, keep their scatters.
    """
    changed = 0
    for node in list(joint.graph.nodes):
        if node.op != "call_function" or node.target not in SCATTERS or not _is_resizing(node):
            continue
        gradient = node.args[2]
        sizes = list(gradient.meta["val"].shape[2:]), list(node.meta["val"].shape)
        with joint.graph.inserting_before(node):
            made = joint.graph.call_function(
                aten.upsample_nearest2d_backward.default, (gradient, *sizes)
            )
        made.meta = {**node.meta}
        made.meta["val"] = fresh_value(made)
        node.replace_all_uses_with(made)
        joint.graph.erase_node(node)
        changed += 1
    if changed:
        joint.graph.eliminate_dead_code()
        joint.recompile()
    return changed


def _is_resizing(node: Node) -> bool:
    base, positions, gradient, *accumulate = node.args
    if accumulate[:1] != [True] or getattr(base, "target", None) not in ZEROS:
        return False
    values = [each.meta.get("val") for each in (node, base, gradient) if isinstance(each, Node)]
    if len(values) != 3 or len(positions) != 4 or positions[0] or positions[1]:
        return False
    small, _, large = values
    if any(value.dim() != 4 or value.dtype is not torch.float32 for value in values):
        return False
    if any(value.device.type != "cpu" for value in values):
        return False
    if any(type(size) is not int for value in values for size in value.shape):
        return False
    if large.shape[:2] != small.shape[:2]:
        return False
    height, width = small.shape[2:]
    rows, columns = (_constant(each) for each in positions[2:])
    if rows is None or columns is None:
        return False
    with unset_fake_temporarily(), no_python_dispatcher(), torch.no_grad():
        image = torch.arange(height * width, dtype=torch.float64).view(1, 1, height, width)
        expected = aten.upsample_nearest2d.default(image, list(large.shape[2:]))[0, 0].long()
        found = rows * width + columns
        # Negative columns count from the right: the number alone would be that of the row above.
        is_inside = bool(((columns >= 0) & (columns < width)).all())
        return bool(is_inside and found.shape == expected.shape and torch.equal(found, expected))


def _constant(node: Any) -> torch.Tensor | None:
    """Return the value of a node of integers that reads nothing; None: it does."""
    if not isinstance(node, Node) or not is_repeatable(node):
        return None
    chain = chain_of([node], ())
    if any(each not in chain for some in chain for each in some.all_input_nodes):
        return None
    made: dict[Node, Any] = {}
    with unset_fake_temporarily(), no_python_dispatcher(), torch.no_grad():
        for each in node.graph.nodes:
            if each in chain:
                args, kwargs = map_arg((each.args, each.kwargs), made.__getitem__)
                made[each] = each.target(*args, **kwargs)
    value = made[node]
    is_position = isinstance(value, torch.Tensor) and value.dtype is torch.int64
    return value if is_position else None
