"""Colocation as TensorFlow writes it: "loc:@node" in the attribute _class."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from regal.frontends.tensorflow.schema import Proto

_KEY = "_class"
_PREFIX = b"loc:@"


def colocated_with(node: Proto) -> list[str]:
    """Return the nodes with which the file wants a NodeDef on one device."""
    if _KEY not in node.attr:
        return []
    size = len(_PREFIX)
    return [
        s[size:].decode(errors="replace") for s in node.attr[_KEY].list.s if s.startswith(_PREFIX)
    ]


def set_colocated(node: Proto, names: Iterable[str]) -> None:
    """Replace what a NodeDef says about colocation."""
    if _KEY in node.attr:
        del node.attr[_KEY]
    for name in names:
        node.attr[_KEY].list.s.append(_PREFIX + name.encode())
