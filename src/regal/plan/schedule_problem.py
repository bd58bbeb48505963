"""Turn a graph, a system and its costs into the numbers that the native kernel searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from regal._native import DeviceProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleProblem:
    """The problem "which device runs each op, in which order do ops and transfers run?".

    N ops, D devices, T tensors that can be sent, S counted storages, R residents (parameters,
    constants, state). All arrays are int64. Their meaning is that of native/device_problem.h.
    """

    native: DeviceProblem
    durations: NDArray[np.int64]  # (N, D) ns, or -1: the device cannot run the op
    data_edges: NDArray[np.int64]  # (E, 3): producer op, reader op, tensor row
    control_edges: NDArray[np.int64]  # (C, 2): earlier op, later op
    input_reads: NDArray[np.int64]  # (I, 2): reader op, tensor row of a graph input
    producers: NDArray[np.int64]  # (T,): op or -1
    tensor_storages: NDArray[np.int64]  # (T,): storage row or -1
    outputs: NDArray[np.int64]  # tensor rows
    storage_bytes: NDArray[np.int64]  # (S,)
    workspace: NDArray[np.int64]  # (N,)
    groups: NDArray[np.int64]  # (N,): equal = colocated
    resident_bytes: NDArray[np.int64]  # (R,)
    resident_users: NDArray[np.int64]  # (U, 2): op, resident
    capacity: NDArray[np.int64]  # (D,); 2**63 - 1 = no limit
    link_classes: NDArray[np.int64]  # (D, D), -1 on the diagonal
    transfers: NDArray[np.int64]  # (classes, T) ns
    latency: NDArray[np.int64]  # (D, D) ns of a control edge
    tensors: tuple[int, ...]  # tensor row -> tensor of the graph
    storages: tuple[int, ...]  # storage row -> storage of the graph
    residents: tuple[int, ...]  # resident row -> storage of the graph
    has_contention: bool
    capacity_counts_live: bool

    @property
    def n_ops(self) -> int:
        """Return N."""
        return len(self.durations)

    @property
    def n_devices(self) -> int:
        """Return D."""
        return self.durations.shape[1]
