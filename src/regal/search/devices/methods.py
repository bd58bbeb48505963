"""All methods for several devices, by name: ours and what we are compared with."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from regal._native import DeviceDecoder
from regal.baselines.devices.cp_sat import CpSat
from regal.baselines.devices.methods import METHODS as BASELINES
from regal.errors import UsageError
from regal.policy.choice import DEFAULT, UsesPolicy, require_policy
from regal.policy.paper import PAPER_SEARCH, PaperMethod
from regal.policy.prior import PriorMethod
from regal.search.devices.brkga import DeviceBrkga, DeviceBrkgaOptions
from regal.search.devices.es import feature_es
from regal.search.devices.local import DeviceLocalSearch
from regal.search.devices.polish import window_polish

if TYPE_CHECKING:
    from collections.abc import Mapping

    from regal.search.devices.types import DeviceMethod

DEFAULT_DEVICE_METHOD = "regal"

DEVICE_METHODS: Mapping[str, DeviceMethod] = MappingProxyType(
    {
        DEFAULT_DEVICE_METHOD: PriorMethod(),
        "regal-paper": PaperMethod(),
        "brkga": DeviceBrkga(PAPER_SEARCH),
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


def device_method_named(name: str, policy: str = DEFAULT) -> DeviceMethod:
    """Return the method of this name, guided by a policy if it uses one.

    Raises:
        UsageError: there is none, or `policy` names none.
    """
    method = DEVICE_METHODS[require_device_method(name)]
    require_policy(policy)
    return method.with_policy(policy) if isinstance(method, UsesPolicy) else method


def keeps_before(name: str) -> bool:
    """Return whether a method may fall back on what happens without it: ours, no baseline."""
    return name == DEFAULT_DEVICE_METHOD
