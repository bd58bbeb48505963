"""Do batches of work in processes: one that dies or never ends costs one item, and says so."""

from __future__ import annotations

import multiprocessing
import time
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Generic, TypeVar

from regal.child import hidden_from_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Item = TypeVar("Item")
Result = TypeVar("Result")

START_SECONDS = 120.0  # a busy machine may take so long to start a process and load a graph
LOOK_SECONDS = 0.5  # how often the clocks of the items are looked at
ITEMS_PER_PROCESS = 2_000  # then a fresh one: libraries keep memory


def run_batches(
    batches: Iterable[Sequence[Item]],
    work: Callable[[Sequence[Item]], Iterator[Result | None]],
    failed: Callable[[Item, str], Result],
    *,
    workers: int,
    limit_seconds: float,
    fresh: Callable[[Item], Item] = lambda item: item,
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, as they come.

    `work` runs in another process. It yields one result per item, in their order, and None
    whenever it is on its way with what the whole batch shares.

    Args:
        batches: what is done in one process, one after the other.
        work: importable, and so are its arguments.
        failed: makes the result of an item whose process died, or that took too long.
        workers: processes at the same time.
        limit_seconds: of wall time per item; what a batch shares may take START_SECONDS more.
        fresh: brings an item up to date just before it is sent, with what earlier ones gave.
    """
    waiting = [list(batch) for batch in batches if batch]
    pool = [_Worker(work) for _ in range(workers)]
    try:
        while waiting or any(worker.items for worker in pool):
            for worker in pool:
                if not worker.items and waiting:
                    worker.give([fresh(item) for item in waiting.pop(0)])
            wait([worker.here for worker in pool if worker.here is not None], LOOK_SECONDS)
            for worker in pool:
                yield from worker.results()
                reason = worker.trouble(limit_seconds)
                if reason:
                    guilty, *rest = worker.items
                    worker.end()
                    yield guilty, failed(guilty, reason)
                    if rest:
                        waiting.insert(0, rest)
    finally:
        for worker in pool:
            worker.end()


@dataclass(slots=True)
class _Worker(Generic[Item, Result]):
    """One process, started when it is needed."""

    work: Callable[[Sequence[Item]], Iterator[Result | None]]
    items: list[Item] = field(default_factory=list)  # that it has yet to answer for
    here: Connection | None = None
    process: BaseProcess | None = None
    since: float = 0.0
    is_starting: bool = False  # nothing has come from the batch at hand
    is_gone: bool = False  # it closed its end
    done: int = 0

    def give(self, batch: list[Item]) -> None:
        if self.done >= ITEMS_PER_PROCESS:
            self.end()
        if self.process is None or self.here is None:
            context = multiprocessing.get_context("spawn")
            self.here, there = context.Pipe()
            self.process = context.Process(target=_serve, args=(self.work, there), daemon=True)
            with hidden_from_ctrl_c():
                self.process.start()
            there.close()
            self.done, self.is_gone = 0, False
        self.items = batch
        self.since, self.is_starting = time.monotonic(), True
        self.here.send(batch)

    def results(self) -> Iterator[tuple[Item, Result]]:
        """Yield what has come."""
        while self.items and self.here is not None and self.here.poll():
            try:
                result: Result | None = self.here.recv()
            except (EOFError, OSError):  # between two results, or in the middle of one
                self.is_gone = True
                return
            self.since, self.is_starting = time.monotonic(), False
            if result is not None:
                self.done += 1
                yield self.items.pop(0), result

    def trouble(self, limit_seconds: float) -> str:
        """Return why the item at hand will have no result, "" if it may still have one."""
        if not self.items or self.process is None or self.here is None:
            return ""
        if self.is_gone:
            self.process.join()
            return f"the process died with exit code {self.process.exitcode}"
        limit = limit_seconds + (START_SECONDS if self.is_starting else 0.0)
        if time.monotonic() - self.since > limit:
            return f"did not finish within {limit:g} s"
        return ""

    def end(self) -> None:
        if self.process is not None and self.here is not None:
            self.here.close()
            self.process.kill()
            self.process.join()
        self.here, self.process, self.items = None, None, []


def _serve(work: Callable[[Sequence[Item]], Iterator[Result | None]], there: Connection) -> None:
    """Do batches until the other side is gone."""
    while True:
        try:
            batch = there.recv()
        except EOFError:
            return
        for result in work(batch):
            there.send(result)
