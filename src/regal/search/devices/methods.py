"""All methods for several devices, by name: ours and what we are compared with."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from regal._native import DeviceDecoder
from regal.baselines.devices.cp_sat import CpSat
from regal.baselines.devices.methods import METHODS as BASELINES
from regal.errors import UsageError
from regal.search.devices.brkga import DeviceBrkga, DeviceBrkgaOptions
from regal.search.devices.es import feature_es
from regal.search.devices.local import DeviceLocalSearch
from regal.search.devices.polish import window_polish
from regal.search.devices.portfolio import regal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.search.devices.types import DeviceMethod

DEFAULT_DEVICE_METHOD = "regal"

# The paper's search: raw keys, populations of 100 that start at random, no heuristic among them.
PAPER = DeviceBrkgaOptions(
    decoder=DeviceDecoder.RAW,
    population=100,
    elites=20,
    mutants=15,
    with_neutral=False,
    relabels_devices=False,
)

DEVICE_METHODS: Mapping[str, DeviceMethod] = MappingProxyType(
    {
        DEFAULT_DEVICE_METHOD: regal,
        "brkga": DeviceBrkga(PAPER),
        "brkga-tuned": DeviceBrkga(
            DeviceBrkgaOptions(), DeviceBrkgaOptions(decoder=DeviceDecoder.INHERIT)
        ),
        "feature-es": feature_es,
        "local-search": DeviceLocalSearch(is_annealing=False),
        "annealing": DeviceLocalSearch(is_annealing=True),
        "window-polish": window_polish,
        **BASELINES,
        "cp-sat": CpSat(),
    }
)


def require_device_method(name: str) -> str:
    """Return `name` if it names a method for several devices.

    Raises:
        UsageError: it does not; the message lists the methods.
    """
    if name not in DEVICE_METHODS:
        raise UsageError(
            f"unknown method '{name}' for several devices; known: {', '.join(DEVICE_METHODS)}"
        )
    return name


def device_method_named(name: str) -> DeviceMethod:
    """Return the method of this name.

    Raises:
        UsageError: there is none.
    """
    return DEVICE_METHODS[require_device_method(name)]


def keeps_before(name: str) -> bool:
    """Return whether a method may fall back on what happens without it: ours, no baseline."""
    return name == DEFAULT_DEVICE_METHOD
