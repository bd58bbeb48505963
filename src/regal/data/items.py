"""What the data set is built from: one item, one graph."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    size: int = 0  # of the input, in pixels or tokens; 0: the architecture's own

    @property
    def key(self) -> str:
        """Return the name of the item, unique in the data set."""
        size = f"-{self.size}" if self.size else ""
        return f"{self.framework}/{self.source}/{self.architecture}/{self.mode}-b{self.batch}{size}"


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
