"""Builders of the models that ship in `examples/models`."""
