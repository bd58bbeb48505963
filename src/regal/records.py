"""Read records that were once written as JSON: what no longer fits is a sentence, not a crash."""

from __future__ import annotations

import json
from dataclasses import fields
from math import isfinite
from reprlib import repr as repr_of
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "str": (str,), "bool": (bool,), "int": (int,), "float": (float, int), "None": (type(None),),
    "Mapping": (dict,), "tuple": (list,),
}  # fmt: skip
NAMES: Final[Mapping[type, str]] = {
    str: "a text", bool: "true or false", int: "a whole number", float: "a number",
    type(None): "null", dict: "a table", list: "a list",
}  # fmt: skip
LARGEST: Final = 2**63 - 1  # of any whole number: the kernel counts in 64 bits


def json_of(text: str) -> object:
    """Return what a JSON text says.

    Raises:
        ValueError: it is none, or is nested too deep to read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def kinds_of(record: type[Any]) -> dict[str, tuple[type, ...]]:
    """Return the JSON types that each field of a dataclass may have, by its annotation.

    Of tables and lists only the outside is known: what is in them is for the reader to judge.
    """
    return {
        field.name: tuple(
            kind for part in str(field.type).split(" | ") for kind in KINDS[part.partition("[")[0]]
        )
        for field in fields(record)
    }


def misfit(row: Mapping[str, object], kinds: Mapping[str, tuple[type, ...]]) -> str:
    """Return which key is too many, missing, or of a wrong type; "": all is as it must be.

    Numbers must be finite and whole ones must fit in 64 bits. Cost: 2 us.
    """
    if row.keys() != kinds.keys():
        return f"wrong keys: {', '.join(sorted(row.keys() ^ kinds.keys()))}"
    for key, wanted in kinds.items():
        if not _fits(row[key], wanted):
            rest = [kind for kind in wanted if kind is not int or float not in wanted]
            names = " or ".join(NAMES[kind] for kind in rest)
            return f"'{key}' is {repr_of(row[key])}, expected {names}"
    return ""


def _fits(value: object, wanted: tuple[type, ...]) -> bool:
    if type(value) not in wanted:
        return False
    if isinstance(value, int):
        return abs(value) <= LARGEST
    return not isinstance(value, float) or isfinite(value)
