"""Devices from TOML: what is right is read, what is wrong is one line that says where."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regal.devices.toml import read_system, system_from_toml, system_to_toml
from regal.devices.types import Device, Link, Pool, System
from regal.errors import UsageError

GOOD = """
name = "board"
contention = false
capacity_counts_live = false

[[device]]
name = "cpu0"
kind = "cpu"
flops = { float32 = "48GFLOPS", other = "24GFLOPS" }
bandwidth = "12.8GB/s"
launch = "3us"

[[device]]
name = "npu"
count = 2
kind = "npu"
memory = "8MB"
flops = { int8 = "4TOPS" }
bandwidth = "8GB/s"
launch = "1us"
kinds = ["conv", "view"]
pools = [{ name = "sram", memory = "1MB", bandwidth = "20GB/s" }, { name = "dram", memory = "7MB" }]

[link]
latency = "100us"
bandwidth = "500MB/s"

[[links]]
from = "npu0"
to = "npu1"
both = true
latency = "10us"
bandwidth = "1GB/s"
"""
CPU = """[[device]]
name = "{name}"
kind = "cpu"
flops = {{ other = "1GFLOPS" }}
bandwidth = "1GB/s"
launch = "1us"
"""


def test_a_whole_system_is_read_as_written() -> None:
    slow, fast = (
        Link(latency_ns=100_000, bytes_per_s=500e6),
        Link(latency_ns=10_000, bytes_per_s=1e9),
    )
    npu = Device(
        name="npu0",
        kind="npu",
        memory_bytes=8 << 20,
        flops_per_s={"int8": 4e12},
        bytes_per_s=8e9,
        launch_ns=1000,
        kinds=("conv", "view"),
        pools=(
            Pool(name="sram", bytes=1 << 20, bytes_per_s=20e9),
            Pool(name="dram", bytes=7 << 20),
        ),
    )
    system = system_from_toml(GOOD, "board.toml")
    assert (system.name, system.has_contention, system.capacity_counts_live) == (
        "board",
        False,
        False,
    )
    assert system.devices[0] == Device(
        name="cpu0",
        kind="cpu",
        flops_per_s={"float32": 48e9, "": 24e9},
        bytes_per_s=12.8e9,
        launch_ns=3000,
    )
    assert system.devices[1] == npu
    assert system.devices[2].name == "npu1"
    assert {pair: system.links[pair] for pair in sorted(system.links)} == {
        (0, 1): slow, (0, 2): slow, (1, 0): slow, (1, 2): fast, (2, 0): slow, (2, 1): fast,
    }  # fmt: skip


def test_copies_are_of_the_first_device_on_the_default_link() -> None:
    system = system_from_toml(GOOD, "board.toml", copies=3)
    assert [device.name for device in system.devices] == ["cpu0", "cpu1", "cpu2"]
    assert {link.latency_ns for link in system.links.values()} == {100_000}
    assert system.name == "board:3"


def test_the_memory_of_a_device_is_that_of_its_pools_unless_it_says_otherwise() -> None:
    pools = 'pools = [{ name = "a", memory = "1KB" }, { name = "b", memory = "2KB" }]\n'
    text = CPU.format(name="m") + pools
    assert system_from_toml(text, "x").devices[0].memory_bytes == 3 << 10
    unlimited = system_from_toml(text + 'memory = "unlimited"\n', "x")
    assert unlimited.devices[0].memory_bytes is None


def bad(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        system_from_toml(text, "x.toml")
    message = str(caught.value)
    assert message.startswith("devices file 'x.toml'")
    return message.removeprefix("devices file 'x.toml'").removeprefix(": ")


CPU0 = "device 0 'cpu0': "
NPU = "device 1 'npu': "
COUNTS = ", expected a whole number from 1 to 256"
WRONG = [
    ('launch = "3us"', 'lunch = "3us"', f"{CPU0}'launch' is missing"),
    ('launch = "3us"', 'launch = "3us"\nspeed = 1', f"{CPU0}unknown key 'speed'; known keys: "
     "bandwidth, count, flops, kind, kinds, launch, memory, name, pools"),
    ('launch = "3us"', "launch = 3", f"{CPU0}'launch' is 3, expected a text with a unit"),
    ('launch = "3us"', 'launch = "-3us"', f"{CPU0}'launch': '-3us' is not a time; write for"),
    ('bandwidth = "12.8GB/s"', 'bandwidth = "0GB/s"', f"{CPU0}'bandwidth': '0GB/s' is not a rate"),
    ('memory = "8MB"', 'memory = "0"', f"{NPU}'memory': '0' is not a memory size; write for"),
    ("count = 2", "count = true", f"{NPU}'count' is True{COUNTS}"),
    ("count = 2", "count = 400", f"{NPU}'count' is 400{COUNTS}"),
    ('["conv", "view"]', '["veiw"]', f"{NPU}'kinds' lists 'veiw'; known kinds: conv, matmul,"),
    ('["conv", "view"]', '["conv", 1]', f"{NPU}'kinds' is ['conv', 1], expected a list of texts"),
    ('name = "npu"\ncount = 2', 'name = "cpu0"', "two devices are called 'cpu0'; rename one"),
    ('kind = "cpu"', 'kind = ""', f"{CPU0}'kind' is '', expected a text"),
    ("contention = false", "contention = 0", "'contention' is 0, expected true or false"),
    ('to = "npu1"', 'to = "n"', "links 0: 'to' is 'n'; the devices are cpu0, npu0, npu1"),
    ('to = "npu1"', 'to = "npu0"', "links 0: the link from 'npu0' to 'npu0' leads to itself"),
    ("[link]", "[lnik]", "unknown key 'lnik'; known keys: capacity_counts_live, contention, "),
    ("[[device]]", "[[gadget]]", "no device; add a [[device]]"),
    ('{ int8 = "4TOPS" }', "{}", f"{NPU}flops: no speed; write for example float32 ="),
    ('{ int8 = "4TOPS" }', "4", f"{NPU}flops is 4, expected a table"),
    ("[link]", "[link", " is not TOML: Expected ']' at the end of a table declaration"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_whatever_is_wrong_is_one_line_with_table_and_key(old: str, new: str, message: str) -> None:
    assert old in GOOD
    assert bad(GOOD.replace(old, new)).startswith(message)


def test_a_link_that_is_given_twice_is_refused() -> None:
    again = '[[links]]\nfrom = "npu1"\nto = "npu0"\nlatency = "1us"\nbandwidth = "1GB/s"\n'
    assert bad(GOOD + again) == "links 1: the link from 'npu1' to 'npu0' is given twice"


def test_a_missing_link_names_both_devices_and_the_way_out() -> None:
    two = CPU.format(name="a") + CPU.format(name="b")
    only = '[[links]]\nfrom = "a"\nto = "b"\nlatency = "1us"\nbandwidth = "1GB/s"\n'
    assert bad(two + only) == (
        "no link from 'b' to 'a'; add [link] for all pairs, or [[links]] with 'from' and 'to'"
    )
    assert system_from_toml(two + only + "both = true\n", "x").links[1, 0].latency_ns == 1000


def test_one_device_needs_no_link() -> None:
    assert system_from_toml(CPU.format(name="a"), "x").links == {}


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        read_system(path)
    with pytest.raises(UsageError, match=r"devices file '.*none.toml' does not exist"):
        read_system(tmp_path / "none.toml")


NAMES = st.text('ab"\\é😀 ', min_size=1, max_size=5).filter(lambda name: bool(name.strip()))
RATES = st.sampled_from([1.0, 5e8, 12.8e9, 1 / 3, 2.0**40])
POOLS = st.builds(Pool, name=NAMES, bytes=st.integers(1, 1 << 40), bytes_per_s=RATES | st.just(0.0))


@st.composite
def systems(draw: st.DrawFn) -> System:
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    devices = tuple(
        Device(
            name=name,
            kind=draw(st.sampled_from(["cpu", "gpu"])),
            flops_per_s=draw(st.dictionaries(st.sampled_from(["", "int8"]), RATES, min_size=1)),
            bytes_per_s=draw(RATES),
            launch_ns=draw(st.integers(0, 10**6)),
            memory_bytes=draw(st.none() | st.integers(1, 1 << 40)),
            kinds=draw(st.sampled_from([(), ("conv", "view")])),
            pools=tuple(draw(st.lists(POOLS, max_size=2))),
        )
        for name in names
    )
    link = st.builds(Link, latency_ns=st.integers(0, 3), bytes_per_s=RATES)
    pairs = [(a, b) for a in range(len(names)) for b in range(len(names)) if a != b]
    return System(
        name=draw(NAMES),
        devices=devices,
        links={pair: draw(link) for pair in pairs},
        has_contention=draw(st.booleans()),
        capacity_counts_live=draw(st.booleans()),
    )


@given(systems())
def test_a_system_that_is_written_reads_back_equal(system: System) -> None:
    assert system_from_toml(system_to_toml(system), "x") == system
