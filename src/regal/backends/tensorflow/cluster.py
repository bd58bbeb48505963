"""Worker processes for TensorFlow on this machine: one per planned device, each on its own core."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import time
from dataclasses import dataclass
from typing import Any

JOB = "worker"
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Workers:
    """Running workers: their process ids, and what a session of the first one is called."""

    pids: tuple[int, ...]
    target: str  # "grpc://localhost:PORT"


def worker_device(task: int) -> str:
    """Return how TensorFlow calls the one device of a worker."""
    return f"/job:{JOB}/replica:0/task:{task}/device:CPU:0"


def start_workers(tf: Any, count: int) -> Workers:
    """Return `count` workers, forked from this process; they end with it.

    Must be called before TensorFlow runs anything: threads do not survive a fork. Each worker
    runs on one core, as far as there are enough.
    """
    ports = _free_ports(count)
    addresses = [f"localhost:{port}" for port in ports]
    pids = []
    for task in range(count):
        pid = os.fork()
        if pid == 0:
            try:
                _serve(tf, addresses, task)
            finally:
                os._exit(1)  # whatever happens: it must not go on as a second parent
        pids.append(pid)
    return Workers(tuple(pids), f"grpc://{addresses[0]}")


def stop_workers(workers: Workers | None) -> None:
    """End the workers."""
    for pid in workers.pids if workers is not None else ():
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _serve(tf: Any, addresses: list[str], task: int) -> None:
    """Be a worker until the parent ends; never returns."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[task % len(cores)]})
    config = tf.compat.v1.ConfigProto(
        device_count={"CPU": 1},
        inter_op_parallelism_threads=1,
        intra_op_parallelism_threads=1,
    )
    server = tf.compat.v1.train.Server(
        {JOB: addresses}, job_name=JOB, task_index=task, config=config
    )
    while server is not None:
        time.sleep(3600)


def _free_ports(count: int) -> list[int]:
    """Return ports of this machine that nobody uses at the moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("localhost", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
