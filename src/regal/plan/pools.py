"""Pools: which memory of a device each buffer of a plan lies in, beside its one arena."""

from __future__ import annotations

from dataclasses import dataclass
from reprlib import repr as repr_of
from typing import TYPE_CHECKING, Any, NamedTuple

from regal.devices.fields import Fields
from regal.devices.file import pool_from_fields, pool_to_dict
from regal.errors import PlanError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from regal.devices.types import Pool


class Slot(NamedTuple):
    """Where one buffer lies: a position in `PoolPlan.pools`, and bytes from the start there."""

    pool: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPlan:
    """A slot for every buffer of a plan, and for what lies there all the time.

    Storages that are joined in place share their slot. Offsets inside a body count from the slot
    of its op's block. Extents of pools may pass their sizes: that is an overflow, a status.
    """

    pools: tuple[Pool, ...]  # fastest first
    storages: Mapping[int, Slot]  # of Plan.offsets
    workspaces: Mapping[int, Slot]  # of Plan.workspaces
    residents: tuple[Slot, ...]  # as in `residents_of` of the graph
    used_bytes: tuple[int, ...]  # per pool: the extent of what lies there

    @property
    def overflow_bytes(self) -> int:
        """Return the bytes above the pools, summed over them."""
        return sum(
            max(0, used - pool.bytes)
            for pool, used in zip(self.pools, self.used_bytes, strict=True)
        )


def pools_to_dict(plan: PoolPlan, op_names: Sequence[str]) -> dict[str, Any]:
    """Return the JSON object of a pool plan; `pools_from_dict` reads it back."""
    return {
        "memories": [pool_to_dict(pool) for pool in plan.pools],
        "used_bytes": list(plan.used_bytes),
        "offsets": {str(s): list(plan.storages[s]) for s in sorted(plan.storages)},
        "workspaces": {op_names[i]: list(plan.workspaces[i]) for i in sorted(plan.workspaces)},
        "residents": [list(slot) for slot in plan.residents],
    }


def pools_from_dict(value: object, op_names: Sequence[str]) -> PoolPlan:
    """Return the pool plan in a JSON object; it is not judged here.

    Raises:
        PlanError: a key is unknown, missing or wrong.
    """
    try:
        fields = Fields(value, "plan: pools")
        storages, workspaces = fields.table("offsets"), fields.table("workspaces")
        op_number = {name: i for i, name in enumerate(op_names)}
        plan = PoolPlan(
            pools=tuple(pool_from_fields(table) for table in fields.tables("memories")),
            used_bytes=tuple(_whole(used) for used in fields.items("used_bytes")),
            storages={_number(key): _slot(storages.items(key)) for key in storages.keys()},  # noqa: SIM118
            workspaces={
                op_number.get(name, -1): _slot(workspaces.items(name))
                for name in workspaces.keys()  # noqa: SIM118
            },
            residents=tuple(_slot(row) for row in fields.items("residents")),
        )
        fields.require_no_more()
    except UsageError as error:
        raise PlanError(str(error)) from None
    return plan


def _number(key: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) < 19 and str(int(key)) == key):
        raise PlanError(f"plan: pools: '{key}' is no number of a storage")
    return int(key)


def _slot(value: object) -> Slot:
    if not isinstance(value, list) or len(value) != 2:
        raise PlanError(f"plan: pools: {repr_of(value)} is not [pool, offset]")
    return Slot(_whole(value[0]), _whole(value[1]))


def _whole(value: object) -> int:
    if type(value) is not int or abs(value) >= 1 << 62:
        raise PlanError(f"plan: pools: {repr_of(value)} is not an integer below 2^62")
    return value
