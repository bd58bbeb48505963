"""What a training run is: a TOML file, read into frozen dataclasses, with overrides."""

from __future__ import annotations

import tomllib

from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from regal.errors import UsageError
from regal.learning.learner import LearnerOptions
from regal.learning.network import NetworkOptions
from regal.search.devices.objectives import OBJECTIVES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

T = TypeVar("T")
ACTORS = ("inline", "threads", "processes", "ray")
PROBLEMS = ("graphs", "toy")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """Which tasks are trained on, and validated on."""

    problem: str = "graphs"  # "toy": a problem whose optimum is known
    fewest_ops: int = 30
    most_ops: int = 600
    first_most_ops: int = 600  # curriculum: graphs grow from this to most_ops
    growth: int = 200  # iterations until they have grown
    objectives: tuple[str, ...] = ("memory",)
    devices: tuple[str, ...] = ("2",)  # presets or numbers; "random": drawn for each task
    varied: float = 0.5  # share of tasks that are variations of a graph
    headroom: float = 0.01  # tasks where a good schedule gains less than this are left out
    valid_graphs: int = 40  # of the valid side; families take turns
    limit: int = 0  # most training graphs, families take turns; 0: all

    def __post_init__(self) -> None:
        if self.problem not in PROBLEMS:
            raise UsageError(f"data.problem is '{self.problem}'; known: {', '.join(PROBLEMS)}")
        for name in self.objectives:
            if name not in OBJECTIVES:
                raise UsageError(f"data.objectives: unknown '{name}'")
        if not self.objectives or not self.devices:
            raise UsageError("data: give at least one of objectives and of devices")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The searches whose outcome is the reward."""

    evaluations: int = 300
    seeds: int = 8  # different seeds per task; siblings share theirs
    valid_evaluations: int = 300
    valid_seeds: int = 2
    lesson_evaluations: int = 2000  # of the strong search that finds keys to imitate; 0: none
    lessons: int = 2  # per task, with different seeds


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerOptions:
    """How long training runs, and what it keeps."""

    seed: int = 0
    warmup: int = 0  # steps of imitation alone, before iteration 0
    iterations: int = 200
    tasks: int = 8  # per iteration
    samples: int = 8  # searches per task
    correlation: float = 1.0  # of what is tried for alike ops; 0: as in the paper, independent
    valid_every: int = 10
    patience: int = 10  # validations without a better one before it stops; 0: never
    checkpoint_every: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorOptions:
    """Who runs the searches."""

    kind: str = "inline"
    count: int = 1
    address: str = ""  # of a Ray cluster; "": one is started here

    def __post_init__(self) -> None:
        if self.kind not in ACTORS:
            raise UsageError(f"actors.kind is '{self.kind}'; known: {', '.join(ACTORS)}")
        if self.count < 1:
            raise UsageError(f"actors.count is {self.count}; give 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """One training run."""

    policy: str = "paper"
    data: DataOptions = field(default_factory=DataOptions)
    network: NetworkOptions = field(default_factory=NetworkOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    learner: LearnerOptions = field(default_factory=LearnerOptions)
    trainer: TrainerOptions = field(default_factory=TrainerOptions)
    actors: ActorOptions = field(default_factory=ActorOptions)


def read_config(path: Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """Return the configuration of a file, with `key=value` overrides applied.

    Args:
        path: a TOML file; what it leaves out has its default.
        overrides: "learner.samples=4": the value as TOML writes it; text needs no quotes.

    Raises:
        UsageError: the file is missing or broken, or a key or a value is wrong.
    """
    try:
        table = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"config '{path}' cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"config '{path}' is not TOML: {error}") from None
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


def _set(table: dict[str, Any], override: str) -> None:
    key, sign, text = override.partition("=")
    if not sign or not key.strip():
        raise UsageError(f"override '{override}' is not KEY=VALUE; write for example trainer.seed=1")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
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
        items = value if isinstance(value, list) else [value]
        return tuple(_value(inner, item, name) for item in items)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise UsageError(f"config: '{name}' is {value!r}; give a {hint.__name__}")
    return value
