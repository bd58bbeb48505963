"""What the child process that runs parts is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsRequest:
    """What to run. All paths are strings, so that a request is JSON."""

    original: str
    whole: str  # the written model, in one file
    index: str  # the files of its parts lie beside it
    named: str  # a folder with the same parts, their nodes named by position; "" = do not trace
    external_folder: str  # where external data of the original lie
    written_folder: str  # where those of the written files lie
    shapes: dict[str, list[int]]  # of inputs
    seed: int
    invocations: int
    tolerance: float  # relative


@dataclass(slots=True, kw_only=True)
class PartsResult:
    """What happened, as far as it came: it is written down step by step."""

    original_ran: bool = False
    reason: str = ""  # why the original did not run
    failure: str = ""  # what the written model did wrong
    invocations: int = 0  # in which all outputs were equal
    seconds_before: list[float] = field(default_factory=list)
    seconds_after: list[float] = field(default_factory=list)
    peak_before: int = -1
    peaks_after: list[int] = field(default_factory=list)  # per device
    out_of_order: str = ""  # the first node that ran where it should not
    traced: bool = False
    added_kernels: int = 0  # by ONNX Runtime: where there are some, it orders as it likes


def times_of(seconds: list[float]) -> tuple[float, int]:
    """Return the median wall time in s and the number of runs, without the first one."""
    counted = seconds[1:] or seconds
    return (median(counted), len(counted)) if counted else (0.0, 0)
