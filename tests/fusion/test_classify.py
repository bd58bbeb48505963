"""What may be fused and laid out, told by kinds and shapes; the page's example."""

import contextlib
import io
import re
from pathlib import Path

from regal.devices.presets import system_named
from regal.fusion.analytic import LayoutModel, fusion_problem
from regal.fusion.classify import classes_of
from regal.fusion.types import FuseClass, LayoutRule
from regal.graph.types import Graph, Op, Role, Tensor

PAGE = Path(__file__).parents[2] / "docs" / "fusion.md"
IMAGE = (1, 8, 4, 4)


class Net:
    """Collects ops of PyTorch's names."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.ops: list[Op] = []

    def tensor(
        self, shape: tuple[int, ...], role: Role = Role.ACTIVATION, storage: int = -1
    ) -> int:
        size = 4
        for axis in shape:
            size *= axis
        index = len(self.tensors)
        self.tensors.append(
            Tensor(
                name=f"t{index}",
                shape=shape,
                dtype="float32",
                bytes=size,
                role=role,
                storage=index if storage < 0 else storage,
            )
        )
        return index

    def op(self, kind: str, inputs: list[int], outputs: list[int]) -> int:
        name = f"{len(self.ops)}:{kind}"
        self.ops.append(Op(name=name, kind=kind, inputs=tuple(inputs), outputs=tuple(outputs)))
        return outputs[0]

    def graph(self, inputs: list[int], outputs: list[int]) -> Graph:
        return Graph(
            name="net",
            framework="torch",
            ops=tuple(self.ops),
            tensors=tuple(self.tensors),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
        )


def squeeze_and_excite() -> Graph:
    """Return conv, relu, a mean over the pixels, a product with it, and a softmax of rows."""
    net = Net()
    x = net.tensor(IMAGE, Role.INPUT)
    weight = net.tensor((8, 8, 3, 3), Role.PARAMETER)
    a = net.op("aten.convolution.default", [x, weight], [net.tensor(IMAGE)])
    r = net.op("aten.relu.default", [a], [net.tensor(IMAGE)])
    m = net.op("aten.mean.dim", [r], [net.tensor((1, 8, 1, 1))])
    y = net.op("aten.mul.Tensor", [r, m], [net.tensor(IMAGE)])
    flat = net.op("aten.view.default", [y], [net.tensor((8, 16), storage=y)])
    s = net.op("aten._softmax.default", [flat], [net.tensor((8, 16), Role.OUTPUT)])
    return net.graph([x], [s])


def test_classes_and_pairs_follow_from_kinds_and_elements() -> None:
    classes = classes_of(squeeze_and_excite())
    assert classes.fuse_classes == (
        FuseClass.ANCHOR,
        FuseClass.POINTWISE,
        FuseClass.REDUCTION,
        FuseClass.POINTWISE,
        FuseClass.VIEW,
        FuseClass.REDUCTION,
    )
    # The mean reads what relu writes; the product has the elements that the mean read.
    assert classes.pairs == {(0, 1), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5)}
    assert classes.view_of[6] == 5


def test_only_images_have_two_layouts_and_only_convolutions_mind() -> None:
    classes = classes_of(squeeze_and_excite())
    assert classes.two_layouts == {0, 2, 3, 5}  # not the means, not the rows, not the weights
    assert classes.layout_rules == (
        LayoutRule.SENSITIVE,
        LayoutRule.AGNOSTIC,
        LayoutRule.FIXED,
        LayoutRule.AGNOSTIC,
        LayoutRule.FIXED,
        LayoutRule.AGNOSTIC,
    )


def test_contiguous_convolutions_pay_for_reordering_what_they_touch() -> None:
    system = system_named("cpu")
    graph = squeeze_and_excite()
    free = fusion_problem(graph, system, layouts=LayoutModel(reorders=0.0, worst=1.0))
    paid = fusion_problem(graph, system, layouts=LayoutModel(reorders=1.0, worst=2.0))
    contiguous, last = paid.alone_ns[0][0]
    assert free.alone_ns[0][0][0] == free.alone_ns[0][0][1] < contiguous
    # 8 of 16 lanes work: twice the arithmetic with the channels last.
    assert last == free.alone_ns[0][0][1] + free.work_ns[0][0][1]


def test_state_and_bodies_keep_an_op_alone() -> None:
    net = Net()
    x = net.tensor((4,), Role.INPUT)
    moment = net.tensor((4,), Role.STATE)
    net.op("aten.add_.Tensor", [moment, x], [net.tensor((4,), Role.STATE, storage=moment)])
    y = net.op("aten.relu.default", [x], [net.tensor((4,), Role.OUTPUT)])
    classes = classes_of(net.graph([x], [y]))
    assert classes.fuse_classes == (FuseClass.OPAQUE, FuseClass.POINTWISE)


def test_the_example_of_the_page_prints_what_the_page_says() -> None:
    text = PAGE.read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(PAGE), "exec"), {})
    assert printed.getvalue().splitlines()[:4] == shown.splitlines()
