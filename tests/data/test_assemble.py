"""Making a set of graphs that were traced: what is held out is new."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regal.data.assemble import assemble
from regal.data.build import LOG, file_of
from regal.data.entries import load_left_out
from regal.data.items import Item
from regal.data.pack import packed
from regal.graph.builder import GraphBuilder


def written(folder: Path, family: str, kinds: str) -> dict[str, Any]:
    """Return the row of a chain of ops of these kinds, written as a build does it."""
    g = GraphBuilder(family)
    value = g.input("x", 8)
    for kind in kinds:
        (value,) = g.op(kind, [value], [8])
    graph = g.build(outputs=[value])
    item = Item(framework="onnx", source="onnx.light", family=family, architecture=kinds)
    data = packed(graph)
    (folder / file_of(item.key)).write_bytes(data)
    return {
        "key": item.key,
        **asdict(item),
        "ops": len(graph.ops),
        "tensors": len(graph.tensors),
        "structure": kinds,
        "version": "1",
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "seconds": 0.0,
    }


def test_a_held_out_graph_that_is_nearly_one_of_training_is_left_out(tmp_path: Path) -> None:
    known = written(tmp_path, "vgg", "ABCDEFGHIJKLMNOP")
    near = written(tmp_path, "nasnet", "ABCDEFGHIJKLMNOX")  # 12 of 20 different ops are shared
    far = written(tmp_path, "nasnet", "QRSTUVWXYZ")
    (tmp_path / LOG).write_text("".join(json.dumps(row) + "\n" for row in (known, near, far)))
    entries = assemble(tmp_path, tmp_path / "set")
    assert [(e.key, e.split) for e in entries] == [(known["key"], "train"), (far["key"], "test")]
    (left,) = load_left_out(tmp_path / "set")
    assert (left["key"], left["why"]) == (near["key"], "near copy")
    assert left["reason"] == f"0.60 of {known['key']}"
