"""minimalloc's CSV: read, placed, written; and buffers with windows."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest

from regal.errors import ModelError
from regal.search.allocation_csv import read_buffers, run_allocate, write_buffers
from regal.search.offsets import AllocationStatus
from regal.search.windowed_buffers import Piece, WindowedBuffer, place_windowed
from tests.corpus import corpus_file

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "buffers.csv"
    path.write_text(text)
    return path


def test_an_allocation_is_the_same_rows_with_an_offset(tmp_path: Path) -> None:
    run = run_allocate(written(tmp_path, EXAMPLE), capacity=12)
    assert run.fits
    lines = run.csv_text.splitlines()
    assert lines[0] == "id,lower,upper,size,offset"
    assert [line.rsplit(",", 1)[0] for line in lines[1:]] == EXAMPLE.splitlines()[1:]
    assert run.outcome.arena_bytes == 12


@pytest.mark.parametrize("column", ["alignment", "hint", "gaps", "offset"])
def test_an_empty_field_of_an_optional_column_says_nothing(column: str) -> None:
    full = f"id,lower,upper,size,{column}\na,0,10,64,\nb,2,4,32, \n"
    assert read_buffers(full.encode(), "x.csv") == read_buffers(
        b"id,lower,upper,size\na,0,10,64\nb,2,4,32\n", "x.csv"
    )


def test_the_written_text_is_read_back_as_fixed_offsets(tmp_path: Path) -> None:
    first = run_allocate(written(tmp_path, EXAMPLE))
    again = run_allocate(written(tmp_path, first.csv_text))
    assert again.csv_text == first.csv_text
    assert again.outcome.status is AllocationStatus.OPTIMAL


def test_columns_come_in_any_order_and_old_ends_are_included() -> None:
    new = read_buffers(b"size,upper,id,lower\n4,3,a,0\n", "x.csv")
    old = read_buffers(b"buffer_id,start,end,size\na,0,2,4\n", "x.csv")
    assert new.rows == old.rows
    assert write_buffers(new, [0]) == "id,lower,upper,size,offset\na,0,3,4,0\n"
    assert write_buffers(old, [0]) == "id,start,end,size,offset\na,0,2,4,0\n"


def test_all_columns_survive_a_round_trip() -> None:
    text = (
        "id,lower,upper,size,alignment,hint,gaps,offset\n"
        "a,0,9,16,8,-1,2-4 5-7@0:8,0\n"
        "b,0,9,16,1,64,,16\n"
    )
    table = read_buffers(text.encode(), "x.csv")
    assert write_buffers(table, [0, 16]) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x.csv: the file is empty, expected a header with id,lower,upper,size"),
        ("id,lower,upper\n", "x.csv: column 'size' is missing, expected id,lower,upper,size"),
        ("id,lower,upper,size,size\n", "x.csv: column 'size' states 'size' a second time"),
        ("id,lower,upper,size\na,0,x,4\n",
         "x.csv: row 1 upper 'x' is not a whole number below 2^61"),
        ("id,lower,upper,size\na,0,1,4\nb,0,1\n", "x.csv: row 2 has 3 fields, expected 4"),
        ("id,lower,upper,size\na,3,3,4\n",
         "x.csv: row 1 ends at 3, which is not after its start 3"),
        ("id,lower,upper,size\na,0,3,-4\n", "x.csv: row 1 size -4 is negative"),
        ("id,lower,upper,size,alignment\na,0,3,4,0\n",
         "x.csv: row 1 alignment 0 is not 1 or more"),
        ("id,lower,upper,size,gaps\na,0,3,4,1\n",
         "x.csv: row 1 gap '1' is not of the form 3-7 or 3-7@0:64"),
        ("id,lower,upper,size,gaps\na,0,3,4,1-9\n",
         "x.csv: row 1 gap of steps 1 to 8 is empty, outside the lifetime,"
         " or overlaps another gap"),
        ("id,lower,upper,size,gaps\na,0,3,4,1-2@0:5\n",
         "x.csv: row 1 window 0:5 is empty or outside the size 4"),
        ("id,lower,upper,size\na,0,1," + "9" * 40 + "\n",
         f"x.csv: row 1 size '{'9' * 40}' is not a whole number below 2^61"),
        ("id,lower,upper,size\na,0,1,2305843009213693952\nb,0,1,1\n",
         "x.csv: the sizes, offsets and alignments add up to more than 2^61"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_with_row_and_value(text: str, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_buffers(text.encode(), "x.csv")
    assert str(caught.value) == message


def test_an_unknown_column_lists_the_known_ones() -> None:
    with pytest.raises(ModelError, match=r"unknown column 'uper'; known columns: alignment, "):
        read_buffers(b"id,lower,uper,size\n", "x.csv")


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ModelError, match="byte 0 is not text"):
        read_buffers(b"\xff\xfe\x00", "x.csv")


def test_a_capacity_that_is_too_small_names_step_and_bytes(tmp_path: Path) -> None:
    run = run_allocate(written(tmp_path, EXAMPLE), capacity=10)
    assert not run.fits
    assert run.outcome.status is AllocationStatus.INFEASIBLE
    assert run.reason == "capacity 10 B: buffers live at step 0 need 12 B"


def test_fixed_buffers_that_overlap_are_named(tmp_path: Path) -> None:
    text = "id,lower,upper,size,offset\na,0,3,4,0\nb,2,5,4,2\n"
    run = run_allocate(written(tmp_path, text))
    assert not run.fits
    assert run.reason == "buffer 'a' fixed at bytes [0, 4) overlaps 'b' fixed at [2, 6)"


def test_a_window_lets_another_buffer_use_the_other_bytes(tmp_path: Path) -> None:
    text = "id,lower,upper,size,gaps\na,0,4,8,1-3@0:4\nb,1,3,4,\n"
    run = run_allocate(written(tmp_path, text))
    assert run.outcome.status is AllocationStatus.OPTIMAL
    assert run.outcome.arena_bytes == 8
    assert [line.split(",")[-1] for line in run.csv_text.splitlines()[1:]] == ["0", "4"]


def least_windowed(buffers: list[WindowedBuffer], most: int) -> int | None:
    """Return the least arena by trying all offsets."""
    for arena in range(most + 1):
        ranges = [
            [b.fixed] if b.fixed >= 0 else list(range(0, arena, b.alignment)) for b in buffers
        ]
        for offsets in itertools.product(*ranges):
            if is_legal_windowed(buffers, offsets, arena):
                return arena
    return None


def is_legal_windowed(buffers: list[WindowedBuffer], offsets: tuple[int, ...], arena: int) -> bool:
    used: set[tuple[int, int]] = set()
    for buffer, offset in zip(buffers, offsets, strict=True):
        if offset + buffer.bytes > arena or offset % buffer.alignment:
            return False
        for piece in buffer.pieces:
            cells = set(
                itertools.product(
                    range(piece.first_step, piece.last_step + 1),
                    range(offset + piece.low, offset + piece.high),
                )
            )
            if cells & used:
                return False
            used |= cells
    return True


def test_windowed_buffers_get_the_least_arena_of_all_placements() -> None:
    rng = random.Random("windows")
    n_above_bound = 0
    for _ in range(150):
        buffers = []
        for _ in range(rng.randint(1, 4)):
            size = rng.randint(1, 4)
            pieces = []
            for step in range(3):
                if rng.random() < 0.7:
                    low = rng.randrange(size)
                    pieces.append(
                        Piece(
                            first_step=step,
                            last_step=step,
                            low=low,
                            high=rng.randint(low + 1, size),
                        )
                    )
            buffers.append(
                WindowedBuffer(
                    bytes=size,
                    pieces=tuple(pieces),
                    alignment=rng.choice([1, 1, 2]),
                    fixed=rng.choice([-1, -1, -1, 2]),
                )
            )
        least = least_windowed(buffers, 18)
        outcome = place_windowed(buffers)
        if least is None:
            assert outcome.status is AllocationStatus.INFEASIBLE
            continue
        assert outcome.status is AllocationStatus.OPTIMAL
        assert outcome.arena_bytes == least
        assert is_legal_windowed(buffers, tuple(outcome.offsets.tolist()), least)
        refused = place_windowed(buffers, capacity=least - 1)
        assert refused.status is AllocationStatus.INFEASIBLE
        n_above_bound += outcome.nodes > 0
    assert n_above_bound > 10


@pytest.mark.corpus
@pytest.mark.parametrize("letter", list("ABDEFJK"))
def test_the_challenging_instances_fit_their_capacity(letter: str) -> None:
    path = corpus_file(f"sched/minimalloc_{letter}.1048576.csv")
    run = run_allocate(path, capacity=1_048_576)
    assert run.outcome.status is AllocationStatus.FITS


@pytest.mark.corpus
def test_a_training_graph_of_18692_buffers_reaches_its_bound() -> None:
    run = run_allocate(corpus_file("sched/idealloc_somas_pangu_2.6B.csv"))
    assert run.outcome.arena_bytes == run.outcome.lower_bound == 5_530_099_775
