"""Who runs the searches: this process, threads, other processes, or Ray actors anywhere."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol, Self

from regal.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from regal.learning.options import ActorOptions
    from regal.learning.types import Environment, Reply, Request

    MakeEnvironment = Callable[[], Environment]


class Actors(Protocol):
    """Runs requests somewhere; a context manager that frees what it holds."""

    def run(self, requests: Sequence[Request]) -> list[Reply]:
        """Return the replies in the sequence of the requests; they do not depend on who ran."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def actors_of(options: ActorOptions, make: MakeEnvironment, own: Environment) -> Actors:
    """Return the actors that are asked for.

    Args:
        options: kind and count.
        make: makes the environment of another process; importable by its name.
        own: the environment of this process.

    Raises:
        UsageError: Ray is asked for and not installed.
    """
    match options.kind:
        case "processes":
            return _Pool(_process_pool(options.count, make), run_in_child)
        case "threads":
            return _Pool(ThreadPoolExecutor(options.count), own.run)
        case "ray":
            return RayActors(options, make)
    return InlineActors(own)


class InlineActors:
    """Runs requests one after the other, here."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def run(self, requests: Sequence[Request]) -> list[Reply]:
        """Return the replies in the sequence of the requests."""
        return [self._environment.run(request) for request in requests]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Free nothing."""


class _Pool:
    """Runs requests in the threads or processes of an executor."""

    def __init__(self, executor: Executor, run: Callable[[Request], Reply]) -> None:
        self._executor, self._run = executor, run

    def run(self, requests: Sequence[Request]) -> list[Reply]:
        """Return the replies in the sequence of the requests."""
        return list(self._executor.map(self._run, requests))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers."""
        self._executor.shutdown(cancel_futures=True)


_child_environment: list[Environment] = []  # of a worker process: one, made when it starts


def _process_pool(count: int, make: MakeEnvironment) -> ProcessPoolExecutor:
    # Spawned, not forked: torch has threads, and a fork of them may hang.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, context, initializer=start_child, initargs=(make,))


def start_child(make: MakeEnvironment) -> None:
    """Make the environment of a worker process."""
    _child_environment[:] = [make()]


def run_in_child(request: Request) -> Reply:
    """Return the reply of a worker process."""
    return _child_environment[0].run(request)


class RayActors:
    """Runs requests in actors of a Ray cluster; its machines need regal, not torch."""

    def __init__(self, options: ActorOptions, make: MakeEnvironment) -> None:
        """Connect to the cluster of `options.address`, or start one here.

        Raises:
            UsageError: Ray is not installed, or the cluster is not there.
        """
        if find_spec("ray") is None:
            raise UsageError("actors: Ray is not installed - pip install 'regal[ray]'")
        # Heavy, and only for this kind of actors.
        import ray

        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        self._ray = ray
        self._owns_cluster = not ray.is_initialized()
        if self._owns_cluster:
            try:
                ray.init(
                    address=options.address or None,
                    num_cpus=None if options.address else options.count,
                    include_dashboard=False,
                    log_to_driver=False,
                )
            except (ConnectionError, ValueError) as error:
                text = " ".join(str(error).split())[:120]
                raise UsageError(f"actors: no Ray cluster at '{options.address}': {text}") from None
        actor = ray.remote(num_cpus=1)(_RayActor)
        self._pool = [
            actor.options(scheduling_strategy="SPREAD").remote(make) for _ in range(options.count)
        ]

    def run(self, requests: Sequence[Request]) -> list[Reply]:
        """Return the replies in the sequence of the requests."""
        count = len(self._pool)
        # Tasks stay with their actor, which keeps the problem and its baseline.
        waiting = [self._pool[hash_of(request) % count].run.remote(request) for request in requests]
        replies: list[Reply] = self._ray.get(waiting)
        return replies

    def nodes(self) -> list[str]:
        """Return the Ray node of each actor."""
        found: list[str] = self._ray.get([actor.node.remote() for actor in self._pool])
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the actors, and the cluster if it was started here."""
        for actor in self._pool:
            self._ray.kill(actor)
        if self._owns_cluster:
            self._ray.shutdown()


class _RayActor:
    """One actor of a Ray cluster."""

    def __init__(self, make: MakeEnvironment) -> None:
        self._environment = make()

    def run(self, request: Request) -> Reply:
        return self._environment.run(request)

    def node(self) -> str:
        import ray

        return str(ray.get_runtime_context().get_node_id())


def hash_of(request: Request) -> int:
    """Return a number of the request's task, the same in every process."""
    spec = request.spec
    text = f"{spec.key} {spec.objective} {spec.devices} {spec.variation}"
    return sum((i + 1) * byte for i, byte in enumerate(text.encode()))
