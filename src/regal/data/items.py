"""What the data set is built from: one item, one graph."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

INFERENCE = "inference"
TRAINING = "training"  # forward, backward, and the optimizer's update where it is traced
JOINT = "joint"  # forward and backward as one functional graph, without an update
MODES = (INFERENCE, TRAINING, JOINT)
SYNTHETIC = "synthetic"  # the source of graphs that no network has


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Item:
    """One graph to trace: an architecture, at a batch size, for inference or training."""

    framework: str  # "torch", "tensorflow", "jax", "onnx", "tflite"
    source: str  # the package that defines the architecture: "timm", "keras.applications"
    family: str  # kin architectures have one family, whatever the framework
    architecture: str  # the name in its source
    mode: str = INFERENCE
    batch: int = 1

    @property
    def key(self) -> str:
        """Return the name of the item, unique in the data set."""
        return f"{self.framework}/{self.source}/{self.architecture}/{self.mode}-b{self.batch}"


def items_of(
    framework: str,
    source: str,
    families: Mapping[str, str],
    *,
    modes: Sequence[str] = (INFERENCE, TRAINING),
    training_batch: int,
) -> list[Item]:
    """Return the items of a source: every architecture in every mode.

    Args:
        framework: of all of them.
        source: the package that defines them.
        families: architecture -> family.
        modes: some of `MODES`.
        training_batch: batch of all modes but inference, which is of one.
    """
    return [
        Item(
            framework=framework,
            source=source,
            family=family,
            architecture=name,
            mode=mode,
            batch=1 if mode == INFERENCE else training_batch,
        )
        for name, family in families.items()
        for mode in modes
    ]


def breadth_first(items: Iterable[Item]) -> list[Item]:
    """Return the items so that any beginning of the list is spread over families.

    Inference comes first, then training, then the rest; in each, the first architecture of
    every family, then the second, and so on.
    """
    position: dict[tuple[str, str], int] = defaultdict(int)
    ranked = []
    for order, item in enumerate(items):
        group = (item.mode, item.family)
        ranked.append((MODES.index(item.mode), position[group], order, item))
        position[group] += 1
    return [item for *_, item in sorted(ranked)]
