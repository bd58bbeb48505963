"""The methods of a suite: a name, a label, and what the method may know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from regal.errors import UsageError
from regal.search.devices.methods import require_device_method

NO_POLICY: Final = "none"
POLICIES: Final = (NO_POLICY,)
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

    name: str  # as `regal optimize --method` takes it
    label: str
    policy: str = NO_POLICY

    @property
    def options(self) -> dict[str, str]:
        """Return what rows say of it besides its name."""
        return {"policy": self.policy}


def require_known(entry: MethodEntry) -> MethodEntry:
    """Return `entry` if there is such a method with such a policy.

    Raises:
        UsageError: there is not; the message lists what there is.
    """
    require_device_method(entry.name)
    if entry.policy not in POLICIES:
        raise UsageError(
            f"method '{entry.label}': unknown policy '{entry.policy}'; known: {', '.join(POLICIES)}"
        )
    return entry
