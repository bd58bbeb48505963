"""The index of a partitioned model: which part runs where, and which values go where."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regal.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "regal.onnx-parts/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One model file. It runs on `device` once the values in `inputs` are there.

    Each input is (name, part that makes it); -1 stands for an input of the whole model.
    """

    file: str
    device: int
    stage: int  # counts the parts of its device
    inputs: tuple[tuple[str, int], ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A partitioned model. `parts` stand in an order in which they can run.

    Each output of the whole model is (name, part that makes it); -1: it is an input.
    """

    model: str  # file name of the whole model
    devices: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, int], ...]
    parts: tuple[Part, ...]

    @property
    def transfers(self) -> tuple[tuple[str, int, int], ...]:
        """Return (value, source device, target device) of all that goes between devices."""
        found = {
            (name, self.parts[maker].device, part.device): None
            for part in self.parts
            for name, maker in part.inputs
            if maker >= 0 and self.parts[maker].device != part.device
        }
        return tuple(found)


def index_name(stem: str) -> str:
    """Return the name of the index file of a model written to `stem`.onnx."""
    return f"{stem}.parts.json"


def parts_to_json(parts: Parts) -> str:
    """Return the text of the index file; docs/applied.md describes it."""
    document = {
        "schema": SCHEMA,
        "model": parts.model,
        "devices": list(parts.devices),
        "inputs": list(parts.inputs),
        "outputs": [_value(name, maker) for name, maker in parts.outputs],
        "parts": [
            {
                "file": part.file,
                "device": parts.devices[part.device],
                "stage": part.stage,
                "inputs": [_value(name, maker) for name, maker in part.inputs],
                "outputs": list(part.outputs),
            }
            for part in parts.parts
        ],
        "transfers": [
            {"value": name, "source": parts.devices[source], "target": parts.devices[target]}
            for name, source, target in parts.transfers
        ],
    }
    return json.dumps(document, indent=1) + "\n"


def read_parts(path: Path) -> Parts:
    """Return the index in the file `path`.

    Raises:
        ModelError: the file cannot be read, or is no index.
    """
    try:
        document: Any = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelError(f"index '{path}' cannot be read: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ModelError(f"'{path}' is no index of a partitioned model: expected {SCHEMA}")
    try:
        return _parts_of(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"index '{path}' is broken: {type(error).__name__} {error}") from error


def _parts_of(document: dict[str, Any]) -> Parts:
    devices = tuple(str(name) for name in document["devices"])
    parts = tuple(
        Part(
            file=str(row["file"]),
            device=devices.index(row["device"]),
            stage=int(row["stage"]),
            inputs=tuple(_pair(value) for value in row["inputs"]),
            outputs=tuple(str(name) for name in row["outputs"]),
        )
        for row in document["parts"]
    )
    for number, part in enumerate(parts):
        if any(not -1 <= maker < number for _, maker in part.inputs):
            raise ValueError(f"part {number} reads from a part that is not before it")
        if "/" in part.file or "\\" in part.file:
            raise ValueError(f"part {number} lies in another folder")
    outputs = tuple(_pair(value) for value in document["outputs"])
    if any(not -1 <= maker < len(parts) for _, maker in outputs):
        raise ValueError("an output comes from no part")
    return Parts(
        model=str(document["model"]),
        devices=devices,
        inputs=tuple(str(name) for name in document["inputs"]),
        outputs=outputs,
        parts=parts,
    )


def _value(name: str, maker: int) -> dict[str, object]:
    return {"name": name, "part": maker if maker >= 0 else None}


def _pair(value: dict[str, Any]) -> tuple[str, int]:
    maker = value["part"]
    return str(value["name"]), -1 if maker is None else int(maker)
