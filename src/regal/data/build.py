"""Build the data set: trace every item in worker processes, resumably, with a row for each."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import random
import resource
import signal
import time
import traceback
from dataclasses import asdict, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regal.child import hidden_from_ctrl_c
from regal.data.headroom import headroom
from regal.data.items import SYNTHETIC, Item, breadth_first
from regal.data.pack import packed
from regal.data.structure import structure_hash
from regal.data.tracers import tracer_of
from regal.files import read_file, write_atomically
from regal.graph.check import require_valid_graph
from regal.records import json_of, kinds_of, misfit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection
    from types import FrameType

    from regal.graph.types import Graph

ITEM_CPU_SECONDS = 60  # of one trace; slower ones are a row that says so
ITEM_SECONDS = 900.0  # then the process is ended: it is stuck, or the machine is
WORKER_BYTES = 8 << 30
ITEMS_PER_WORKER = 24  # then a fresh process: tracers keep memory
FEWEST_OPS, MOST_OPS = 30, 20_000
LEAST_HEADROOM = 0.10  # by which a long search beats a short one on a synthetic graph
MOST_CHARACTERS = 200  # of what an error says
LOG = "log.jsonl"
# What a row has, by its kind: an item and what became of it.
ASKED = {"key": (str,), **kinds_of(Item)}
FAILED = {"failure": (str,)}
TRACED = {
    "ops": (int,), "tensors": (int,), "structure": (str,), "version": (str,),
    "seconds": (float, int),
}  # fmt: skip
LEFT_OUT = {"why": (str,), "left_out": (str,)}
KEPT = {"bytes": (int,), "sha256": (str,)}


def build(
    items: Sequence[Item], folder: Path, *, workers: int = 1, retry: bool = False
) -> list[dict[str, Any]]:
    """Trace `items` into `folder`, one file per graph, and return all rows of its log.

    Items with a row in the log are not traced again: a build that was stopped goes on where it
    was. A failure is a row with its reason; so is a graph that is too small or too large.

    Args:
        items: what to trace.
        folder: of the files and the log; it is made if need be.
        workers: processes that trace at the same time.
        retry: trace again what failed.

    Cost: a second to a minute per item and worker.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = read_log(folder)
    if retry:
        rows = [row for row in rows if "failure" not in row]
    _keep(rows, folder / LOG)
    done = {row["key"] for row in rows}
    pool = [_Worker(folder) for _ in range(workers)]
    waiting = _batches([item for item in items if item.key not in done])
    try:
        while waiting or any(worker.is_busy for worker in pool):
            for worker in pool:
                if not worker.is_busy and waiting:
                    worker.start(waiting.pop(0))
                worker.look(waiting)
            time.sleep(0.05)
    finally:  # Ctrl-C, a full disk: nobody would write down what they still trace
        for worker in pool:
            worker.end()
    return read_log(folder)


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a build folder; a line that was cut off by a crash is left out.

    Raises:
        UsageError: the log cannot be read.
    """
    path = folder / LOG
    if not path.exists():
        return []
    rows = []
    for line in read_file(path, "log").decode(errors="replace").splitlines():
        try:
            row = json_of(line)
        except ValueError:
            continue
        if isinstance(row, dict) and _is_whole(row):
            rows.append(row)
    return rows


def _is_whole(row: dict[str, Any]) -> bool:
    """Return whether a row of the log says all that one of its kind must."""
    if "failure" in row:
        kinds = ASKED | FAILED
    else:
        kinds = ASKED | TRACED | (LEFT_OUT if "left_out" in row else KEPT)
    return not misfit({key: row[key] for key in kinds if key in row}, kinds)


def _keep(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Leave a log with these rows alone, to which more can be added."""
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    if path.exists() and path.read_bytes() != text:
        write_atomically(path, text)


def file_of(key: str) -> str:
    """Return the name of the file that holds the graph of an item."""
    return key.replace("/", "~") + ".graph"


def trace_to_file(item: Item, folder: Path) -> dict[str, Any]:
    """Return the row of one item; its graph is written to `folder` if it belongs to the set."""
    started = time.perf_counter()
    row: dict[str, Any] = {"key": item.key, **asdict(item)}
    tracer = tracer_of(item.framework, item.source)
    graph = require_valid_graph(replace(tracer.trace(item), name=item.key))
    row |= {
        "ops": len(graph.ops),
        "tensors": len(graph.tensors),
        "structure": structure_hash(graph),
        "version": tracer.version(),
    }
    against = _reason_against(item, graph)
    if against is not None:
        row["why"], row["left_out"] = against
    else:
        data = packed(graph)
        row |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        path = folder / file_of(item.key)
        path.with_suffix(".part").write_bytes(data)
        path.with_suffix(".part").replace(path)
    return row | {"seconds": round(time.perf_counter() - started, 2)}


