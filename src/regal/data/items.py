"""What the data set is built from: one item, one graph."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Item:
    """One graph to trace: an architecture, at a batch size, for inference or training."""

    framework: str  # "torch", "tensorflow", "jax", "onnx", "tflite"
    source: str  # the package that defines the architecture: "timm", "keras.applications"
    family: str  # kin architectures have one family, whatever the framework
    architecture: str  # the name in its source
    mode: str = "inference"  # or "training": forward, backward, and optimizer where it is traced
    batch: int = 1
    size: int = 0  # of the input, in pixels or tokens; 0: the architecture's own

    @property
    def key(self) -> str:
        """Return the name of the item, unique in the data set."""
        size = f"-{self.size}" if self.size else ""
        return (
            f"{self.framework}/{self.source}/{self.architecture}/{self.mode}-b{self.batch}{size}"
        )
