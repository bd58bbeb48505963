"""Kasahara's standard task graphs (.stg): tasks with times and predecessors, nothing else.

The first line is the number of tasks; then one line per task: its number, its time, the number
of its predecessors, and these; with communication each is followed by its time, or has a line of
its own with both. Two dummy tasks, the entry and the exit, are usually not counted. What follows
a "#" is a remark. The files leave the unit open: one unit of time is a millisecond here.
Dependencies carry no bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.task_graphs.fields import NS_PER_MS, integer_in, ns_of, number_in, text_of
from regal.frontends.task_graphs.tasks import TaskGraph

if TYPE_CHECKING:
    from regal.graph.types import LoadedModel


def parse(data: bytes, name: str) -> LoadedModel:
    """Return the task graph.

    Raises:
        ModelError: names the task and the line.
    """
    lines = [
        (number, line.split("#")[0].split())
        for number, line in enumerate(text_of(data, name).splitlines(), 1)
    ]
    rows = [(number, words) for number, words in lines if words]
    if not rows or len(rows[0][1]) != 1:
        raise ModelError(f"'{name}' does not begin with its number of tasks, as STG files do")
    count = integer_in(rows[0][1][0], f"'{name}': the number of tasks")
    rows = _joined(rows[1:], name)
    if len(rows) not in (count, count + 2):
        raise ModelError(
            f"'{name}' announces {count} tasks (and perhaps an entry and an exit) but has"
            f" {len(rows)} tasks; expected {count} or {count + 2}"
        )
    graph = TaskGraph(name.removesuffix(".stg"))
    tasks: dict[int, int] = {}
    for number, words in rows:
        where = f"'{name}': line {number}"
        task = integer_in(words[0], f"{where}: the number of the task")
        if task in tasks:
            raise ModelError(f"{where} is another task {task}; numbers identify tasks")
        time = number_in(words[1], f"{where}: the time of task {task}")
        tasks[task] = graph.task(
            f"task{task}", "task", times_ns={"": ns_of(time, NS_PER_MS, f"{where}: its time")}
        )
    for number, words in rows:
        _add_predecessors(graph, tasks, words, f"'{name}': line {number}")
    return graph.model()


def _joined(lines: list[tuple[int, list[str]]], name: str) -> list[tuple[int, list[str]]]:
    """Return one row per task: predecessors that follow on lines of their own belong to it."""
    rows: list[tuple[int, list[str]]] = []
    missing = 0  # lines of predecessors
    for number, words in lines:
        if missing > 0 and len(words) == 2:
            rows[-1][1].extend(words)
            missing -= 1
            continue
        where = f"'{name}': line {number}"
        if len(words) < 3:
            raise ModelError(f"{where} has {len(words)} numbers; a task has at least 3")
        count = integer_in(words[2], f"{where}: the number of predecessors")
        missing = count if len(words) == 3 else 0
        rows.append((number, list(words)))
    return rows


def _add_predecessors(
    graph: TaskGraph, tasks: dict[int, int], words: list[str], where: str
) -> None:
    task = tasks[int(words[0])]
    count = integer_in(words[2], f"{where}: the number of predecessors")
    rest = words[3:]
    if len(rest) not in (count, 2 * count):
        raise ModelError(
            f"{where}: task {words[0]} announces {count} predecessors but lists {len(rest)}"
            f" numbers; expected {count}, or {2 * count} with communication times"
        )
    has_times = len(rest) == 2 * count > 0
    for i, word in enumerate(rest[:: 2 if has_times else 1]):
        earlier = integer_in(word, f"{where}: a predecessor")
        if earlier not in tasks:
            raise ModelError(f"{where}: task {words[0]} names task {earlier}, which does not exist")
        time = number_in(rest[2 * i + 1], f"{where}: a communication time") if has_times else 0
        transfer_ns = ns_of(time, NS_PER_MS, f"{where}: a communication time")
        graph.hand_over(tasks[earlier], task, 0, transfer_ns)
