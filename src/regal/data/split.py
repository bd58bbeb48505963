"""Which side of the split an architecture is on: by family and by framework, fixed for good.

- "test": families that training never sees, whatever the framework.
- "valid": further such families, to choose settings by.
- "transfer": the held-out framework, for architectures of families that are in "train" or "valid":
  what is new is how the framework writes graphs. Families that only it has are in "test".
- "train": the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from regal.data.entries import Entry

VERSION: Final = 1
TRAIN, VALID, TEST, TRANSFER = "train", "valid", "test", "transfer"
SIDES: Final = (TRAIN, VALID, TEST, TRANSFER)
# A graph that is on two sides stays on the first of these.
STRICTEST_FIRST: Final = (TEST, VALID, TRANSFER, TRAIN)
HELD_OUT_FRAMEWORK: Final = "jax"
TEST_FAMILIES: Final = frozenset(
    {
        "codec", "densenet", "detr", "diffusion-unet", "evoformer", "flow", "gnn", "hiera",
        "linear-attention", "mamba", "matching", "meta-learning", "nasnet", "nerf", "ode",
        "perceiver", "pinn", "protein", "recommender", "speech", "treelstm", "unet", "wavenet",
        "world-model", "series-parallel",
    }
)  # fmt: skip
VALID_FAMILIES: Final = frozenset(
    {
        "autoencoder", "bifpn", "coat", "convbert", "dit", "dla", "fnet", "funnel", "gpt", "hrnet",
        "iformer", "long-attention", "metaformer", "mlp_mixer", "sam", "stochastic-block",
        "time-series", "xlnet",
    }
)  # fmt: skip


def side_of(family: str, framework: str) -> str:
    """Return the side of every graph of a family in a framework."""
    if family in TEST_FAMILIES:
        return TEST
    if framework == HELD_OUT_FRAMEWORK:
        return TRANSFER
    return VALID if family in VALID_FAMILIES else TRAIN


def leaks(entries: Iterable[Entry]) -> list[str]:
    """Return what is on two sides though it must not be: one sentence each, none if all is well.

    No structure and no architecture may be on two sides; no family on two of train, valid and
    test; no framework both in training and held out.
    """
    sides: dict[tuple[str, str], set[str]] = {}
    for entry in entries:
        side, framework = entry.split, entry.framework
        sides.setdefault(("structure", entry.structure), set()).add(side)
        name = f"{framework}/{entry.source}/{entry.architecture}"
        sides.setdefault(("architecture", name), set()).add(side)
        if side != TRANSFER:
            sides.setdefault(("family", entry.family), set()).add(side)
        elif framework != HELD_OUT_FRAMEWORK:
            sides.setdefault(("framework in transfer", framework), {TRAIN}).add(side)
        if framework == HELD_OUT_FRAMEWORK and side in (TRAIN, VALID):
            sides.setdefault(("held-out framework", framework), {TEST}).add(side)
    return [
        f"{what} '{name}' is on {len(found)} sides: {', '.join(sorted(found))}"
        for (what, name), found in sorted(sides.items())
        if len(found) > 1
    ]
