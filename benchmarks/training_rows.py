"""What training runs logged, as rows; tables and a picture of them. Needs no torch."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from regal.data.plots import picture
from regal.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Row = Mapping[str, Any]

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "benchmarks" / "results" / "training.jsonl"
PAGE = ROOT / "docs" / "policy_training.md"
PICTURE = ROOT / "docs" / "sample_efficiency.svg"
BEGIN, END = "<!-- rows: {} -->", "<!-- end of rows -->"
EVERY = 3  # iterations per row
BASE, REINFORCE = "base", "reinforce"
# What each variant of the paper's policy is; the tables are in this sequence.
VARIANTS: Final[Mapping[str, str]] = {
    BASE: "off-policy, from replay",
    REINFORCE: "REINFORCE, no replay",
    "es": "evolution strategies on the weights",
    "preference": "preferences among the choices of a task",
    "graph-blind": "off-policy, no messages along edges",
    "no-variations": "off-policy, no variations of graphs",
    "data-50": "off-policy, half of the training graphs",
    "data-25": "off-policy, a quarter of the training graphs",
    "independent": "off-policy, bins drawn for each gene independently, as in the paper",
}
ARMS: Final = {BASE: ("replay", "#4c78a8"), REINFORCE: ("REINFORCE", "#f58518")}
WIDTH, HEIGHT = 640, 360  # pixels of the picture
LEFT, RIGHT, TOP, BOTTOM = 64, 130, 34, 44


def rows_of_log(path: Path) -> list[dict[str, Any]]:
    """Return a row per EVERY iterations of a run: their mean reward, and the validation there.

    Args:
        path: `metrics.jsonl` in a folder that is named VARIANT-SEED.
    """
    name, _, seed = path.parent.name.rpartition("-")
    # Iterations that were done twice, after an interruption, count once.
    trained: dict[int, Row] = {}
    valid: dict[int, Row] = {}
    for event in map(json.loads, path.read_text().splitlines()):
        (trained if event["event"] == "train" else valid)[event["iteration"]] = event
    rows = []
    for iteration in sorted({0, *trained}):
        if iteration % EVERY:
            continue
        row = {"variant": name, "seed": int(seed), "iteration": iteration}
        row["searches"] = int(trained[iteration]["searches"]) if iteration else 0
        if iteration:
            block = range(iteration - EVERY + 1, iteration + 1)
            row["reward"] = round(fmean(trained[i]["reward"] for i in block), 6)
        if iteration in valid:
            row["gain"] = round(valid[iteration]["gain"], 6)
            row["margin"] = round(valid[iteration]["margin_memory"], 6)
        rows.append(row)
    return rows


def keep_rows(path: Path, rows: Sequence[Row]) -> None:
    """Put rows into a file, in place of all that it has of the same runs."""
    told = {(row["variant"], row["seed"]) for row in rows}
    kept = [row for row in read_rows(path) if (row["variant"], row["seed"]) not in told]
    ordered = sorted([*kept, *rows], key=_place)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, "".join(f"{json.dumps(row)}\n" for row in ordered).encode())


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file; none where there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def regenerate(rows: Sequence[Row], page: Path = PAGE, chart: Path = PICTURE) -> None:
    """Write the tables into the page, each between its markers, and the picture beside it."""
    write_atomically(page, page_with(page.read_text(), rows).encode())
    write_atomically(chart, chart_of(rows).encode())


def page_with(text: str, rows: Sequence[Row]) -> str:
    """Return the page with the tables of these rows."""
    for name, table in (("efficiency", efficiency_table(rows)), ("variants", variant_table(rows))):
        before, _, rest = text.partition(BEGIN.format(name))
        _, _, after = rest.partition(END)
        text = f"{before}{BEGIN.format(name)}\n\n{table}\n\n{END}{after}"
    return text


def efficiency_table(rows: Sequence[Row]) -> str:
    """Return rewards and validated gains of the two arms by searches, means over seeds."""
    found = _by_searches(rows)
    names = [name for name, _ in ARMS.values()]
    lines = [
        "| searches | " + " | ".join(f"reward, {name}" for name in names)
        + " | " + " | ".join(f"valid, {name}" for name in names) + " |",
        "| ---: " * (1 + 2 * len(names)) + "|",
    ]  # fmt: skip
    for searches in sorted({key[1] for key in found}):
        cells = [
            _mean_and_ends([row[part] for row in found.get((arm, searches), []) if part in row])
            for part in ("reward", "gain")
            for arm in ARMS
        ]
        lines.append(f"| {searches:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def variant_table(rows: Sequence[Row]) -> str:
    """Return, per variant, its seeds, searches, last rewards and gains on the valid side."""
    lines = [
        "| variant | what | seeds | searches | reward, last | valid, last | valid, best |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, what in VARIANTS.items():
        runs: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            if row["variant"] == name:
                runs[row["seed"]].append(row)
        if not runs:
            continue
        ends = sorted({run[-1]["searches"] for run in runs.values()})
        searches = f"{ends[0]:,}" if len(ends) == 1 else f"{ends[0]:,} to {ends[-1]:,}"
        rewards = [[row["reward"] for row in run if "reward" in row] for run in runs.values()]
        gains = [[row["gain"] for row in run if "gain" in row] for run in runs.values()]
        cells = (
            _mean_and_ends([part[-1] for part in rewards if part]),
            _mean_and_ends([part[-1] for part in gains if part]),
            _mean_and_ends([max(part) for part in gains if part]),
        )
        lines.append(f"| {name} | {what} | {len(runs)} | {searches} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def chart_of(rows: Sequence[Row]) -> str:
    """Return a picture: mean reward of what was tried, by searches, for each arm and seed."""
    lines: dict[tuple[str, int], list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        if row["variant"] in ARMS and "reward" in row:
            lines[row["variant"], row["seed"]].append((row["searches"], 100 * row["reward"]))
    points = [point for line in lines.values() for point in line] or [(1, 0.0)]
    most = max(searches for searches, _ in points)
    low = min(0.0, *(percent for _, percent in points)) - 0.2
    high = max(0.0, *(percent for _, percent in points)) + 0.2

    def x_of(searches: int) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * searches / most, 1)

    def y_of(percent: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (high - percent) / (high - low), 1)

    title = "Reward of what was tried, percent over uniform keys"
    elements = [f'<text x="12" y="20" font-weight="bold">{title}</text>']
    for percent in range(int(low), int(high) + 1):
        y, end = y_of(percent), WIDTH - RIGHT
        elements += [
            f'<line x1="{LEFT}" y1="{y}" x2="{end}" y2="{y}" stroke="#999" stroke-width="0.5"/>',
            f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{percent:+d} %</text>',
        ]
    for searches in sorted({searches for searches, _ in points}):
        spot = f'x="{x_of(searches)}" y="{HEIGHT - BOTTOM + 16}"'
        elements.append(f'<text {spot} text-anchor="middle" font-size="9">{searches:,}</text>')
    elements.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">searches</text>')
    for (arm, _), line in lines.items():
        elements.append(_polyline(line, ARMS[arm][1], 0.7, x_of, y_of))
    for place, (arm, (name, color)) in enumerate(ARMS.items()):
        found = [one for key, one in lines.items() if key[0] == arm]
        common = sorted(set.intersection(*({x for x, _ in one} for one in found)) if found else ())
        mean = [(x, fmean(dict(one)[x] for one in found)) for x in common]
        elements.append(_polyline(mean, color, 2.5, x_of, y_of))
        spot = f'x="{WIDTH - RIGHT + 10}" y="{TOP + 12 + 16 * place}"'
        elements.append(f'<text {spot} fill="{color}">{name}</text>')
    return picture(title, WIDTH, HEIGHT, elements)


def _polyline(
    line: Iterable[tuple[int, float]],
    color: str,
    width: float,
    x_of: Callable[[int], float],
    y_of: Callable[[float], float],
) -> str:
    path = " ".join(f"{x_of(searches)},{y_of(percent)}" for searches, percent in line)
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"/>'


def _by_searches(rows: Sequence[Row]) -> dict[tuple[str, int], list[Row]]:
    """Return the rows of the two arms by variant and searches."""
    found: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        if row["variant"] in ARMS:
            found[row["variant"], row["searches"]].append(row)
    return found


def _mean_and_ends(shares: Sequence[float]) -> str:
    """Return the mean of some shares in percent, and the least and the most of several."""
    if not shares:
        return ""
    mean = f"{100 * fmean(shares):+.2f} %"
    if len(shares) == 1:
        return mean
    return f"{mean} [{100 * min(shares):+.2f}, {100 * max(shares):+.2f}]"


def _place(row: Row) -> tuple[int, int, int]:
    return list(VARIANTS).index(row["variant"]), row["seed"], row["iteration"]