def _reason_against(item: Item, graph: Graph) -> tuple[str, str] | None:
    """Return why a graph does not belong to the set, in a word and in a sentence."""
    if not FEWEST_OPS <= len(graph.ops) <= MOST_OPS:
        return "size", f"{len(graph.ops)} ops; the set has {FEWEST_OPS} to {MOST_OPS}"
    if item.source == SYNTHETIC and (gain := headroom(graph)) < LEAST_HEADROOM:
        return "headroom", f"a long search gains {gain:.1%}; {LEAST_HEADROOM:.0%} is wanted"
    return None


def _batches(items: Sequence[Item]) -> list[list[Item]]:
    """Return the items in batches of one source each, the sources taking turns."""
    by_source: dict[tuple[str, str], list[Item]] = {}
    for item in breadth_first(items):
        by_source.setdefault((item.framework, item.source), []).append(item)
    n = ITEMS_PER_WORKER
    rows = [[group[i : i + n] for i in range(0, len(group), n)] for group in by_source.values()]
    return [batch for turn in zip_longest(*rows) for batch in turn if batch is not None]


class _Worker:
    """One process that traces a batch; it is ended when an item takes too long."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._batch: list[Item] = []  # what it has yet to answer for
        self._process: multiprocessing.process.BaseProcess | None = None
        self._rows: Connection | None = None
        self._since = 0.0

    @property
    def is_busy(self) -> bool:
        return self._process is not None

    def start(self, batch: list[Item]) -> None:
        context = multiprocessing.get_context("spawn")
        self._rows, there = context.Pipe(duplex=False)
        self._process = context.Process(target=_work, args=(batch, self._folder, there))
        with hidden_from_ctrl_c():
            self._process.start()
        there.close()
        self._batch = list(batch)
        self._since = time.monotonic()

    def look(self, waiting: list[list[Item]]) -> None:
        """Write the rows that came; end a process that is done, stuck or dead."""
        if self._process is None:
            return
        was_alive = self._process.is_alive()  # asked first: rows that came before stay readable
        self._keep_rows()
        is_late = time.monotonic() - self._since > ITEM_SECONDS
        if self._batch and was_alive and not is_late:
            return
        if self._batch:
            guilty, *rest = self._batch
            reason = f"slower than {ITEM_SECONDS:.0f} s" if is_late else "the process died"
            self._write(_failure(guilty, reason))
            if rest:
                waiting.insert(0, rest)
        self.end()

    def end(self) -> None:
        """End the process, if there is one; what it has not answered for stays without a row."""
        if self._process is not None:
            if self._batch:
                self._process.kill()
            self._process.join()
        self._process, self._rows, self._batch = None, None, []

    def _keep_rows(self) -> None:
        with contextlib.suppress(EOFError):  # the process closed its end
            while self._rows is not None and self._rows.poll():
                row = self._rows.recv()
                self._batch = [item for item in self._batch if item.key != row["key"]]
                self._since = time.monotonic()
                self._write(row)

    def _write(self, row: dict[str, Any]) -> None:
        with (self._folder / LOG).open("a") as log:
            log.write(json.dumps(row) + "\n")


def _failure(item: Item, reason: str) -> dict[str, Any]:
    return {"key": item.key, **asdict(item), "failure": reason}


def _work(batch: list[Item], folder: Path, rows: Connection) -> None:
    """Trace a batch in this process and send one row per item."""
    resource.setrlimit(resource.RLIMIT_DATA, (WORKER_BYTES, WORKER_BYTES))
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    signal.signal(signal.SIGPROF, _too_slow)
    for item in batch:
        random.seed(item.key)  # some architectures draw from it while they run
        signal.setitimer(signal.ITIMER_PROF, ITEM_CPU_SECONDS)
        try:
            row = trace_to_file(item, folder)
        except BaseException as error:  # a row, whatever the architecture's code raises
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = " ".join(str(error).split())[:MOST_CHARACTERS]
            where = f"{Path(last.filename).name}:{last.lineno}"
            row = _failure(item, f"{type(error).__name__}: {text} ({where})")
        signal.setitimer(signal.ITIMER_PROF, 0)
        rows.send(row)
    rows.close()


def _too_slow(signum: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"slower than {ITEM_CPU_SECONDS} s of CPU time")
