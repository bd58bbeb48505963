"""How a session must be set so that TensorFlow runs a planned graph as planned."""

from __future__ import annotations

from typing import Any

LONGEST_RUN_MS = 40_000  # an empty queue would block a run for ever


def planned_config(tf: Any, n_devices: int, *, grappler: bool = False) -> Any:
    """Return the ConfigProto of a session in which a planned graph runs as planned.

    Logical devices of one process share one pool of threads: with fewer threads than devices
    they would take turns. Kernels get one thread, so that equal graphs give equal bits.
    TensorFlow's own optimizations rename, merge and move nodes and drop control edges, so they
    are off unless asked for.

    Args:
        tf: the module.
        n_devices: logical CPU devices.
        grappler: leave the optimizations on.
    """
    config = tf.compat.v1.ConfigProto(
        device_count={"CPU": n_devices},
        inter_op_parallelism_threads=n_devices,
        intra_op_parallelism_threads=1,
    )
    if not grappler:
        config.graph_options.optimizer_options.opt_level = -1
        config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config
