"""All methods for one device, by name: ours and what we are compared with."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from regal.baselines.methods import METHODS as BASELINES
from regal.errors import UsageError
from regal.search.portfolio import exact, regal, windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.search.types import OrderMethod

DEFAULT_METHOD = "regal"

METHODS: Mapping[str, OrderMethod] = MappingProxyType(
    {DEFAULT_METHOD: regal, "exact": exact, "windows": windows, **BASELINES}
)

# Methods that count no evaluations end by the clock alone.
DEFAULT_SECONDS: Mapping[str, float] = MappingProxyType({"cp-sat": 5.0})


def require_method(name: str) -> str:
    """Return `name` if it names a method.

    Raises:
        UsageError: it does not; the message lists the methods.
    """
    if name not in METHODS:
        raise UsageError(f"unknown method '{name}'; known: {', '.join(METHODS)}")
    return name


def method_named(name: str) -> OrderMethod:
    """Return the method of this name.

    Raises:
        UsageError: there is none.
    """
    return METHODS[require_method(name)]
