"""`regal dataset`: build the set, say what is in it, get graphs out, prove its split clean."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regal.cli import output
from regal.data.assemble import assemble
from regal.data.build import build as build_graphs
from regal.data.entries import (
    SHIPPED,
    entry_named,
    load_about,
    load_graph,
    load_index,
    load_left_out,
)
from regal.data.items import breadth_first
from regal.data.plots import plots_of
from regal.data.split import SIDES, leaks
from regal.data.summary import summary_of, summary_text
from regal.data.tracers import NEEDS, TRACERS, source_names, tracer_of
from regal.errors import UsageError
from regal.files import require_writable, write_atomically
from regal.frontends import require_ending
from regal.graph.file import model_to_json
from regal.graph.types import LoadedModel

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from regal.data.entries import Entry
    from regal.data.items import Item

SET = "set"  # folder of the assembled set, inside the folder of a build


def dataset(arguments: argparse.Namespace) -> int:
    """Run `regal dataset`."""
    actions = {"build": _build, "info": _info, "list": _list, "get": _get, "split": _split}
    return actions[arguments.action](arguments)


def _build(arguments: argparse.Namespace) -> int:
    items = _items(arguments.sources, arguments.only)[: arguments.most]
    with output.progress(f"tracing {len(items)} items"):
        rows = build_graphs(
            items, arguments.folder, workers=arguments.workers, retry=arguments.retry
        )
        entries = assemble(arguments.folder, arguments.folder / SET)
    failed = sum("failure" in row for row in rows)
    size = sum(entry.bytes for entry in entries)
    document = {
        "folder": str(arguments.folder / SET),
        "items": len(items),
        "traced": len(rows),
        "failed": failed,
        "graphs": len(entries),
        "bytes": size,
    }
    text = (
        f"traced        {len(rows):,} items, {failed:,} failed: {arguments.folder}/log.jsonl\n"
        f"graphs        {len(entries):,} different, {size / 1e6:.1f} MB\n"
        f"written       {document['folder']}"
    )
    print(json.dumps(document) if arguments.json else text)
    return 0


def _items(sources: str | None, only: str | None) -> list[Item]:
    """Return the items to build, breadth first.

    Raises:
        UsageError: a source is unknown, or none that is asked for is installed.
    """
    names = sources.split(",") if sources else _installed()
    if not names:
        raise UsageError("no source of graphs is installed - pip install 'regal[dataset]'")
    items = []
    for name in names:
        framework, _, source = name.partition("/")
        missing = _missing(name)
        if missing:
            raise UsageError(
                f"source '{name}' needs {', '.join(missing)} - pip install 'regal[dataset]'"
            )
        items += tracer_of(framework, source).items()
    return breadth_first(item for item in items if only is None or only in item.key)


def _installed() -> list[str]:
    return [name for name in source_names() if not _missing(name)]


def _missing(name: str) -> list[str]:
    framework, _, source = name.partition("/")
    if (framework, source) not in TRACERS:
        raise UsageError(f"unknown source '{name}'; known: {', '.join(source_names())}")
    return [package for package in NEEDS[framework, source] if find_spec(package) is None]


def _info(arguments: argparse.Namespace) -> int:
    folder = arguments.set or SHIPPED
    document = summary_of(load_index(folder), load_left_out(folder), load_about(folder))
    if arguments.plots is not None:
        arguments.plots.mkdir(parents=True, exist_ok=True)
        for name, picture in plots_of(document).items():
            write_atomically(arguments.plots / name, picture.encode())
    print(json.dumps(document) if arguments.json else summary_text(document))
    return 0


def _list(arguments: argparse.Namespace) -> int:
    only = arguments.only or ""
    entries = [
        entry
        for entry in load_index(arguments.set or SHIPPED)
        if arguments.split in (None, entry.split) and (only in entry.key or only in entry.family)
    ]
    if arguments.json:
        print(json.dumps({"graphs": [asdict(entry) for entry in entries]}))
        return 0
    for entry in entries:
        print(f"{entry.key:<64} {entry.split:<8} {entry.family:<16} {entry.ops:>6,} ops")
    return 0


def _get(arguments: argparse.Namespace) -> int:
    require_ending(arguments.out, like=Path("graph.json"))
    require_writable(arguments.out, inputs=[], force=arguments.force)
    folder = arguments.set or SHIPPED
    entry = entry_named(arguments.key, folder)
    graph = load_graph(entry, folder)
    model = LoadedModel(framework="graph", entries=(graph,), source=None)
    write_atomically(arguments.out, model_to_json(model).encode())
    document = {**asdict(entry), "output": str(arguments.out)}
    text = (
        f"graph         {entry.key} ({entry.family}, {entry.split})\n"
        f"ops           {entry.ops:,}, {entry.tensors:,} tensors\n"
        f"written       {arguments.out}"
    )
    print(json.dumps(document) if arguments.json else text)
    return 0


def _split(arguments: argparse.Namespace) -> int:
    entries = load_index(arguments.set or SHIPPED)
    found = leaks([_as_texts(entry) for entry in entries])
    document = split_to_dict(entries, found)
    print(json.dumps(document) if arguments.json else split_text(document))
    return 1 if found else 0


def split_to_dict(entries: Sequence[Entry], found: Sequence[str]) -> dict[str, Any]:
    """Return what `regal dataset split --json` prints."""
    return {
        "sides": {
            side: {
                "graphs": sum(entry.split == side for entry in entries),
                "families": sorted({entry.family for entry in entries if entry.split == side}),
                "frameworks": sorted({entry.framework for entry in entries if entry.split == side}),
            }
            for side in SIDES
        },
        "leaks": list(found),
    }


def split_text(document: dict[str, Any]) -> str:
    """Return the lines of `regal dataset split`."""
    lines = []
    for side, row in document["sides"].items():
        lines += [
            f"{side:<13} {row['graphs']:,} graphs, {len(row['families'])} families,"
            f" from {', '.join(row['frameworks']) or 'nowhere'}",
            f"              {', '.join(row['families'])}",
        ]
    lines.append(
        "leaks         none: no structure, architecture or family is on two sides"
        if not document["leaks"]
        else "\n".join(f"leak          {text}" for text in document["leaks"])
    )
    return "\n".join(lines)


def _as_texts(entry: Entry) -> dict[str, str]:
    names = ("split", "structure", "family", "framework", "source", "architecture")
    return {name: getattr(entry, name) for name in names}
