"""The methods of a suite: a name, a label, and what the method may know."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from regal.errors import UsageError
from regal.evaluation.variants import VARIANTS
from regal.policy.choice import require_policy
from regal.search.devices.methods import device_method_named, keeps_before, require_device_method

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from regal.search.devices.types import DeviceMethod

POLICY_SUFFIX: Final = ".onnx"
NO_POLICY: Final = "none"
# Methods whose number of schedules is theirs alone: they run whatever the budget is.
BUDGET_FREE: Final = frozenset(
    {
        "single-device", "round-robin", "file-order", "dfs", "bfs", "greedy-memory", "m-topo",
        "m-etf", "m-sct", "etf", "heft", "cpop", "peft", "heuristics", "partition-dfs",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodEntry:
    """One method of a suite; rows and tables call it by its label."""

    name: str  # as `regal optimize --method` takes it, or of `VARIANTS`
    label: str
    policy: str = NO_POLICY  # see `regal.policy.choice`, or NAME.onnx in a folder that is given
    file: Path | None = None  # of the policy, once it is found
    file_hash: str = ""

    @property
    def options(self) -> dict[str, str]:
        """Return what rows say of it besides its name."""
        found = {"policy": self.policy}
        return found | ({"sha256": self.file_hash} if self.file_hash else {})

    @property
    def keeps_before(self) -> bool:
        """Return whether it may fall back on what happens without it: our search, whole or not."""
        return keeps_before(self.name) or self.name in VARIANTS

    def method(self) -> DeviceMethod:
        """Return what runs.

        Raises:
            UsageError: its policy is in none of the folders.
        """
        if self.name in VARIANTS:
            return VARIANTS[self.name]
        if _is_file(self.policy) and self.file is None:
            raise UsageError(f"policy '{self.policy}' is in no folder of --policies")
        return device_method_named(self.name, str(self.file or self.policy))


def require_known(entry: MethodEntry) -> MethodEntry:
    """Return `entry` if there is such a method with such a policy; files are looked up later.

    Raises:
        UsageError: there is not; the message lists what there is.
    """
    if entry.name in VARIANTS:
        return entry
    require_device_method(entry.name)
    try:
        if not _is_file(entry.policy):
            require_policy(entry.policy)
    except UsageError as error:
        raise UsageError(f"method '{entry.label}': {error}") from None
    return entry


def found_in(entry: MethodEntry, folders: Sequence[Path]) -> MethodEntry:
    """Return `entry` with the file of its policy, from the first folder that has it.

    Without one it stays as it is: its runs will fail and say so.
    """
    if not _is_file(entry.policy):
        return entry
    path = next((f / entry.policy for f in folders if (f / entry.policy).is_file()), None)
    if path is None:
        return entry
    return replace(entry, file=path, file_hash=hashlib.sha256(path.read_bytes()).hexdigest()[:16])


def _is_file(policy: str) -> bool:
    return policy.lower().endswith(POLICY_SUFFIX)
