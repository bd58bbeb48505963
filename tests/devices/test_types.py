"""Systems made from systems."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regal.devices.types import with_memory
from regal.errors import UsageError
from regal.graph.types import LoadedModel
from regal.scheduling import system_for
from tests.graphs import random_graph
from tests.systems import system_of


def test_a_capacity_lowers_the_memory_of_every_device_and_raises_none() -> None:
    system = system_of(3, memory=100)
    devices = (replace(system.devices[0], memory_bytes=0), system.devices[1], system.devices[2])
    free = (*devices[:2], replace(devices[2], memory_bytes=None))
    limited = with_memory(replace(system, devices=free), 50)
    assert [device.memory_bytes for device in limited.devices] == [0, 50, 50]


@pytest.mark.parametrize("count", ["0", "257", "1000000", "9" * 5000])
def test_a_file_that_brings_its_devices_has_no_more_than_256_of_them(count: str) -> None:
    model = LoadedModel(
        framework="graph", entries=(random_graph(1, 3),), source=None, system=system_of(2)
    )
    with pytest.raises(UsageError, match="give a number from 1 to 256"):
        system_for(model, count)
    assert len(system_for(model, "256").devices) == 256
