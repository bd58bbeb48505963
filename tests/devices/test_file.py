"""The JSON form of a system is read strictly."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from regal.devices.file import system_from_dict, system_to_dict
from regal.devices.presets import system_named
from regal.errors import UsageError


def changed(change: Callable[[dict[str, Any]], object]) -> str:
    document = json.loads(json.dumps(system_to_dict(system_named("gpu-pcie-2"))))
    change(document)
    with pytest.raises(UsageError) as caught:
        system_from_dict(document, "'plan.json': devices")
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("links"), "'plan.json': devices: 'links' is missing"),
        (lambda d: d["links"].pop(), "system 'gpu-pcie-2' has no link from 'gpu1' to 'gpu0'"),
        (lambda d: d["devices"][0].update(x=1), "'plan.json': devices: devices 0: unknown key 'x'"),
        (lambda d: d["devices"][0].update(launch_ns=-1), "devices 0: 'launch_ns' is -1, expected"),
        (lambda d: d["devices"][0].update(launch_ns=1.5), "devices 0: 'launch_ns' is 1.5"),
        (lambda d: d["devices"][1].update(name="gpu0"), "links 0: there is no device 'gpu1'"),
        (lambda d: d["devices"][0].update(bytes_per_s=float("nan")), "'nan' is not a rate above 0"),
        (lambda d: d["devices"][0].update(memory_bytes=0), "'memory_bytes' is 0, expected a whole"),
        (lambda d: d["links"][0].update(to="gpu7"), "links 0: there is no device 'gpu7'"),
        (lambda d: d["links"].append(d["links"][0]), "links 2: a second link from 'gpu0' to"),
        (lambda d: d.update(contention="no"), "'contention' is 'no', expected true or false"),
        (lambda d: d.update(devices=[]), "links 0: there is no device 'gpu0'"),
    ],
)
def test_whatever_is_wrong_is_named(
    change: Callable[[dict[str, Any]], object], message: str
) -> None:
    assert message in changed(change)
