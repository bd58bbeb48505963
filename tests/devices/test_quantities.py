"""Quantities read as data sheets write them, and written so that they read back exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regal.devices import quantities as q
from regal.errors import UsageError


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("900GB/s", 900e9),
        ("15.75 GB/s", 15.75e9),
        ("1GiB/s", float(1 << 30)),
        ("10Gbit/s", 1.25e9),
        ("400MB/S", 400e6),
        ("7B/s", 7.0),
        ("2e3KB/s", 2e6),
    ],
)
def test_a_bandwidth_counts_in_powers_of_ten_unless_it_says_otherwise(
    text: str, rate: float
) -> None:
    assert q.parse_byte_rate(text) == rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [("14TFLOPS", 14e12), ("4 TOPS", 4e12), ("960MFLOP/s", 960e6), ("1.5gflops", 1.5e9)],
)
def test_a_computing_speed_is_in_flops_or_ops(text: str, rate: float) -> None:
    assert q.parse_flop_rate(text) == rate


@pytest.mark.parametrize(
    ("text", "ns"),
    [("5us", 5000), ("250ns", 250), ("1.5ms", 1_500_000), ("0ns", 0), ("2s", 2 * 10**9)],
)
def test_a_time_is_in_whole_nanoseconds(text: str, ns: int) -> None:
    assert q.parse_time_ns(text) == ns


def test_a_memory_size_counts_in_powers_of_two() -> None:
    assert q.parse_memory("16GB") == 16 << 30


@pytest.mark.parametrize("text", ["", "fast", "900", "900Gbps", "-1GB/s", "0GB/s", "1e30TB/s",
                                  "1e-99GB/s", "nanGB/s", "1 GB/s/s", "٣GB/s"])  # fmt: skip
def test_what_is_no_bandwidth_is_quoted(text: str) -> None:
    with pytest.raises(UsageError, match=f"'{text}'"):
        q.parse_byte_rate(text)


@pytest.mark.parametrize("text", ["5", "5 minutes", "-5us", "1e9s", "us"])
def test_what_is_no_time_is_quoted(text: str) -> None:
    with pytest.raises(UsageError, match=f"'{text}' is not a time; write for example 5us"):
        q.parse_time_ns(text)


@given(st.floats(1e-3, 1e20))
def test_a_rate_that_is_written_reads_back_exactly(rate: float) -> None:
    assert q.parse_byte_rate(q.byte_rate_text(rate)) == rate
    assert q.parse_flop_rate(q.flop_rate_text(rate)) == rate


@given(st.integers(0, q.LARGEST_NS))
def test_a_time_that_is_written_reads_back_exactly(ns: int) -> None:
    assert q.parse_time_ns(q.time_text(ns)) == ns


@given(st.integers(1, q.LARGEST_BYTES))
def test_a_size_that_is_written_reads_back_exactly(size: int) -> None:
    assert q.parse_memory(q.memory_text(size)) == size


def test_round_rates_are_written_with_their_prefix() -> None:
    assert q.byte_rate_text(900e9) == "900GB/s"
    assert q.flop_rate_text(15.7e12) == "15.7TFLOPS"
