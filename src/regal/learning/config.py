"""What a training run is: a TOML file, read into frozen dataclasses, with overrides."""

from __future__ import annotations

from dataclasses import asdict, fields, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from regal.devices.fields import table_of_toml
from regal.errors import UsageError
from regal.files import read_text
from regal.learning.options import TrainConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

T = TypeVar("T")

# Numbers without which a run has nothing to do; all others may be 0, and none is below it.
ONE_OR_MORE = frozenset(
    {
        "network.hidden",
        "search.evaluations",
        "search.seeds",
        "search.valid_evaluations",
        "search.valid_seeds",
        "trainer.tasks",
        "trainer.samples",
        "trainer.valid_every",
        "trainer.checkpoint_every",
    }
)
SHARES = frozenset(
    {"data.varied", "learner.average", "learner.learning_rate", "prior.average"}
    | {"trainer.correlation"}
)
ANY_SIGN = frozenset({"data.headroom"})  # below 0: no task is left out
LARGEST = 2**62  # what PyTorch takes as a seed, and more than anything that is counted
KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def read_config(path: Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Return the configuration of a file, with `key=value` overrides applied.

    Args:
        path: a TOML file; what it leaves out has its default.
        overrides: "learner.samples=4": the value as TOML writes it; text needs no quotes.

    Raises:
        UsageError: the file is missing or broken, or a key or a value is wrong.
    """
    table = table_of_toml(read_text(path, "config"), f"config '{path}'")
    for override in overrides:
        _set(table, override)
    return config_of(table)


def config_of(table: Mapping[str, Any]) -> TrainConfig:
    """Return the configuration that a table of tables describes.

    Raises:
        UsageError: a key or a value is wrong.
    """
    return _built(TrainConfig, table, "")


def config_to_dict(config: TrainConfig) -> dict[str, Any]:
    """Return the table of a configuration, defaults included."""
    return asdict(config)


def require_same_options(written: Mapping[str, Any], config: TrainConfig, path: Path) -> None:
    """Raise unless a checkpoint's configuration fits: what its run learns is the same.

    Options that have been added since have their defaults. The trainer's may differ (more
    iterations), and who runs the searches.

    Raises:
        UsageError: another part differs.
    """
    old, wanted = config_to_dict(config_of(written)), config_to_dict(config)
    for part in wanted:
        if part not in ("actors", "trainer") and old[part] != wanted[part]:
            raise UsageError(
                f"checkpoint '{path}' was written with other options of '{part}'; use its"
                " configuration, or another folder"
            )


def _set(table: dict[str, Any], override: str) -> None:
    key, sign, text = override.partition("=")
    if not sign or not key.strip():
        raise UsageError(
            f"override '{override}' is not KEY=VALUE; write for example trainer.seed=1"
        )
    try:
        value = table_of_toml(f"value = {text}", "value")["value"]
    except UsageError:
        value = text.strip()
    *path, last = key.strip().split(".")
    for part in path:
        inner = table.setdefault(part, {})
        if not isinstance(inner, dict):
            raise UsageError(f"override '{override}': '{part}' is not a table")
        table = inner
    table[last] = value


def _built(kind: type[T], table: Mapping[str, Any], prefix: str) -> T:
    hints = get_type_hints(kind)
    known = {field.name: hints[field.name] for field in fields(kind)}  # type: ignore[arg-type]
    values = {}
    for name, value in table.items():
        if name not in known:
            raise UsageError(f"config: unknown key '{prefix}{name}'; known: {', '.join(known)}")
        values[name] = _value(known[name], value, f"{prefix}{name}")
    return kind(**values)


def _value(hint: Any, value: Any, name: str) -> Any:
    if is_dataclass(hint):
        if not isinstance(value, dict):
            raise UsageError(f"config: '{name}' is a table")
        return _built(hint, value, f"{name}.")  # type: ignore[arg-type]
    if get_origin(hint) is tuple:
        (inner, *_) = get_args(hint)
        items = value if isinstance(value, list | tuple) else [value]
        return tuple(_value(inner, item, name) for item in items)
    if hint is float and type(value) is int and abs(value) <= LARGEST:
        value = float(value)
    if type(value) is not hint:
        raise UsageError(f"config: '{name}' is {value!r}; give {KINDS[hint]}")
    if hint in (int, float):
        _require_in_range(value, name)
    return value


def _require_in_range(value: float, name: str) -> None:
    least = -LARGEST if name in ANY_SIGN else int(name in ONE_OR_MORE)
    most = 1 if name in SHARES else LARGEST
    if not isfinite(value) or not least <= value <= most:
        limits = f"{least} to 1" if name in SHARES else f"{least} or more"
        end = f", at most {most}" if value > most and name not in SHARES else ""
        raise UsageError(f"config: '{name}' is {value}; give {limits}{end}")
