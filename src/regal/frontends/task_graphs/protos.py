"""Protobuf messages from a short description of the fields that are read.

Fields that a description leaves out are skipped, so that each format needs a few lines instead of
generated code for its whole schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from regal.errors import ModelError

Fields = Mapping[str, tuple[int, str]]  # field -> number, "[repeated ]type"

SCALARS = MappingProxyType(
    {"int64": 3, "uint64": 4, "int32": 5, "bool": 8, "string": 9, "bytes": 12}
)
MESSAGE = 11
OPTIONAL, REPEATED = 1, 3


def message_class(package: str, schema: Mapping[str, Fields], root: str) -> Any:
    """Return the class of the message `root`, one of `schema` (message -> its fields)."""
    return _classes(package, tuple((name, tuple(f.items())) for name, f in schema.items()))[root]


@cache
def _classes(
    package: str, schema: tuple[tuple[str, tuple[tuple[str, tuple[int, str]], ...]], ...]
) -> Mapping[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    # Protobuf builds its classes at run time, so that mypy cannot see them.
    file = descriptor_pb2.FileDescriptorProto(  # type: ignore[attr-defined]
        name=f"{package}.proto", package=package, syntax="proto3"
    )
    for name, fields in schema:
        message = file.message_type.add(name=name)
        for field, (number, kind) in fields:
            base = kind.removeprefix("repeated ")
            described = message.field.add(
                name=field, number=number, label=REPEATED if base != kind else OPTIONAL
            )
            described.type = SCALARS.get(base, MESSAGE)
            if base not in SCALARS:
                described.type_name = f".{package}.{base}"
    pool = descriptor_pool.DescriptorPool()  # our own: names cannot clash with other schemas
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
        for name, _ in schema
    }


def text_message(message: Any, text: str, name: str) -> Any:
    """Return the message that protobuf text spells.

    Raises:
        ModelError: names the line.
    """
    from google.protobuf import text_format

    try:
        return text_format.Parse(text, message(), allow_unknown_field=True)
    except (text_format.ParseError, RecursionError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelError(f"'{name}' is not such a protobuf text: {reason}") from None


def binary_message(message: Any, data: bytes, name: str) -> Any:
    """Return the message that the bytes of a file hold.

    Raises:
        ModelError: they hold none.
    """
    from google.protobuf.message import DecodeError

    try:
        return message.FromString(data)
    except (DecodeError, RecursionError, ValueError) as error:
        raise ModelError(f"'{name}' is not such a protobuf file: {error}") from None
