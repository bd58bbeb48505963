"""Spoil buffer lists: wrong cells, missing and doubled columns, broken bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

CELLS = (
    "", " ", "x", "-1", "0", "1", "7", "1.5", "1e9", "nan", "inf", "-inf", "0x10", "1_000", "٣",
    "+2", str(1 << 31), str(1 << 60), str(1 << 61), str(1 << 63), "9" * 30, "9" * 5000, '"', '"a',
    "a\nb", "1-2", "3-1", "0-9:1-2", "1-2 4-5", "::", "\x00", "\ufeff", "#", "=1+1",
)  # fmt: skip
NAMES = ("id", "lower", "upper", "size", "end", "start", "alignment", "hint", "gaps", "offset", "x")


def spoiled_csv(rng: random.Random) -> bytes:
    """Return a buffer list of a few rows with up to three random changes."""
    rows = [["id", "lower", "upper", "size", *rng.sample(("alignment", "hint", "offset"), 1)]]
    for i in range(rng.randrange(7)):
        lower = rng.randrange(6)
        size, last = rng.randint(1, 9), rng.choice(("1", "4", ""))
        rows.append([f"b{i}", str(lower), str(lower + rng.randint(1, 4)), str(size), last])
    for _ in range(rng.randrange(4)):
        row = rng.choice(rows)
        match rng.randrange(6):
            case 0 | 1 | 2 if row:
                row[rng.randrange(len(row))] = rng.choice(CELLS)
            case 3 if row:
                del row[rng.randrange(len(row))]
            case 4:
                row.insert(rng.randrange(len(row) + 1), rng.choice(CELLS))
            case _:
                rows[0] = [rng.choice(NAMES) for _ in range(rng.randrange(7))]
    data = "\n".join(",".join(row) for row in rows).encode() + b"\n"
    at = rng.randrange(len(data) + 1)
    broken = (data[:at], data[:at] + b"\xff" + data[at:], data[:at] + b"\r\n" + data[at:], b"")
    return rng.choice(broken) if rng.random() < 0.1 else data
