"""Which policy a search is given: none, an untrained one, the one that ships, or a file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from regal.errors import UsageError
from regal.policy.model import load_network

if TYPE_CHECKING:
    from typing import Self

    from regal.policy.model import PolicyNetwork
    from regal.search.devices.types import Objective

NONE, UNTRAINED, DEFAULT = "none", "untrained", "default"
NAMED = (NONE, UNTRAINED, DEFAULT)
SHIPPED = Path(__file__).parent / "weights"
MEMORY = "memory"  # the part of an objective where running time does not count


def require_policy(policy: str) -> str:
    """Return `policy` if it names a policy or a file that is there.

    Raises:
        UsageError: it does not.
    """
    if policy not in NAMED and not Path(policy).is_file():
        raise UsageError(f"policy '{policy}' is neither a file nor one of {', '.join(NAMED)}")
    return policy


def part_of(objective: Objective) -> str:
    """Return which networks of a kind an objective is for: "", or "memory" if that alone counts."""
    return "" if objective.per_ns > 0 else MEMORY


def network_for(policy: str, kind: str, objective: str = "") -> PolicyNetwork | None:
    """Return the network of a policy; None where there is none: "none", "untrained".

    Args:
        policy: see `require_policy`.
        kind: what the network must be for, "paper" for example.
        objective: see `part_of`; the policy that ships may have a network of its own for it.

    Raises:
        UsageError: the file is missing, broken, or of another kind.

    Cost: 0.3 s at first; a network that was read is kept.
    """
    if policy in (NONE, UNTRAINED):
        return None
    path = _shipped(kind, objective) if policy == DEFAULT else Path(policy)
    network = _loaded(path)
    if network.kind != kind:
        raise UsageError(f"policy '{path}' is of kind '{network.kind}'; this method needs '{kind}'")
    return network


@runtime_checkable
class UsesPolicy(Protocol):
    """A method that is guided by a policy."""

    def with_policy(self, policy: str) -> Self:
        """Return the method with another policy; see `require_policy`."""
        ...


def _shipped(kind: str, objective: str) -> Path:
    own = SHIPPED / f"{kind}-{objective}.onnx"
    return own if own.exists() else SHIPPED / f"{kind}.onnx"


@lru_cache(maxsize=4)
def _loaded(path: Path) -> PolicyNetwork:
    return load_network(path)
