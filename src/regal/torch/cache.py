"""Orders that were found before, on disk: one small file per graph and way of searching."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regal.errors import UsageError
from regal.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator

    from regal.graph.types import Graph

log = logging.getLogger("regal.torch")

SCHEMA = "regal.torch-order/1"

Orders = dict[str, Any]  # "order": of the graph; "bodies": op -> those of its bodies


def default_folder() -> Path:
    """Return where the orders of this user lie: $XDG_CACHE_HOME or ~/.cache, then regal/torch."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "regal", "torch")


def key_of(graph: Graph, *way: object) -> str:
    """Return the name of a graph and a way of searching it.

    Names of ops and tensors do not matter; all numbers of which a plan is made do.
    """
    digest = hashlib.sha256(repr((SCHEMA, *way)).encode())
    for line in _lines(graph):
        digest.update(line.encode())
    return digest.hexdigest()


def stored(folder: Path, key: str) -> Orders | None:
    """Return what lies under a key; None: nothing, or nothing that can be read.

    Whether it is an order of the graph is for the judge of plans to say.
    """
    try:
        document = json.loads((folder / f"{key}.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return None
    return document


def store(folder: Path, key: str, orders: Orders) -> None:
    """Put orders under a key, whole or not at all; a folder that cannot be written is no error."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"schema": SCHEMA, **orders}, separators=(",", ":"))
        write_atomically(folder / f"{key}.json", text.encode())
    except (OSError, UsageError) as error:
        log.info("the order is not remembered: %s", error)


def _lines(graph: Graph) -> Iterator[str]:
    yield f"{graph.inputs}{graph.outputs}{graph.alignment}"
    for tensor in graph.tensors:
        yield f"{tensor.bytes},{tensor.role},{tensor.storage},{tensor.storage_offset};"
    for op in graph.ops:
        yield f"{op.kind}{op.inputs}{op.outputs}{op.control_inputs}{op.in_place}"
        yield f"{op.workspace_bytes}[{len(op.subgraphs)}"
        for body in op.subgraphs:
            yield from _lines(body)
