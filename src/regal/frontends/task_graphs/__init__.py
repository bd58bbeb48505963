"""Task graphs: files with ops, their times and sizes, but without a framework.

The same endings serve many formats, so the content decides. Each format has one module with
`parse(data, name) -> LoadedModel`; this one only chooses among them.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, cast

from regal.errors import ModelError
from regal.frontends.task_graphs.fields import json_of
from regal.graph import file as graph_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Protocol

    from regal.graph.types import LoadedModel

    class Parser(Protocol):
        """A module that reads one format."""

        def parse(self, data: bytes, name: str) -> LoadedModel:
            """Return the model that the bytes of a file hold; `name` is for messages."""


# JSON objects, by keys that only they have.
JSON_FORMATS = (
    ({"nodes", "edges", "maxSizePerFPGA"}, "dnn_partitioning"),
    ({"nodes", "edges", "maxMemoryPerDevice"}, "piper"),
    ({"task_graph"}, "saga"),
    ({"blocks", "input"}, "ios_schedule"),
)


def load(path: Path, shapes: Mapping[str, tuple[int, ...]], dims: Mapping[str, int]) -> LoadedModel:
    """Return the model of a task graph or graph file.

    Raises:
        ModelError: of no known format, or broken.
    """
    data = path.read_bytes()
    parser = parser_of(path.suffix.lower(), data, path.name)
    if parser is None:
        return graph_file.load(path, shapes, dims)
    if shapes or dims:
        raise ModelError(f"'{path.name}' is a task graph; its sizes are fixed: drop --shape/--dim")
    return cast("Parser", import_module(f"regal.frontends.task_graphs.{parser}")).parse(
        data, path.name
    )


def parser_of(suffix: str, data: bytes, name: str) -> str | None:
    """Return the module that reads such a file; None: it is a graph file of this project.

    Raises:
        ModelError: no format fits, or a format that holds no graph.
    """
    if suffix == ".json":
        return _json_parser(data, name)
    if suffix == ".py":
        return "olla"
    if suffix == ".stg":
        return "stg"
    if suffix == ".hlo":
        return "hlo_text"
    if suffix == ".pb":
        return "tpu_graphs"
    if suffix in (".pbtxt", ".txtpb", ".textproto", ".prototxt"):
        return "cost_graph"
    return _text_parser(data, name)


def _json_parser(data: bytes, name: str) -> str | None:
    document = json_of(data, name)
    for keys, parser in JSON_FORMATS:
        if keys <= document.keys():
            return parser
    if {"cpus", "fpgas"} <= document.keys():
        raise ModelError(
            f"'{name}' is a placement by a human expert for a dnn-partitioning graph, not a graph;"
            " give the graph, a file with 'nodes' and 'edges'"
        )
    return None


def _text_parser(data: bytes, name: str) -> str:
    head = data[:100_000].decode("utf-8", "replace")
    if re.match(r"\s*(//.*\s+)*HloModule\b", head):
        return "hlo_text"
    if " -- " in head:
        return "pipedream"
    lines = [line.strip() for line in head.splitlines() if line.strip()]
    if len(lines) >= 2 and re.fullmatch(r"[0-9]+", lines[0]):
        if "," in lines[1]:
            return "doppler"
        if re.fullmatch(r"[0-9]+", lines[1]):
            return "randwire"
        return "stg"
    raise ModelError(
        f"'{name}' is no task graph of a known form; known in text: STG, PipeDream profiles,"
        " RandWire edge lists, DOPPLER compute graphs, HLO"
    )
