"""fx graph modules of ATen operators -> Graph. Needs torch, imported by the caller already."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.fx.node import map_arg

from regal.errors import ModelError
from regal.frontends.torch.build import (
    Builder,
    Call,
    add_call,
    add_value,
    finished_graph,
    has_effect,
    kind_of,
    mutated_arguments,
    named_arguments,
)
from regal.frontends.torch.in_place import is_pointwise, overwritable_arguments
from regal.graph.types import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from torch.fx import GraphModule, Node

    from regal.graph.types import Graph

# Higher-order operators: positions of their bodies among the arguments.
BODIES_OF = {"cond": (1, 2), "while_loop": (0, 1), "scan": (0,), "map_impl": (0,)}


@dataclass(slots=True)
class _Reader:
    """What is known while the nodes of one graph are read in order."""

    module: GraphModule
    roles: Mapping[str, Role]
    is_body: bool
    builder: Builder
    in_place: bool = False
    values: dict[Node, tuple[int, ...]] = field(default_factory=dict)  # node -> its tensors
    # Node -> ops that must run before what it yields besides tensors (sizes, numbers) is known.
    waits: dict[Node, frozenset[int]] = field(default_factory=dict)
    fresh: set[int] = field(default_factory=set)  # storages that calls of this graph made


def graph_of(
    module: GraphModule,
    name: str,
    roles: Mapping[str, Role] | None = None,
    *,
    is_body: bool = False,
    in_place: bool = False,
    number_of: Callable[[Any], int] = int,
) -> Graph:
    """Return the graph of an fx module in the order of its nodes; its ops have their names.

    Args:
        module: every tensor node has `meta["val"]`, a fake tensor or a tuple of them.
        name: of the graph.
        roles: placeholder name -> PARAMETER or STATE; the others are inputs.
        is_body: its placeholders are values of the outer graph.
        in_place: say which ops may write over an argument that dies; what the caller gives is
            never overwritten, and bodies overwrite nothing.
        number_of: the number that stands for a size; by default symbols are refused.

    Raises:
        ModelError: a node without a value, or with sizes that are not numbers.

    Cost: O(nodes + edges).
    """
    reader = _Reader(module, roles or {}, is_body, Builder(number_of=number_of), in_place=in_place)
    outputs: tuple[int, ...] = ()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            _read_placeholder(reader, node)
        elif node.op == "get_attr":
            _read_attribute(reader, node)
        elif node.op == "call_function":
            _read_call(reader, node)
        elif node.op == "output":
            outputs = tuple(_tensors_in(reader, node.args))
        else:
            raise ModelError(f"graph '{name}': node '{node.name}' is a {node.op}; export it first")
    return finished_graph(reader.builder, name, outputs, is_body=is_body)


def bodies_of(module: GraphModule, node: Node) -> Iterator[tuple[int, str, GraphModule]]:
    """Yield position, attribute of `module` and graph module of the bodies of a call."""
    for position in BODIES_OF.get(kind_of(node.target), ()):
        name = str(getattr(node.args[position], "target", ""))
        body = getattr(module, name, None)
        if body is not None:
            yield position, name, body


def _read_placeholder(reader: _Reader, node: Node) -> None:
    role = Role.CAPTURED if reader.is_body else reader.roles.get(node.name, Role.INPUT)
    reader.values[node] = tuple(
        add_value(reader.builder, f"{node.name}.{i}" if i else node.name, value, role)
        for i, value in enumerate(_leaves(node))
    )


def _read_attribute(reader: _Reader, node: Node) -> None:
    """Read a constant of the module; bodies are read by the node that uses them."""
    target: Any = reader.module
    for part in str(node.target).split("."):
        target = getattr(target, part, None)
    value = node.meta.get("val")
    value = target if value is None else value
    if isinstance(target, torch.nn.Module) or not isinstance(value, torch.Tensor):
        reader.values[node] = ()
        return
    role = reader.roles.get(node.name, Role.CONSTANT)
    reader.values[node] = (add_value(reader.builder, node.name, value, role),)


def _read_call(reader: _Reader, node: Node) -> None:
    after = frozenset().union(*(reader.waits.get(n, ()) for n in node.all_input_nodes))
    if after:
        reader.waits[node] = after
    if node.target is operator.getitem and isinstance(node.args[1], int):
        source = node.args[0]
        whole = reader.values[source]
        at = _position_of(source, node.args[1])
        reader.values[node] = (whole[at],) if at is not None and at < len(whole) else ()
        return
    results = tuple(_leaves(node))
    inputs = tuple(_tensors_in(reader, (node.args, node.kwargs)))
    if not results and not inputs and not has_effect(node.target):  # arithmetic on sizes
        reader.values[node] = ()
        return
    arguments = named_arguments(node.target, node.args, node.kwargs)
    written = _tensors_in(reader, list(mutated_arguments(node.target, arguments)))
    call = Call(
        name=node.name,
        target=node.target,
        arguments=arguments,
        inputs=inputs,
        results=results,
        mutated=tuple(written),
        bodies=tuple(_bodies(reader, node)),
        after=tuple(sorted(after)),
        in_place=tuple(_in_place(reader, node, inputs)) if reader.in_place else (),
    )
    outputs = add_call(reader.builder, call)
    reader.values[node] = outputs
    if len(results) < len(_results(node)):
        reader.waits[node] = frozenset({len(reader.builder.ops) - 1})
    elif after:
        del reader.waits[node]
    if _makes_memory(node.target):
        reader.fresh.update(t for t in outputs if reader.builder.tensors[t].storage == t)


def _makes_memory(target: object) -> bool:
    """Return whether what a call returns is new: an ATen operator that is no view."""
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return False
    return not any(result.alias_info is not None for result in target._schema.returns)


def _in_place(reader: _Reader, node: Node, inputs: tuple[int, ...]) -> Iterable[tuple[int, int]]:
    """Yield (input position, 0) for the arguments that a call may overwrite with its result."""
    for position in overwritable_arguments(node):
        (tensor,) = reader.values[node.args[position]]
        # A kernel that looks at more than one element reads what it has overwritten already.
        alone = is_pointwise(node.target) or inputs.count(tensor) == 1
        if alone and reader.builder.tensors[tensor].storage in reader.fresh:
            yield from ((i, 0) for i, other in enumerate(inputs) if other == tensor)


def _bodies(reader: _Reader, node: Node) -> Iterable[Graph]:
    for position, _, body in bodies_of(reader.module, node):
        name = f"{node.name}.{position}"
        yield graph_of(body, name, is_body=True, number_of=reader.builder.number_of)


def _leaves(node: Node) -> list[torch.Tensor]:
    """Return the tensors that a node yields; results that are no tensors are left out."""
    return [item for item in _results(node) if isinstance(item, torch.Tensor)]


def _results(node: Node) -> list[object]:
    """Return all that a node yields; nothing where it is not known."""
    value = node.meta.get("val")
    if value is None:
        return []
    return list(value) if isinstance(value, tuple | list) else [value]


def _position_of(node: Node, index: int) -> int | None:
    """Return where result `index` of a node stands among its tensors."""
    value = node.meta.get("val")
    if not isinstance(value, tuple | list) or not isinstance(value[index], torch.Tensor):
        return None
    return sum(isinstance(item, torch.Tensor) for item in value[: index % len(value)])


def _tensors_in(reader: _Reader, argument: object) -> list[int]:
    found: list[int] = []

    def visit(node: Node) -> Node:
        found.extend(reader.values.get(node, ()))
        return node

    map_arg(argument, visit)
    return found
