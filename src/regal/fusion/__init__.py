"""Fusion and layout as decisions of a plan, searched together with order and placement."""
