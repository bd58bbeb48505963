"""Measure how long the ops of a model take on this machine, in the model's own runtime."""
