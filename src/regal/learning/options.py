"""The options of a training run; needs no torch, so that files are read without it."""

from __future__ import annotations

from dataclasses import dataclass, field

from regal.errors import UsageError
from regal.search.devices.objectives import OBJECTIVES

INLINE = "inline"
ACTORS = (INLINE, "threads", "processes", "ray")
PROBLEMS = ("graphs", "toy")
REINFORCE, OFF_POLICY, EVOLUTION, PREFERENCE = "reinforce", "off-policy", "es", "preference"
ALGORITHMS = (REINFORCE, OFF_POLICY, EVOLUTION, PREFERENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerOptions:
    """How a policy learns."""

    algorithm: str = OFF_POLICY
    learning_rate: float = 1e-3
    entropy: float = 1e-3  # weight of the entropy bonus
    imitation: float = 0.0  # weight of the likelihood of the best keys that are known
    clip: float = 2.0  # importance weights are cut here
    replays: int = 2  # batches from the replay buffer after each fresh one
    replay_batch: int = 16  # tasks
    replay_capacity: int = 1024  # tasks
    replay_exponent: float = 0.6
    replay_correction: float = 0.4
    gradient_norm: float = 1.0
    average: float = 0.98  # of the weights over steps; what is validated and exported. 0: none
    least_deviation: float = 0.002  # rewards of one task that differ by less are noise
    most_kept: int = 4096  # tasks whose best keys are kept
    preference_scale: float = 1.0  # of preferences: the larger, the sooner they are sure enough
    deviation: float = 0.5  # of moved weights, as a share of their usual size; for "es" alone

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise UsageError(
                f"learner: unknown algorithm '{self.algorithm}'; known: {', '.join(ALGORITHMS)}"
            )
        for name in ("replay_batch", "replay_capacity", "most_kept"):
            if getattr(self, name) < 1:
                raise UsageError(f"learner: {name} is {getattr(self, name)}; give 1 or more")
        if self.deviation <= 0:
            raise UsageError(f"learner: deviation is {self.deviation}; give more than 0")
        if self.algorithm == EVOLUTION and self.imitation > 0:
            raise UsageError("learner: 'es' does not imitate; set imitation = 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOptions:
    """The size of a network."""

    hidden: int = 48
    layers: int = 4
    sees_graph: bool = True  # False: no messages along edges, the graph-blind ablation


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """Which tasks are trained on, and validated on."""

    problem: str = "graphs"  # "toy": a problem whose optimum is known
    fewest_ops: int = 30
    most_ops: int = 600
    first_most_ops: int = 600  # curriculum: graphs grow from this to most_ops
    growth: int = 200  # iterations until they have grown
    objectives: tuple[str, ...] = ("memory",)  # one named twice is drawn twice as often
    devices: tuple[str, ...] = ("2",)  # presets or numbers; "random": drawn for each task
    varied: float = 0.5  # share of tasks that are variations of a graph
    headroom: float = 0.01  # tasks where a good schedule gains less than this are left out
    valid_graphs: int = 40  # of the valid side; families take turns. Policy "prior": problems
    frameworks: tuple[str, ...] = ()  # of the graphs; (): all
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
    start: str = ""  # a BEST file of another run to start from; "": random weights
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

    kind: str = INLINE
    count: int = 1
    address: str = ""  # of a Ray cluster; "": one is started here

    def __post_init__(self) -> None:
        if self.kind not in ACTORS:
            raise UsageError(f"actors.kind is '{self.kind}'; known: {', '.join(ACTORS)}")
        if self.count < 1:
            raise UsageError(f"actors.count is {self.count}; give 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorOptions:
    """How the policy of the default method learns."""

    problems: int = 900  # of the training side
    mode_problems: int = 400  # of them, for each decoder, that modes are learned from
    elite_evaluations: int = 800  # of the long searches whose ends are candidates
    candidates: int = 500  # means that are tried on all problems, for each decoder
    modes: int = 128  # of them that the policy knows
    mode_steps: int = 150
    budgets: tuple[int, ...] = (100, 300, 1000)  # evaluations of the runs that arms learn from
    budget_weights: tuple[float, ...] = (0.4, 0.45, 0.15)
    until: tuple[int, ...] = ()  # evaluations that arms guide: what validates best; (): to the end
    average: float = 0.9  # of the weights over iterations: what stays of the mean each time
    decay: float = 0.01  # of the weights of the arms, per step and learning rate

    def __post_init__(self) -> None:
        if not self.budgets or len(self.budgets) != len(self.budget_weights):
            raise UsageError("prior: give as many budget_weights as budgets, at least one")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    """What a policy of learned columns tries."""

    directions: int = 24  # random functions of the features of ops, anew for each task
    column_deviation: float = 0.3  # of what is added to a column of an op
    weight_deviation: float = 0.4  # of the weights of features

    def __post_init__(self) -> None:
        if self.directions < 1 or not (self.column_deviation > 0 and self.weight_deviation > 0):
            raise UsageError("columns: give 1 or more directions, and deviations above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """One training run."""

    policy: str = "paper"
    data: DataOptions = field(default_factory=DataOptions)
    network: NetworkOptions = field(default_factory=NetworkOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    prior: PriorOptions = field(default_factory=PriorOptions)
    columns: ColumnOptions = field(default_factory=ColumnOptions)
    learner: LearnerOptions = field(default_factory=LearnerOptions)
    trainer: TrainerOptions = field(default_factory=TrainerOptions)
    actors: ActorOptions = field(default_factory=ActorOptions)
