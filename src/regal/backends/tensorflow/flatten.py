"""Put the bodies of functions in place of their calls in other functions.

A control edge cannot lead from one function into another, so an order that goes back and forth
between functions can only be written once they are one. TensorFlow does the same before it runs
them. Calls in the main graph stay: signatures and programs name the functions that they call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.backends.tensorflow.bodies import MAIN, called_function
from regal.backends.tensorflow.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from regal.backends.tensorflow.bodies import Home

_COLOCATED = b"loc:@"


def flatten(graph: Any, bodies: Collection[str]) -> dict[Home, Home]:
    """Inline functions into functions; return where the nodes went: old home -> new home.

    What the file says about the functions that were inlined stays in its library.

    Args:
        graph: a GraphDef message, which is changed.
        bodies: functions that are called at one place each; only these are touched.
    """
    functions = {f.signature.name: f for f in graph.library.function}
    moved: dict[Home, Home] = {}
    for name in bodies:
        if name == MAIN:
            continue
        while (found := _first_call(functions, name, bodies)) is not None:
            call, callee = found
            _inline(functions[name], call, functions[callee], moved)
    return {home: _last(moved, home) for home in moved}


def _first_call(
    functions: Mapping[str, Any], name: str, bodies: Collection[str]
) -> tuple[Any, str] | None:
    """Return the first node of a function that calls another of `bodies`, and which one."""
    for node in functions[name].node_def:
        callee = called_function(node, functions)
        if callee in bodies and callee != name and _is_simple(node, functions[callee]):
            return _copied(node), callee
    return None


def _is_simple(call: Any, callee: Any) -> bool:
    """Return whether each argument and result of a function is one tensor, told by the file."""
    signature = callee.signature
    arguments = [*signature.input_arg, *signature.output_arg]
    given = [text for text in call.input if not text.startswith("^")]
    return (
        len(given) == len(signature.input_arg)
        and not any(a.number_attr or a.type_list_attr for a in arguments)
        and not any(
            value.WhichOneof("value") == "placeholder"
            for node in callee.node_def
            for value in node.attr.values()
        )
    )


def _inline(body: Any, call: Any, callee: Any, moved: dict[Home, Home]) -> None:
    """Replace `call`, a node of `body`, by the nodes of `callee`."""
    own, name = str(body.signature.name), str(callee.signature.name)
    taken = {node.name for node in body.node_def} | {a.name for a in body.signature.input_arg}
    fresh = {node.name: _fresh(f"{call.name}/{node.name}", taken) for node in callee.node_def}
    given = [text for text in call.input if not text.startswith("^")]
    waits = [text for text in call.input if text.startswith("^")]
    argument = {a.name: given[i] for i, a in enumerate(callee.signature.input_arg)}

    def renamed(text: str) -> str:
        """Return what a node of the callee reads, as nodes of the body call it."""
        is_control = text.startswith("^")
        head, colon, rest = text.removeprefix("^").partition(":")
        if head in argument:
            outer = argument[head]
            return f"^{outer.partition(':')[0]}" if is_control else outer
        return f"{'^' if is_control else ''}{fresh[head]}{colon}{rest}"

    nodes = []
    for node in callee.node_def:
        copy = type(node)()
        copy.CopyFrom(node)
        copy.name = fresh[node.name]
        copy.input[:] = _inputs(node, renamed, waits if _begins(node, argument) else [])
        _rename_colocation(copy, fresh)
        nodes.append(copy)
        moved[name, node.name] = own, copy.name
    results = {a.name: renamed(callee.ret[a.name]) for a in callee.signature.output_arg}
    ends = [f"^{fresh[end]}" for end in _ends(callee)] or [
        *waits,
        *(f"^{text.partition(':')[0]}" for text in given),
    ]
    position = [node.name for node in body.node_def].index(call.name)
    call_name = str(call.name)
    rest = [node for node in body.node_def if node.name != call_name]
    for node in rest:
        node.input[:] = _replaced(list(node.input), call_name, results, ends)
    for key, text in body.ret.items():
        body.ret[key] = _result_of(str(text), call_name, results)
    _replace_control_returns(body, call_name, callee, fresh)
    before = [_copied(node) for node in rest[:position]]
    behind = [_copied(node) for node in rest[position:]]
    del body.node_def[:]
    body.node_def.extend([*before, *nodes, *behind])


def _begins(node: Any, argument: Mapping[str, str]) -> bool:
    """Return whether a node waits for nothing but arguments: it begins when the call may."""
    heads = [text.removeprefix("^").partition(":")[0] for text in node.input]
    return all(head in argument for head in heads)


def _inputs(node: Any, renamed: Callable[[str], str], waits: list[str]) -> list[str]:
    """Return the inputs of a copy: data as often as before, each control input once."""
    texts = [renamed(text) for text in node.input]
    data = [text for text in texts if not text.startswith("^")]
    controls = [text for text in texts if text.startswith("^")]
    return [*data, *dict.fromkeys([*controls, *waits])]


def _ends(callee: Any) -> list[str]:
    """Return the nodes after which all of a function is done."""
    readers = Nodes(callee.node_def).readers
    return [name for name, row in readers.items() if not row]


def _replaced(
    texts: list[str], call: str, results: Mapping[str, str], ends: list[str]
) -> list[str]:
    data = [_result_of(text, call, results) for text in texts if not text.startswith("^")]
    controls: list[str] = []
    for text in texts:
        if text.startswith("^"):
            controls += ends if text == f"^{call}" else [text]
    return [*data, *dict.fromkeys(controls)]


def _result_of(text: str, call: str, results: Mapping[str, str]) -> str:
    """Return where a value comes from, if a result of the call is meant."""
    head, _, rest = text.partition(":")
    if head != call:
        return text
    key, _, number = rest.partition(":")
    if key in results:  # the function is called by its own name
        return results[key]
    return list(results.values())[int(number) if number.isdecimal() else 0]


def _replace_control_returns(body: Any, call: str, callee: Any, fresh: Mapping[str, str]) -> None:
    """Let what the callee must have done be what the body must have done."""
    for key in [key for key, name in body.control_ret.items() if name == call]:
        del body.control_ret[key]
        for inner, name in callee.control_ret.items():
            label = f"{key}/{inner}"
            body.control_ret[label] = fresh[name]
            body.signature.control_output.append(label)
        if key in body.signature.control_output:
            body.signature.control_output.remove(key)


def _rename_colocation(node: Any, fresh: Mapping[str, str]) -> None:
    if "_class" not in node.attr:
        return
    wishes = node.attr["_class"].list.s
    for position, wish in enumerate(wishes):
        name = wish.removeprefix(_COLOCATED).decode(errors="replace")
        if wish.startswith(_COLOCATED) and name in fresh:
            wishes[position] = _COLOCATED + fresh[name].encode()


def _fresh(stem: str, taken: set[str]) -> str:
    while stem in taken:
        stem += "_"
    taken.add(stem)
    return stem


def _copied(node: Any) -> Any:
    copy = type(node)()
    copy.CopyFrom(node)
    return copy


def _last(moved: Mapping[Home, Home], home: Home) -> Home:
    """Return where a node is in the end: what it was inlined into may have been inlined."""
    while home in moved:
        home = moved[home]
    return home
