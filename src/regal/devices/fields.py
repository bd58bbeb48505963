"""Read untrusted tables strictly: whatever is unknown, missing or of a wrong type is an error.

Messages name the file, the table and the key: "'x.toml': device 0: unknown key 'bandwith'".
"""

from __future__ import annotations

import tomllib
from reprlib import repr as repr_of
from typing import TYPE_CHECKING, Any, TypeVar

from regal.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

S = TypeVar("S")
T = TypeVar("T")


def fields_of_toml(text: str, where: str) -> Fields:
    """Return the table that a TOML text is; `where` names its file in messages.

    Raises:
        UsageError: it is not TOML.
    """
    return Fields(table_of_toml(text, where), where)


def table_of_toml(text: str, where: str) -> dict[str, Any]:
    """Return the plain table that a TOML text is; see `fields_of_toml`."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{where} is not TOML: {error}") from None


class Fields:
    """The keys of one table. Read all that may be there, then call `require_no_more`."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise UsageError(f"{where} is {repr_of(value)}, expected a table")
        self.where = where
        self._values: dict[str, object] = value
        self._known: set[str] = set()

    def __contains__(self, key: str) -> bool:
        self._known.add(key)
        return key in self._values

    def keys(self) -> list[str]:
        """Return all keys that are there."""
        return list(self._values)

    def is_null(self, key: str) -> bool:
        """Return whether JSON's null stands there."""
        return self._value(key) is None

    def text(self, key: str) -> str:
        """Return a printable text that is not empty."""
        value = self._value(key)
        if not isinstance(value, str) or not value.strip() or not value.isprintable():
            raise self._wrong(key, "a text")
        return value

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self._value(key)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def whole(self, key: str, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`, both included."""
        value = self._value(key)
        if type(value) is not int or not low <= value <= high:
            raise self._wrong(key, f"a whole number from {low} to {high}")
        return value

    def wholes(self, key: str, low: int, high: int) -> tuple[int, ...]:
        """Return a list of whole numbers from `low` to `high`, both included."""
        rows = self.items(key)
        found = tuple(row for row in rows if type(row) is int and low <= row <= high)
        if len(found) < len(rows):
            raise self._wrong(key, f"a list of whole numbers from {low} to {high}")
        return found

    def rate(self, key: str, require: Callable[[float, object], float]) -> float:
        """Return a number that `require` lets through."""
        value = self._value(key)
        if type(value) is not int and type(value) is not float:
            raise self._wrong(key, "a number")
        return self._parsed(key, value, lambda number: require(float(number), number))

    def quantity(self, key: str, parse: Callable[[str], T]) -> T:
        """Return a quantity with its unit, such as "16GB"."""
        value = self._value(key)
        if not isinstance(value, str):
            raise self._wrong(key, 'a text with a unit, such as "16GB"')
        return self._parsed(key, value, parse)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts that are not empty."""
        rows = self.items(key)
        if not all(isinstance(row, str) and row.strip() and row.isprintable() for row in rows):
            raise self._wrong(key, "a list of texts")
        return tuple(str(row) for row in rows)

    def items(self, key: str) -> list[object]:
        """Return a list of anything."""
        value = self._value(key)
        if not isinstance(value, list):
            raise self._wrong(key, "a list")
        return value

    def table(self, key: str) -> Fields:
        """Return a table."""
        return Fields(self._value(key), f"{self.where}: {key}")

    def tables(self, key: str) -> list[Fields]:
        """Return a list of tables."""
        return [Fields(row, f"{self.where}: {key} {i}") for i, row in enumerate(self.items(key))]

    def require_no_more(self) -> None:
        """Raise if there is a key that nobody asked for.

        Raises:
            UsageError: names the key and lists those that are known.
        """
        unknown = next((key for key in self._values if key not in self._known), None)
        if unknown is not None:
            known = ", ".join(sorted(self._known))
            raise UsageError(f"{self.where}: unknown key {repr_of(unknown)}; known keys: {known}")

    def _value(self, key: str) -> object:
        if key not in self:
            raise UsageError(f"{self.where}: '{key}' is missing")
        return self._values[key]

    def _parsed(self, key: str, value: T, parse: Callable[[T], S]) -> S:
        try:
            return parse(value)
        except UsageError as error:
            raise UsageError(f"{self.where}: '{key}': {error}") from None

    def _wrong(self, key: str, expected: str) -> UsageError:
        return UsageError(
            f"{self.where}: '{key}' is {repr_of(self._values[key])}, expected {expected}"
        )
