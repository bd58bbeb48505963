"""What TensorFlow's operator definitions say about one node: its attributes and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.tensorflow.schema import DTYPES, REF

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from regal.frontends.tensorflow.schema import Proto

FLOAT, INT32, STRING, INT64, RESOURCE, VARIANT = 1, 3, 7, 9, 20, 21
HANDLES = frozenset({RESOURCE, VARIANT})
MOST_RESULTS = 1 << 16  # of one node; real ones have at most some thousand
# In memory. A string is a tstring of 24 bytes, wherever its characters lie; handles are small
# and what they stand for is counted elsewhere.
_BITS = {
    "float": 32, "double": 64, "int32": 32, "uint8": 8, "int16": 16, "int8": 8, "string": 192,
    "complex64": 64, "int64": 64, "bool": 8, "qint8": 8, "quint8": 8, "qint32": 32,
    "bfloat16": 16, "qint16": 16, "quint16": 16, "uint16": 16, "complex128": 128, "half": 16,
    "resource": 0, "variant": 0, "uint32": 32, "uint64": 64, "int4": 8, "uint4": 8, "int2": 8,
    "uint2": 8,
}  # fmt: skip
# The names that the rest of the project uses.
_NAMES = {"float": "float32", "double": "float64", "half": "float16"}


@dataclass(frozen=True, slots=True)
class OpTable:
    """The operators that TensorFlow knows, by name."""

    defs: Mapping[str, Proto]

    def is_stateful(self, kind: str) -> bool:
        """Return whether TensorFlow says that an operator has state or side effects."""
        return kind in self.defs and bool(self.defs[kind].is_stateful)

    def results(self, node: Proto) -> tuple[int, ...]:
        """Return the data type of each result of `node`; REF more for a reference.

        Raises:
            ModelError: an attribute that decides about it is missing or senseless.
        """
        return self._types(node, self.defs[node.op].output_arg)

    def operands(self, node: Proto) -> tuple[int, ...]:
        """Return the data type of each data input of `node`; REF more for a reference.

        Raises:
            ModelError: an attribute that decides about it is missing or senseless.
        """
        return self._types(node, self.defs[node.op].input_arg)

    def require_attributes(self, node: Proto) -> None:
        """Raise unless `node` has all attributes without a default.

        Raises:
            ModelError: names the node and the attribute.
        """
        for attribute in self.defs[node.op].attr:
            if attribute.HasField("default_value") or attribute.name in node.attr:
                continue
            raise ModelError(
                f"node '{node.name}' ({node.op}) has no attribute '{attribute.name}':"
                " the file is broken"
            )

    def _types(self, node: Proto, arguments: Iterable[Proto]) -> tuple[int, ...]:
        return tuple(t for argument in arguments for t in self.types_of(node, argument))

    def types_of(self, node: Proto, argument: Proto) -> list[int]:
        """Return the data types of one argument, which may be a list, of `node`."""
        if argument.type_list_attr:
            types = list(self._value(node, argument.type_list_attr).list.type)
        else:
            kind = argument.type or self._value(node, argument.type_attr).type
            count = 1
            if argument.number_attr:
                count = self._value(node, argument.number_attr).i
            if not 0 <= count <= MOST_RESULTS:
                raise ModelError(
                    f"node '{node.name}' ({node.op}): attribute '{argument.number_attr}' is"
                    f" {count}; 0 to {MOST_RESULTS} can be"
                )
            types = [kind] * count
        return [t + REF for t in types] if argument.is_ref else types

    def _value(self, node: Proto, name: str) -> Proto:
        if name in node.attr:
            return node.attr[name]
        definition = self.defs.get(node.op)
        for attribute in definition.attr if definition is not None else ():
            if attribute.name == name and attribute.HasField("default_value"):
                return attribute.default_value
        raise ModelError(f"node '{node.name}' ({node.op}) has no attribute '{name}'")


def base_type(dtype: int) -> int:
    """Return a data type without the mark of a reference."""
    return dtype - REF if dtype > REF else dtype


def dtype_name(dtype: int) -> str:
    """Return the project's name of a data type: "float32", "int8", "resource", ..."""
    name = DTYPES.get(base_type(dtype), f"type{dtype}")
    return _NAMES.get(name, name)


def element_bits(dtype: int) -> int:
    """Return the bits of one element in memory; 0 for handles."""
    return _BITS.get(DTYPES.get(base_type(dtype), ""), 8)
