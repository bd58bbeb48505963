"""What a suite is: methods x graphs x objectives x systems x seeds x budgets.

docs/evaluate.md explains the format of its file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from regal.errors import UsageError
from regal.search.devices.objectives import Weights, require_objective

if TYPE_CHECKING:
    from regal.evaluation.methods import MethodEntry

REPORT, TUNING = "report", "tuning"
PURPOSES: Final = (REPORT, TUNING)
BALANCED = "balanced"  # the objective that weights decide; "balanced 3:1" brings its own
OWN_SYSTEM = "own"  # the devices that a task graph describes itself
DRAWN_SYSTEM = "drawn"  # drawn from the graph's hash, as for training, but with room enough
ALL_SYSTEMS = "all"  # in tables: over every system
MOST = 1_000_000  # of any count in a suite
LIMIT_SECONDS = 600
OPS, DEVICES, FRAMEWORK = "ops", "devices", "framework"
GROUPINGS: Final = (OPS, DEVICES, FRAMEWORK)  # what gains can be told apart by, besides families


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRule:
    """How much a run may do; exactly one of `evaluations`, `seconds` and `seconds_of` rules.

    With `seconds_of`, a run gets the wall time that this method took on the same graph, system,
    objective and seed, in its run of `evaluations`.
    """

    evaluations: int | None = None
    seconds: float | None = None
    seconds_of: str = ""
    methods: tuple[str, ...] = ()  # labels; (): all
    seeds: int = MOST  # only the first ones of the suite

    @property
    def text(self) -> str:
        """Return the budget in words, as rows and tables call it."""
        if self.seconds_of:
            return f"time of {self.seconds_of}, {self.evaluations:,} evaluations"
        if self.evaluations is not None:
            return f"{self.evaluations:,} evaluations"
        return f"{self.seconds:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What gains are measured against: a method, at so many evaluations or at equal budget."""

    method: str = "brkga"
    evaluations: int | None = 5_000  # None: the budget of the row itself
    methods: tuple[str, ...] = ()  # labels of what is compared with it; (): all others


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A comparison that is tested: a method with another one, at each budget that both have."""

    method: str  # labels
    against: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Pair):
    """The one comparison that a study is about, named before it is run."""

    objective: str
    budget: str  # as `BudgetRule.text` says it
    system: str = ALL_SYSTEMS


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphsRule:
    """Which graphs: of the data set, files, planted or made ones. One of the four."""

    # The data set: what is empty does not restrict.
    splits: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    fewest_ops: int = 0
    most_ops: int = MOST
    most_per_family: int = MOST  # those that a hash of their keys puts first
    # Files, relative to a folder that is given when the suite runs.
    files: tuple[str, ...] = ()
    family: str = ""  # of the files; "": each file is one of its own
    # Planted graphs.
    planted: str = ""  # "time" or "memory"
    devices: tuple[int, ...] = ()
    # Random graphs of a family of `regal.data.synthetic`, of any size.
    synthetic: str = ""
    ops: tuple[int, ...] = ()  # of planted and random graphs
    count: int = 1  # of each size (and number of devices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What is run, and how it is compared."""

    name: str
    about: str
    purpose: str
    objectives: tuple[str, ...]
    systems: tuple[str, ...]
    seeds: tuple[int, ...]
    methods: tuple[MethodEntry, ...]
    budgets: tuple[BudgetRule, ...]
    graphs: tuple[GraphsRule, ...]
    references: tuple[Reference, ...] = (Reference(),)  # the first one is the main one
    weights: Weights = field(default_factory=Weights)  # of "balanced"
    threads: int = 1
    limit_seconds: float = LIMIT_SECONDS  # of wall time per run; then it is a failure
    # What else the tables show.
    primary: Endpoint | None = None
    secondary: tuple[Pair, ...] = ()  # tested too, corrected for their number
    groups: tuple[str, ...] = ()  # of GROUPINGS
    per_family: bool = True  # a table of gains per family
    within: tuple[float, ...] = ()  # percent: when do methods get so close to the best?


def budgets_of(suite: Suite, label: str) -> list[BudgetRule]:
    """Return the budgets at which the suite runs the method with this label."""
    return [rule for rule in suite.budgets if not rule.methods or label in rule.methods]


def weights_of(objective: str, usual: Weights) -> tuple[str, Weights]:
    """Return the plain name and the weights of an objective of a suite, "balanced 3:1" too.

    Raises:
        UsageError: there is no such objective.
    """
    name, _, ratio = objective.partition(" ")
    if name != BALANCED or not ratio:
        return require_objective(objective), usual
    time, _, memory = ratio.partition(":")
    if not (time.isdecimal() and memory.isdecimal() and int(time) and int(memory)):
        raise UsageError(
            f"objective '{objective}': give two whole numbers above 0, time:memory, for example"
            " 'balanced 3:1'"
        )
    return name, Weights(time=float(time), memory=float(memory))
