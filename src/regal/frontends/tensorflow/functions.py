"""Functions of the file: which nodes run them, and their bodies as graphs.

Source of the rules: tensorflow/core/framework/function.cc of TensorFlow 2.21 (instantiation).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tensorflow.flat import (
    Edge,
    Flat,
    Library,
    Node,
    new_node,
    require_results,
    types_of_arguments,
)
from regal.frontends.tensorflow.schema import new

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from regal.frontends.tensorflow.schema import Proto

CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
# Operators that run functions as part of themselves -> the attributes that name them.
BRANCHES: Mapping[str, tuple[str, ...]] = {
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
    "While": ("cond", "body"),
    "StatelessWhile": ("cond", "body"),
    "Case": ("branches",),
    "StatelessCase": ("branches",),
    "PartitionedCall": ("f",),
    "StatefulPartitionedCall": ("f",),
    "RemoteCall": ("f",),
    "XlaLaunch": ("function",),
    "TPUPartitionedCall": ("f",),
}


def called(node: Node, library: Library) -> list[tuple[str, Mapping[str, Proto]]]:
    """Return (function, its attributes) for each function of the file that `node` runs."""
    if node.kind in library.functions:
        return [(node.kind, node.proto.attr)]
    found = []
    for name in BRANCHES.get(node.kind, ()):
        if name in node.proto.attr:
            value = node.proto.attr[name]
            functions = [value.func, *value.list.func]
            found += [(f.name, f.attr) for f in functions if f.name in library.functions]
    return found


def body_of(name: str, attributes: Mapping[str, Proto], library: Library) -> Flat:
    """Return the graph of the function `name`, called with `attributes`.

    Its first nodes are its arguments, of the kind "_Arg".

    Raises:
        ModelError: the function is broken.
    """
    function = library.functions[name]
    values = {
        a.name: a.default_value for a in function.signature.attr if a.HasField("default_value")
    }
    values |= dict(attributes)
    call = new("NodeDef")
    call.name, call.op = name, name
    for key, value in values.items():
        call.attr[key].CopyFrom(value)
    flat = Flat(name=name, nodes=[])
    where: dict[str, list[Edge]] = {}
    for argument in function.signature.input_arg:
        where[argument.name] = _add_arguments(flat, argument, call, library)
    index: dict[str, int] = {}
    for definition in function.node_def:
        if definition.name in index or definition.name in where:
            raise ModelError(f"function '{name}' has two nodes '{definition.name}'")
        index[definition.name] = len(flat.arguments) + len(index)
    for definition in function.node_def:
        proto = _substituted(definition, call)
        where |= _results_of(index[definition.name], proto, library)
        flat.nodes.append(Node(proto.name, proto.op, proto, [], [], (), (), (name, proto.name)))
    for node in flat.nodes[len(flat.arguments) :]:
        inputs, controls = [], []
        for text in node.proto.input:
            if text.startswith("^"):
                controls.append(_control(text[1:], index, where, name))
            else:
                inputs += _find(text, where, f"node '{node.name}' of function '{name}'")
        typed = new_node(node.proto, inputs, controls, library, node.home)
        flat.nodes[index[node.name]] = typed
    require_results(flat)
    for argument in function.signature.output_arg:
        if argument.name not in function.ret:
            raise ModelError(f"function '{name}' does not return its result '{argument.name}'")
        flat.returns += _find(function.ret[argument.name], where, f"function '{name}'")
    flat.control_returns = [
        _control(node, index, where, name) for node in function.control_ret.values()
    ]
    return flat


def _add_arguments(flat: Flat, argument: Proto, call: Proto, library: Library) -> list[Edge]:
    types = types_of_arguments(call, [argument], library)
    edges = []
    is_list = bool(argument.number_attr or argument.type_list_attr)
    for position, dtype in enumerate(types):
        name = f"{argument.name}_{position}" if is_list else argument.name
        proto = new("NodeDef")
        proto.name, proto.op = name, "_Arg"
        proto.attr["T"].type = dtype
        proto.attr["index"].i = len(flat.arguments)
        edges.append((len(flat.nodes), 0))
        flat.arguments.append(len(flat.nodes))
        flat.nodes.append(Node(name, "_Arg", proto, [], [], (dtype,), (), (flat.name, name)))
    return edges


def _results_of(position: int, proto: Proto, library: Library) -> dict[str, list[Edge]]:
    """Return "node:result" -> its edges, for one node of a body."""
    found: dict[str, list[Edge]] = {}
    if proto.op in library.functions:
        arguments = library.functions[proto.op].signature.output_arg
    elif proto.op in library.ops.defs:
        arguments = library.ops.defs[proto.op].output_arg
    else:
        raise ModelError(
            f"node '{proto.name}' of a function: TensorFlow does not know its operator"
            f" '{proto.op}', so that the names of its results are not known"
        )
    first = 0
    for argument in arguments:
        count = len(types_of_arguments(proto, [argument], library))
        edges = [(position, first + k) for k in range(count)]
        found[f"{proto.name}:{argument.name}"] = edges
        first += count
    return found


def _find(text: str, where: Mapping[str, list[Edge]], who: str) -> list[Edge]:
    """Return the edges behind "argument", "argument:0", "node:result" or "node:result:0"."""
    if text in where:
        return where[text]
    name, _, number = text.rpartition(":")
    if name in where and number.isascii() and number.isdecimal() and len(number) < 10:
        edges = where[name]
        if int(number) < len(edges):
            return [edges[int(number)]]
    raise ModelError(f"{who} reads '{text}', which the function does not have")


def _control(
    name: str, index: Mapping[str, int], where: Mapping[str, list[Edge]], function: str
) -> int:
    if name in index:
        return index[name]
    if where.get(name):
        return where[name][0][0]
    raise ModelError(f"function '{function}' waits for '{name}', which it does not have")


def _substituted(definition: Proto, call: Proto) -> Proto:
    """Return a node of a body with the attributes of the call in place of their names."""
    if not any(v.WhichOneof("value") in ("placeholder", "func") for v in definition.attr.values()):
        return definition
    proto = new("NodeDef")
    proto.CopyFrom(definition)
    _substitute(proto.attr, call, definition.name)
    return proto


def _substitute(attributes: Mapping[str, Proto], call: Proto, node: str) -> None:
    for key, value in attributes.items():
        what = value.WhichOneof("value")
        if what == "placeholder":
            if value.placeholder not in call.attr:
                raise ModelError(
                    f"node '{node}' of function '{call.op}' needs the attribute"
                    f" '{value.placeholder}' for '{key}', which the call does not give"
                )
            value.CopyFrom(call.attr[value.placeholder])
        elif what == "func":
            _substitute(value.func.attr, call, node)


def call_sites(flat: Flat, library: Library) -> Counter[str]:
    """Return function -> places that call it, in `flat` and in all functions that it reaches."""
    sites: Counter[str] = Counter()
    stack = [name for node in flat.nodes for name, _ in called(node, library)]
    sites.update(stack)
    seen: set[str] = set()
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        inner = [f for proto in library.functions[name].node_def for f in _names(proto, library)]
        sites.update(inner)
        stack += inner
    return sites


def _names(proto: Proto, library: Library) -> Iterator[str]:
    bare = Node(proto.name, proto.op, proto, [], [], (), (), ("", ""))
    return (name for name, _ in called(bare, library))
