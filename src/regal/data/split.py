"""Which side of the split an architecture is on: by family and by framework, fixed for good.

- "test": families that training never sees, whatever the framework.
- "valid": further such families, to choose settings by.
- "transfer": the held-out framework, for architectures whose family training does know: what is
  new is how the framework writes graphs. Families that are known there only are in "test".
- "train": the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


def leaks(rows: Iterable[Mapping[str, str]]) -> list[str]:
    """Return what is on two sides though it must not be: one sentence each, none if all is well.

    No structure and no architecture may be on two sides; no family on two of train, valid and
    test; no framework both in training and held out.

    Args:
        rows: "split", "structure", "family", "framework", "source" and "architecture" each.
    """
    sides: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        side = row["split"]
        sides.setdefault(("structure", row["structure"]), set()).add(side)
        name = f"{row['framework']}/{row['source']}/{row['architecture']}"
        sides.setdefault(("architecture", name), set()).add(side)
        if side != TRANSFER:
            sides.setdefault(("family", row["family"]), set()).add(side)
        elif row["framework"] != HELD_OUT_FRAMEWORK:
            sides.setdefault(("framework in transfer", row["framework"]), {TRAIN}).add(side)
        if row["framework"] == HELD_OUT_FRAMEWORK and side in (TRAIN, VALID):
            sides.setdefault(("held-out framework", row["framework"]), {TEST}).add(side)
    return [
        f"{what} '{name}' is on {len(found)} sides: {', '.join(sorted(found))}"
        for (what, name), found in sorted(sides.items())
        if len(found) > 1
    ]
