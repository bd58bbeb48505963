"""Rows of training runs, and the page that is made of them."""

import json
from pathlib import Path

from benchmarks.training_rows import (
    PAGE,
    PICTURE,
    ROWS,
    chart_of,
    efficiency_table,
    keep_rows,
    page_with,
    read_rows,
    rows_of_log,
    variant_table,
)

VALID = {"event": "valid", "margin_memory": 0.01}
TRAIN = {"event": "train"}


def logged(tmp_path: Path, name: str, *events: dict[str, object]) -> Path:
    path = tmp_path / name / "metrics.jsonl"
    path.parent.mkdir()
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    return path


def row(variant: str, seed: int, searches: int, gain: float, reward: float) -> dict[str, object]:
    row: dict[str, object] = {"variant": variant, "seed": seed, "iteration": searches}
    return row | {"searches": searches, "gain": gain, "reward": reward, "margin": 0.01}


def test_a_row_has_the_mean_reward_of_some_iterations_and_the_validation_there(
    tmp_path: Path,
) -> None:
    log = logged(
        tmp_path,
        "data-25-3",
        VALID | {"iteration": 0, "searches": 0, "gain": 0.0},
        TRAIN | {"iteration": 1, "searches": 4, "reward": 0.5},
        TRAIN | {"iteration": 1, "searches": 4, "reward": 0.1},  # again, after an interruption
        TRAIN | {"iteration": 2, "searches": 8, "reward": 0.3},
        TRAIN | {"iteration": 3, "searches": 12, "reward": 0.8},
        VALID | {"iteration": 3, "searches": 12, "gain": 0.07},
        TRAIN | {"iteration": 4, "searches": 16, "reward": 0.9},
    )
    run = {"variant": "data-25", "seed": 3}
    assert rows_of_log(log) == [
        run | {"iteration": 0, "searches": 0, "gain": 0.0, "margin": 0.01},
        run | {"iteration": 3, "searches": 12, "reward": 0.4, "gain": 0.07, "margin": 0.01},
    ]


def test_rows_of_a_run_replace_those_it_had(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    keep_rows(path, [row("es", 0, 8, 0.1, 0.1), row("base", 0, 8, 0.2, 0.1)])
    keep_rows(path, [row("es", 0, 16, 0.3, 0.1), row("es", 0, 8, 0.4, 0.1)])
    found = [(one["variant"], one["searches"], one["gain"]) for one in read_rows(path)]
    assert found == [("base", 8, 0.2), ("es", 8, 0.4), ("es", 16, 0.3)]


def test_tables_have_means_over_seeds_and_their_ends() -> None:
    rows = [
        row("base", 0, 8, 0.01, 0.02),
        row("base", 1, 8, 0.03, 0.03),
        row("reinforce", 0, 8, -0.01, 0.0),
    ]
    assert efficiency_table(rows).splitlines()[-1] == (
        "| 8 | +2.50 % [+2.00, +3.00] | +0.00 % | +2.00 % [+1.00, +3.00] | -1.00 % |"
    )
    first, second = variant_table(rows).splitlines()[2:]
    assert first.endswith("| 2 | 8 | +2.50 % [+2.00, +3.00] | +2.00 % [+1.00, +3.00]"
                          " | +2.00 % [+1.00, +3.00] |")  # fmt: skip
    assert second.endswith("| 1 | 8 | +0.00 % | -1.00 % | -1.00 % |")


def test_the_page_and_the_picture_are_made_of_the_rows() -> None:
    rows = read_rows(ROWS)
    assert {one["variant"] for one in rows} >= {"base", "reinforce"}
    assert page_with(PAGE.read_text(), rows) == PAGE.read_text()
    assert chart_of(rows) == PICTURE.read_text()
