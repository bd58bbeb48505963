"""Write devices into the nodes of a body, and what an order needs: control edges, helpers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regal.backends.tensorflow.chain import HELPER
from regal.backends.tensorflow.step import INPUTS, VARIABLES, yields_data

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.backends.tensorflow.bodies import Body
    from regal.backends.tensorflow.chain import Chain, Helper

_BOOL = 10  # DT_BOOL
_SLOT_NAMES = {
    "Switch": ("output_false:0", "output_true:0"),
    "Identity": ("output:0",),
    "Merge": ("output:0", "value_index:0"),
}
_COLOCATED = b"loc:@"


def place(body: Body, devices: Sequence[str], done: frozenset[str] = frozenset()) -> int:
    """Write a device into every node of `body`; return how many constants were copied.

    Planned nodes get theirs. Others go to the first planned reader, so that variables and
    inputs lie where they are used. A constant that is read on several devices is copied to
    each, as the plan counts it. What no planned node reads is left to TensorFlow.

    Args:
        body: its messages are changed.
        devices: device -> TensorFlow's name for it.
        done: nodes that have their device already, from another entry.
    """
    readers = _planned_readers(body)
    copies = 0
    for name in list(body.nodes.by_name):
        node = body.nodes.by_name[name]
        if name in body.device_of:
            if name not in done:
                node.device = devices[body.device_of[name]]
            continue
        used_on = readers.get(name, {})
        if used_on and not node.device:
            node.device = devices[next(iter(used_on))]
        if node.op == "Const":
            for device in used_on:
                if devices[device] == node.device:
                    continue
                _copy_constant(body, node, device, used_on[device], devices[device])
                copies += 1
    _drop_colocations(body)
    _hold_switches(body)
    return copies


def write_order(body: Body, chain: Chain, devices: Sequence[str]) -> None:
    """Add the control edges and helper nodes of `chain` to the nodes of `body`.

    Args:
        body: its messages are changed.
        chain: for this body.
        devices: device -> TensorFlow's name for it; "" leaves helpers to TensorFlow.
    """
    kind_of = {helper.name: helper.op for helper in chain.helpers}
    for helper in chain.helpers:
        _add_helper(body, helper, devices[helper.device], kind_of)
    for earlier, later in chain.edges:
        body.nodes.by_name[later].input.append(f"^{earlier}")


def _planned_readers(body: Body) -> dict[str, dict[int, list[str]]]:
    """Return unplanned node -> device -> its planned readers there, by position in the order.

    Readers behind other unplanned nodes count too, but only decide about the device.
    """
    first = {name: unit.first for unit in body.units for name in unit.names}
    found: dict[str, dict[int, list[str]]] = {}
    for reader in sorted(body.device_of, key=lambda name: first.get(name, 0)):
        stack = [s for s in body.nodes.sources(reader) if s not in body.device_of]
        seen: set[str] = set()
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            found.setdefault(name, {}).setdefault(body.device_of[reader], []).append(reader)
            stack += [s for s in body.nodes.sources(name) if s not in body.device_of]
    return found


def _copy_constant(
    body: Body, node: Any, device: int, readers: Sequence[str], device_name: str
) -> None:
    """Give `readers`, which run on one device, a constant of their own."""
    copy = body.protos.add()
    copy.CopyFrom(node)
    copy.name = _fresh_name(body, f"{node.name}/regal_{device}")
    copy.device = device_name
    if "_class" in copy.attr:
        del copy.attr["_class"]
    for reader in readers:
        inputs = body.nodes.by_name[reader].input
        for position, text in enumerate(inputs):
            head, colon, rest = text.partition(":")
            if head == node.name:
                inputs[position] = f"{copy.name}{colon}{rest}"


def _fresh_name(body: Body, stem: str) -> str:
    """Return `stem`, or that with more behind it if another node is called so."""
    taken = {node.name for node in body.protos}
    while stem in taken:
        stem += "_"
    return stem


def _drop_colocations(body: Body) -> None:
    """Remove wishes of placed nodes to lie beside another, but for variables and their users.

    The plan says where nodes lie. A wish to lie beside an input would win over it: what is fed
    lies on the first device.
    """
    for node in body.protos:
        if "_class" not in node.attr or not node.device:
            continue
        wishes = list(node.attr["_class"].list.s)
        kept = [wish for wish in wishes if _is_state(body, wish)]
        del node.attr["_class"].list.s[:]
        node.attr["_class"].list.s.extend(kept)
        if not kept:
            del node.attr["_class"]


def _hold_switches(body: Body) -> None:
    """Let each planned Switch read its data from a node on its own device.

    TensorFlow runs a Switch where its data is made, whatever its device says, and what is fed
    (inputs; results of iterators may be) lies on the first device.
    """
    held: dict[tuple[str, str], str] = {}
    for name in [name for name in body.device_of if body.nodes.op(name) == "Switch"]:
        node = body.nodes.by_name[name]
        text = str(node.input[0])
        source = body.nodes.by_name.get(text.partition(":")[0])
        is_made_here = source is not None and source.device == node.device
        is_given = source is None or source.op in INPUTS or yields_data(source.op)
        if is_made_here and not is_given:
            continue
        if (text, node.device) not in held:
            made = body.protos.add(op="Identity", device=node.device)
            made.name = _fresh_name(body, f"{HELPER}/input_{len(held)}")
            made.input.append(text)
            made.attr["T"].CopyFrom(node.attr["T"])
            held[text, node.device] = made.name
        fresh = held[text, node.device]
        node.input[0] = f"{fresh}:output:0" if body.name else fresh


def _is_state(body: Body, wish: bytes) -> bool:
    name = wish.removeprefix(_COLOCATED).decode(errors="replace")
    return name in body.nodes.by_name and body.nodes.op(name) in VARIABLES


def _add_helper(body: Body, helper: Helper, device: str, kind_of: Mapping[str, str]) -> None:
    node = body.protos.add(name=helper.name, op=helper.op, device=device)
    for name, slot in helper.inputs:
        node.input.append(_input(body, name, slot, kind_of))
    node.input.extend(f"^{name}" for name in helper.waits)
    if helper.op != "NoOp":
        node.attr["T"].type = _BOOL
    if helper.op == "Merge":
        node.attr["N"].i = len(helper.inputs)


def _input(body: Body, name: str, slot: int, kind_of: Mapping[str, str]) -> str:
    """Return how a node refers to result `slot` of the node `name`."""
    if not body.name:
        return name if slot == 0 else f"{name}:{slot}"
    if name in body.nodes.arguments:
        return name
    if name in kind_of:
        return f"{name}:{_SLOT_NAMES[kind_of[name]][slot]}"
    # As another node of the body reads it: names of results are not known here.
    for texts in (node.input for node in body.protos):
        for text in texts:
            if text.partition(":")[0] == name and text.rpartition(":")[2] == str(slot):
                return str(text)
    return f"{name}:output:{slot}"
