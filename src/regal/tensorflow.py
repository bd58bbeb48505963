"""Run an optimized TensorFlow graph the way it was planned."""

from __future__ import annotations

from typing import Any


def session_config(n_devices: int = 1) -> Any:
    """Return the ConfigProto of a session that runs a graph as it was planned.

    Without it TensorFlow's own optimizations merge and move nodes and drop control edges:
    results stay right, but placement and order are no longer those of the plan. Programs of
    `tf.function` set the same with
    `tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})`.

    Args:
        n_devices: CPU devices to divide this process into; 1 for graphs on GPUs or workers.

    Raises:
        ImportError: tensorflow is not installed.
    """
    import tensorflow

    from regal.backends.tensorflow.session import planned_config

    return planned_config(tensorflow, n_devices)
