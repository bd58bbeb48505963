"""What a backend returns: the applied model, and the verdict of the real runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedModel:
    """The rewritten model, not yet on disk.

    `files` maps a file name to its bytes. The name "" stands for the output file itself;
    other names (external data) lie beside it. `notes` say what was done or left, for people.
    """

    files: Mapping[str, bytes]
    notes: tuple[str, ...] = ()
    is_order_whole: bool = True  # False: a part of the order cannot be written; a note says which


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRun:
    """What one model took when it really ran, on devices that stand in for the planned ones.

    Measured, never simulated: the figures belong to these devices (CPU cores of one machine)
    and to nothing else.
    """

    devices: tuple[str, ...]  # as the runtime calls them
    peak_bytes: tuple[int, ...]  # per device; () = not measured
    median_s: float  # wall time of a run
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeCheck:
    """One runtime ran the original and the new model in child processes on equal inputs.

    `before` and `after` hold what that runtime measured, in bytes: `head_bytes` and
    `total_bytes` (TFLM arena), `span_bytes` (LiteRT), `heap_peak_bytes` (ONNX Runtime),
    `peak_bytes` (TensorFlow's allocation records). With several devices, what each took is
    in `run_before` and `run_after`.
    """

    runtime: str  # name and version
    outputs_equal: bool
    before: Mapping[str, int]
    after: Mapping[str, int]
    invocations: int
    detail: str = ""  # the first difference, when outputs differ
    noise_bytes: int = 0  # a figure that rises by less says nothing
    tolerance: float = 0.0  # relative difference that counts as equal; 0: bit for bit
    run_before: DeviceRun | None = None
    run_after: DeviceRun | None = None
    placement_honored: bool | None = None  # every op ran on its device; None: not observed
    order_honored: bool | None = None  # every device ran its ops in order; None: not observed

    def is_honored(self, *, whole_order: bool) -> bool:
        """Return whether the runtime was not seen to leave what was written of the plan.

        Args:
            whole_order: the whole order was written; else leaving it is no fault.
        """
        keeps_order = self.order_honored is not False or not whole_order
        return self.placement_honored is not False and keeps_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The verdicts of all runtimes that could run the model; none means `skipped` says why."""

    checks: tuple[RuntimeCheck, ...]
    skipped: str = ""  # why no runtime could judge, or why one of them could not

    @property
    def grows(self) -> str:
        """Return what the first runtime measured above the original, in words; "" if nothing."""
        for check in self.checks[:1]:
            for name, after in check.after.items():
                before = check.before.get(name, after)
                if after > before + check.noise_bytes:
                    figure = name.removesuffix("_bytes").replace("_", " ")
                    return f"{figure} rises from {before:,} B to {after:,} B in {check.runtime}"
        return ""

    def takes_more_than(self, other: Verification) -> bool:
        """Return whether the first runtime measured more for this model than for the other."""
        pairs = zip(self.checks[:1], other.checks[:1], strict=False)
        return any(
            size > theirs.after.get(name, size)
            for ours, theirs in pairs
            for name, size in ours.after.items()
        )

    def is_honored(self, *, whole_order: bool = True) -> bool:
        """Return whether no runtime was seen to leave the placement, or an order that is whole."""
        return all(check.is_honored(whole_order=whole_order) for check in self.checks)

    @property
    def outputs_equal(self) -> bool:
        """Return whether at least one runtime judged, and all that did found equal outputs."""
        return bool(self.checks) and all(check.outputs_equal for check in self.checks)
