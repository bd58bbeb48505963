"""Write docs/data_card.md from the data set that ships. Usage: python tools/data_card.py."""

from __future__ import annotations

from pathlib import Path

from regal.data.card import card_text
from regal.data.entries import load_about, load_index, load_left_out

CARD = Path(__file__).parents[1] / "docs" / "data_card.md"


def main() -> None:
    """Write the card."""
    CARD.write_text(card_text(load_index(), load_left_out(), load_about()))


if __name__ == "__main__":
    main()
