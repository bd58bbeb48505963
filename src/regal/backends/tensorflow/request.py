"""What the child process that runs TensorFlow is asked, and what it answers: plain JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

# Per device, its ops in planned order, each as the nodes that it stands for.
Units = tuple[tuple[tuple[str, ...], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """A tensor that is given in every run."""

    tensor: str  # "x:0"
    dtype: str  # numpy's name, or "string"
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One graph to run. A case that fails does not keep later ones from running.

    `units` say what is planned; empty: whatever it does is right.
    """

    name: str
    graph: str  # path of a GraphDef
    units: Units = ()
    inner: tuple[str, ...] = ()  # nodes of units that lie inside loops
    workers: bool = False  # one worker process per device, else logical devices of one process
    grappler: bool = False  # with TensorFlow's own graph optimizations


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Cases that get equal inputs, in the order in which they run: those of one entry."""

    cases: tuple[Case, ...]
    feeds: tuple[Feed, ...]
    fetches: tuple[str, ...]  # tensors; a node without a result that can be fetched is run
    targets: tuple[str, ...]  # nodes that run although nothing of them is fetched
    init: tuple[str, ...]  # nodes that run once, first


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Jobs, and how to run them."""

    jobs: tuple[Job, ...]
    n_devices: int
    seed: int
    invocations: int


@dataclass(slots=True, kw_only=True)
class CaseResult:
    """What became of a case, as far as it came.

    `digests` has one row per run, with one digest per fetch; `state` one per variable at the
    end. `misplaced` and `disordered` say where a trace left the plan, in words.
    """

    name: str
    error: str = ""
    style: str = ""  # of the inputs
    digests: list[list[str]] = field(default_factory=list)
    state: dict[str, str] = field(default_factory=dict)
    filled: int = 0  # variables that no initializer of the file fills
    seconds: list[float] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)  # bytes per device
    traced: bool = False
    observed: int = 0  # ops of the plan that the trace shows
    misplaced: str = ""
    disordered: str = ""
    transfers: int = 0  # tensors that were received from another device


def to_json(request: Request) -> dict[str, Any]:
    """Return a request as JSON."""
    return asdict(request)


def request_of(document: dict[str, Any]) -> Request:
    """Return the request in a JSON object."""
    return Request(**{**document, "jobs": tuple(_job_of(row) for row in document["jobs"])})


def _job_of(document: dict[str, Any]) -> Job:
    cases = tuple(_case_of(row) for row in document["cases"])
    feeds = tuple(Feed(**{**row, "shape": tuple(row["shape"])}) for row in document["feeds"])
    lists = {key: tuple(document[key]) for key in ("fetches", "targets", "init")}
    return Job(cases=cases, feeds=feeds, **lists)


def _case_of(row: dict[str, Any]) -> Case:
    return Case(**{**row, "units": _units_of(row["units"]), "inner": tuple(row["inner"])})


def _units_of(rows: list[list[list[str]]]) -> Units:
    return tuple(tuple(tuple(names) for names in device) for device in rows)
