"""`regal evaluate`: run a suite, print its tables, or write them into a page."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from regal.cli import output
from regal.data.entries import SHIPPED
from regal.errors import UsageError
from regal.evaluation.compare import comparisons
from regal.evaluation.page import regenerate, rows_path, suite_and_rows
from regal.evaluation.plots import plots_of
from regal.evaluation.rows import pack
from regal.evaluation.run import Folders, run_suite
from regal.evaluation.suite_file import suite_named, suite_names
from regal.evaluation.tables import report
from regal.files import write_atomically

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from regal.evaluation.compare import Comparison
    from regal.evaluation.rows import Row
    from regal.evaluation.suite import Suite

SCHEMA = "regal.evaluation/1"


def evaluate(arguments: argparse.Namespace) -> int:
    """Run `regal evaluate`; 1 = a run failed, and its row says why."""
    if arguments.list:
        return _list(as_json=arguments.json)
    if arguments.table:
        return _table(arguments)
    if arguments.suite is None:
        raise UsageError("evaluate: give a suite, --list, or --table; see regal evaluate --help")
    suite = suite_named(arguments.suite)
    path = rows_path(arguments.results, suite)
    arguments.results.mkdir(parents=True, exist_ok=True)
    with output.progress(f"evaluating {suite.name}"):
        rows = run_suite(
            suite,
            path,
            Folders(
                data=arguments.set or SHIPPED,
                files=tuple(arguments.files),
                policies=tuple(arguments.policies),
            ),
            workers=arguments.workers,
            retry=arguments.retry,
            told=_tell,
        )
    if arguments.pack:
        path = pack(path)
    _plot(suite, rows, arguments.plots)
    if arguments.json:
        print(json.dumps(evaluation_to_dict(suite, rows, path)))
    else:
        print(f"{report(suite, rows)}\nrows          {path}")
    return 1 if any(row.failure for row in rows) else 0


def evaluation_to_dict(suite: Suite, rows: Sequence[Row], path: Path) -> dict[str, Any]:
    """Return what `regal evaluate --json` prints."""
    return {
        "schema": SCHEMA,
        "suite": suite.name,
        "rows": str(path),
        "runs": len(rows),
        "failed": sum(bool(row.failure) for row in rows),
        "comparisons": [
            _to_dict(one)
            for reference in suite.references
            for one in comparisons(suite, rows, reference)
        ],
    }


def _to_dict(one: Comparison) -> dict[str, Any]:
    better, equal, worse = one.outcomes
    return {
        "objective": one.objective,
        "devices": one.system,
        "budget": one.budget,
        "method": one.method,
        "against": one.against,
        "gain_percent": one.mean if one.cases else None,
        "interval_percent": one.interval,
        "median_percent": one.median if one.cases else None,
        "better": better,
        "equal": equal,
        "worse": worse,
        "share_of_best": one.share_of_best,
        "share_of_bound": one.share_of_bound,
        "cpu_seconds": one.cpu_seconds,
        "reference_cpu_seconds": one.reference_cpu_seconds,
        "pairs": one.pairs,
        "asked": one.asked,
        "families": one.families,
        "p_value": one.p_value,
    }


def _table(arguments: argparse.Namespace) -> int:
    names = [arguments.suite] if arguments.suite else []
    done = regenerate(arguments.page, arguments.results, names)
    if arguments.plots is not None:
        for name in names or done:
            _plot(*suite_and_rows(name, arguments.results), arguments.plots)
    document = {"page": str(arguments.page), "suites": done}
    text = f"written       {arguments.page}: {', '.join(done)}"
    print(json.dumps(document) if arguments.json else text)
    return 0


def _list(*, as_json: bool) -> int:
    found = {name: suite_named(name).about for name in suite_names()}
    print(
        json.dumps(found)
        if as_json
        else "\n".join(f"{name:<13} {about}" for name, about in found.items())
    )
    return 0


def _plot(suite: Suite, rows: Sequence[Row], folder: Path | None) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in plots_of(suite, rows).items():
        write_atomically(folder / name, picture.encode())


def _tell(done: int, total: int) -> None:
    """Print a line now and then, where stderr is not a terminal with a spinner."""
    if not sys.stderr.isatty() and (done % 100 == 0 or done == total):
        print(f"{done:,} of {total:,} rows", file=sys.stderr)
