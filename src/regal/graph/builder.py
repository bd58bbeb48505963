"""Build small graphs by hand: for tests, examples and readers of task graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from regal.graph.check import require_valid_graph
from regal.graph.types import Graph, Op, Role, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


class GraphBuilder:
    """Collects tensors and ops; `build` returns the checked graph.

    ```python
    g = GraphBuilder("diamond")
    x = g.input("x", 8)
    a, b = g.op("A", [x], [8]), g.op("B", [x], [8])
    y = g.op("Add", [*a, *b], [8])
    graph = g.build(outputs=y)
    ```
    """

    def __init__(self, name: str = "graph", framework: str = "graph") -> None:
        self._name = name
        self._framework = framework
        self._tensors: list[Tensor] = []
        self._ops: list[Op] = []
        self._inputs: list[int] = []

    def tensor(
        self, name: str, size: int, role: Role = Role.ACTIVATION, storage: int | None = None
    ) -> int:
        """Return the index of a new tensor of `size` bytes; `storage` shares another's memory."""
        index = len(self._tensors)
        self._tensors.append(
            Tensor(
                name=name,
                shape=(size,),
                dtype="uint8",
                bytes=size,
                role=role,
                storage=index if storage is None else storage,
            )
        )
        return index

    def input(self, name: str, size: int) -> int:
        """Return the index of a new graph input of `size` bytes."""
        index = self.tensor(name, size, Role.INPUT)
        self._inputs.append(index)
        return index

    def size_of(self, tensor: int) -> int:
        """Return the bytes of a tensor made earlier."""
        return self._tensors[tensor].bytes

    def parameter(self, name: str, size: int) -> int:
        """Return the index of a new parameter of `size` bytes, which the peak leaves out."""
        return self.tensor(name, size, Role.PARAMETER)

    def op(
        self,
        kind: str,
        inputs: Sequence[int],
        output_bytes: Sequence[int],
        *,
        name: str = "",
        workspace: int = 0,
        after: Sequence[int] = (),
        in_place: Sequence[tuple[int, int]] = (),
        parts: Sequence[tuple[int, int]] = (),
        subgraphs: Sequence[Graph] = (),
        captures: int = 0,
    ) -> list[int]:
        """Return the output tensors of a new op.

        `after` are ops that must run earlier; `parts` are (input position, offset) pairs: the
        input may lie inside the first output, at that offset.
        """
        name = name or f"{len(self._ops)}:{kind}"
        outputs = [self.tensor(f"{name}.{i}", size) for i, size in enumerate(output_bytes)]
        self._ops.append(
            Op(
                name=name,
                kind=kind,
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                control_inputs=tuple(after),
                workspace_bytes=workspace,
                in_place=tuple(in_place),
                sub_buffers=tuple((inputs[i], outputs[0], at) for i, at in parts),
                subgraphs=tuple(subgraphs),
                captures=captures,
            )
        )
        return outputs

    def view(self, kind: str, source: int) -> int:
        """Return the output of a new op that is another view of the bytes of `source`."""
        base = self._tensors[source]
        (out,) = self.op(kind, [source], [base.bytes])
        self._tensors[out] = replace(self._tensors[out], storage=base.storage)
        return out

    def build(
        self,
        outputs: Sequence[int],
        *,
        alignment: int = 1,
        in_place_by_runtime: bool = False,
    ) -> Graph:
        """Return the graph.

        Raises:
            ModelError: the parts do not make a valid graph.
        """
        tensors = list(self._tensors)
        for index in outputs:
            if tensors[index].role is Role.ACTIVATION:
                tensors[index] = replace(tensors[index], role=Role.OUTPUT)
        return require_valid_graph(
            Graph(
                name=self._name,
                framework=self._framework,
                ops=tuple(self._ops),
                tensors=tuple(tensors),
                inputs=tuple(self._inputs),
                outputs=tuple(outputs),
                alignment=alignment,
                in_place_by_runtime=in_place_by_runtime,
            )
        )
