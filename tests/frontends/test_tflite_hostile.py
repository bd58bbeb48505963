"""Broken and hostile bytes: one ModelError of one line, in bounded time and memory."""

from __future__ import annotations

import random
import struct
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from regal.errors import ModelError
from regal.frontends.tflite import load
from regal.frontends.tflite.flatbuffer import Reader
from regal.frontends.tflite.model import parse_tflite
from tests.frontends.tflite_models import all_models, chain
from tests.frontends.tflite_writer import G, M, O, T, write_tflite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def refused(path: Path, data: bytes) -> str | None:
    """Return the message if the bytes are refused; anything but a ModelError fails the test."""
    path.write_bytes(data)
    try:
        load(path, {}, {})
    except ModelError as error:
        message = str(error)
        assert message
        assert "\n" not in message
        return message
    return None


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "m.tflite", b"") == (
        "not a TFLite model: the identifier at bytes 4-7 is '', not 'TFL3'"
    )


@pytest.mark.parametrize("data", [b"\x08\x00\x00\x00ONNX" * 9, b"PK\x03\x04" * 20, b"\x00" * 64])
def test_foreign_files_are_refused_by_their_identifier(tmp_path: Path, data: bytes) -> None:
    message = refused(tmp_path / "m.tflite", data)
    assert message is not None
    assert message.startswith("not a TFLite model: the identifier at bytes 4-7 is")


@pytest.mark.parametrize("name", sorted(all_models()))
def test_every_truncation_is_refused(tmp_path: Path, name: str) -> None:
    data = write_tflite(all_models()[name])
    # The last table may still be whole when only padding or weights behind it are cut.
    for length in range(0, len(data) - 64, 7):
        assert refused(tmp_path / "m.tflite", data[:length]) is not None, length


def corruptions(data: bytes, seed: int) -> Iterator[bytes]:
    """Yield damaged copies: flipped bits, extreme numbers, copied and cut pieces."""
    chance = random.Random(seed)
    extremes = (0, 1, 0x7F, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, len(data), len(data) - 4)
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(chance.choice((1, 1, 2, 8))):
            at = chance.randrange(4, len(changed) - 4)
            match chance.randrange(4):
                case 0:
                    changed[at] ^= 1 << chance.randrange(8)
                case 1:
                    struct.pack_into("<I", changed, at & ~3, chance.choice(extremes))
                case 2:
                    source = chance.randrange(8, len(changed) - 4)
                    changed[at : at + 4] = changed[source : source + 4]
                case 3:
                    struct.pack_into("<H", changed, at & ~1, chance.randrange(1 << 16))
        changed[4:8] = b"TFL3"
        yield bytes(changed)


@pytest.mark.parametrize("name", sorted(all_models()))
def test_damaged_models_load_or_are_refused_and_nothing_else(tmp_path: Path, name: str) -> None:
    data = write_tflite(all_models()[name])
    verdicts = [
        refused(tmp_path / "m.tflite", damaged)
        for damaged in corruptions(data, seed=sum(name.encode()))
    ]
    assert sum(verdict is not None for verdict in verdicts) > 20  # the damage is real


def test_a_vector_that_claims_four_billion_elements_costs_nothing(tmp_path: Path) -> None:
    data = bytearray(write_tflite(chain()))
    root = parse_tflite(bytes(data)).root
    start, _ = root.vector(2, 4)  # subgraphs
    struct.pack_into("<I", data, start - 4, 0xFFFFFFFF)
    tracemalloc.start()
    message = refused(tmp_path / "m.tflite", bytes(data))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert message is not None
    assert "the file is truncated or corrupt" in message
    assert peak < 1 << 20


def test_one_table_listed_a_million_times_is_refused(tmp_path: Path) -> None:
    # A list of operators that all are the same one: few bytes each, unbounded work.
    data = write_tflite(chain())
    file = parse_tflite(data)
    table = file.subgraphs[0].operators[0].table.position
    n = 50_000
    # The list goes in front of everything, so that its distances are positive.
    head = bytearray(64 + 4 * n + 64)
    shift = len(head)
    root = file.root
    struct.pack_into("<I4s", head, 0, 16 - 0, b"TFL3")
    listed = 64
    struct.pack_into("<I", head, listed, n)
    for i in range(n):
        at = listed + 4 + 4 * i
        struct.pack_into("<I", head, at, shift + table - at)
    # Root at 16 with its vtable at 8: fields 1 (codes) and 2 (subgraphs) only.
    struct.pack_into("<5H", head, 40, 10, 12, 0, 4, 8)
    struct.pack_into("<i", head, 16, 16 - 40)
    codes, _ = root.vector(1, 4)
    struct.pack_into("<I", head, 20, shift + codes - 4 - 20)
    struct.pack_into("<I", head, 24, listed - 24)
    message = refused(tmp_path / "m.tflite", bytes(head) + data)
    assert message is not None
    assert "it lists more tables and numbers than its bytes can hold" in message


def test_a_reader_stops_after_a_quarter_of_the_bytes() -> None:
    reader = Reader(bytes(400))
    reader.visit(100 + 16)
    with pytest.raises(ModelError, match="lists more tables and numbers than its bytes can hold"):
        reader.visit(1)


def test_texts_that_overlap_cannot_multiply(tmp_path: Path) -> None:
    reader = Reader(struct.pack("<I", 200) + struct.pack("<I", 190) + bytes(200))
    reader.text_at(0)
    with pytest.raises(ModelError, match="its strings overlap"):
        reader.text_at(4)


def test_two_subgraphs_with_one_list_of_operators_are_refused(tmp_path: Path) -> None:
    main = chain().subgraphs[0]
    data = bytearray(write_tflite(M(subgraphs=[main, replace(main, name="twin")])))
    file = parse_tflite(bytes(data))
    # Point the operators of the later table at those of the other one.
    tables = file.root.tables(2)
    slots = [t.slot(3) for t in tables]
    lists = [s.operators_at - 4 for s in file.subgraphs]
    slot = min(slots)
    target = lists[1 - slots.index(slot)]
    struct.pack_into("<I", data, slot, target - slot)
    message = refused(tmp_path / "m.tflite", bytes(data))
    assert message == "subgraphs 'main' and 'twin' share their list of operators"


def test_a_name_that_is_not_text_is_still_readable(tmp_path: Path) -> None:
    data = write_tflite(chain()).replace(b"main", b"m\xff\xfen")
    assert refused(tmp_path / "m.tflite", data) is None


def test_an_op_that_lacks_inputs_offers_no_parts(tmp_path: Path) -> None:
    for kind in ("SPLIT", "SPLIT_V", "SLICE", "STRIDED_SLICE", "CONCATENATION", "PACK", "UNPACK"):
        ops = [O(kind=kind, inputs=("x",), outputs=("y",))]
        tensors = [T(name="x", shape=(1, 4)), T(name="y", shape=(1, 4))]
        body = G(tensors=tensors, ops=ops, inputs=("x",), outputs=("y",))
        path = tmp_path / f"{kind}.tflite"
        path.write_bytes(write_tflite(M(subgraphs=[body])))
        assert load(path, {}, {}).graph.ops[0].kind == kind
