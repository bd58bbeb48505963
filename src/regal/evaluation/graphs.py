"""Which graphs a suite runs on, and how they are loaded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from regal.data.entries import SHIPPED, load_graph, load_index
from regal.data.split import TEST, TRANSFER, side_of
from regal.data.synthetic import synthetic_graph
from regal.errors import ModelError, UsageError
from regal.evaluation.planted import planted_graph
from regal.evaluation.suite import TUNING
from regal.frontends import load
from regal.graph.file import model_hash
from regal.graph.types import LoadedModel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from regal.data.entries import Entry
    from regal.evaluation.suite import GraphsRule, Suite
    from regal.graph.types import Graph

HELD_OUT: Final = (TEST, TRANSFER)
FILE, PLANTED_SPLIT = "file", "planted"
FIRST_SEED: Final = 1_000_000  # of random graphs: no graph of the data set has it
FOLDER_PARTS = ("saved_model.pb", "saved_model.pbtxt")


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSource:
    """Where a graph comes from, and what rows say of it. It can be sent to another process."""

    key: str
    hash: str  # of what decides the graph
    family: str
    framework: str
    split: str
    system: str = ""  # where it runs whatever the suite says; "": on the systems of the suite
    objective: str = ""  # the only one for which its optimum is known; "": all
    entry: Entry | None = None
    path: Path | None = None
    planted: tuple[str, int, int, int] | None = None  # kind, ops, devices, seed
    synthetic: tuple[str, int, int] | None = None  # family, ops, seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A graph, as a model, and its optimum if that was planted."""

    model: LoadedModel
    is_file: bool
    time_ns: int | None = None
    peak_bytes: int | None = None


def sources_of(
    suite: Suite, *, data: Path = SHIPPED, files: Sequence[Path] = ()
) -> list[GraphSource]:
    """Return the graphs of a suite, each once.

    Args:
        suite: what to run.
        data: folder of the data set.
        files: folders that the paths of files are relative to; the first that has one gives it.

    Raises:
        UsageError: a rule names no graph or something that no graph has, a file is missing, or a
            suite for tuning asks for graphs that are held out.
    """
    found: dict[str, GraphSource] = {}
    for number, rule in enumerate(suite.graphs):
        if rule.planted:
            rows = _planted(rule)
        elif rule.synthetic:
            rows = _synthetic(rule)
        elif rule.files:
            rows = _files(rule, files)
        else:
            _require_known(rule, data, f"suite '{suite.name}': graphs {number}")
            rows = _of_data_set(rule, data)
        if not rows:
            raise UsageError(f"suite '{suite.name}': graphs {number} names no graph")
        for source in rows:
            if suite.purpose == TUNING and source.split in HELD_OUT:
                raise UsageError(
                    f"suite '{suite.name}' is for tuning, and '{source.key}' is in the split"
                    f" '{source.split}'; tune on train and valid, or declare purpose = 'report'"
                )
            found.setdefault(source.key, source)
    return list(found.values())


def loaded(source: GraphSource, data: Path = SHIPPED) -> Loaded:
    """Return the graph of a source.

    Raises:
        ModelError: it cannot be read, or is not the one that the source was made for.
    """
    if source.planted is not None:
        planted = planted_graph(*source.planted)
        model = _model_of(planted.graph.framework, planted.graph)
        return Loaded(
            model=model, is_file=False, time_ns=planted.time_ns, peak_bytes=planted.peak_bytes
        )
    if source.synthetic is not None:
        graph = _synthetic_graph(*source.synthetic)
        return Loaded(model=_model_of(graph.framework, graph), is_file=False)
    if source.entry is not None:
        model = _model_of(source.framework, load_graph(source.entry, data))
        return Loaded(model=model, is_file=False)
    if source.path is None:
        raise ModelError(f"graph '{source.key}' has no source")
    return Loaded(model=load(source.path), is_file=True)


def held_out_structures(data: Path = SHIPPED) -> dict[str, str]:
    """Return structure -> key of the graphs that no tuning may look at."""
    return {e.structure: e.key for e in load_index(data) if e.split in HELD_OUT}


def _model_of(framework: str, graph: Graph) -> LoadedModel:
    return LoadedModel(framework=framework, entries=(graph,), source=None)


def _require_known(rule: GraphsRule, data: Path, where: str) -> None:
    """Raise if a rule names what no graph of the data set has: a slip would leave graphs out."""
    entries = load_index(data)
    for what, names, known in (
        ("family", rule.families, {entry.family for entry in entries}),
        ("framework", rule.frameworks, {entry.framework for entry in entries}),
        ("mode", rule.modes, {entry.mode for entry in entries}),
        ("key", rule.keys, {entry.key for entry in entries}),
    ):
        odd = next((name for name in names if name not in known), None)
        if odd is not None:
            raise UsageError(
                f"{where}: no graph of the data set has the {what} '{odd}'; regal dataset list"
                " prints those that are there"
            )


def _of_data_set(rule: GraphsRule, data: Path) -> list[GraphSource]:
    entries = [entry for entry in load_index(data) if _is_meant(rule, entry)]
    entries.sort(key=lambda entry: _rank(entry.key))
    taken: dict[str, int] = {}
    kept = []
    for entry in entries:
        taken[entry.family] = taken.get(entry.family, 0) + 1
        if taken[entry.family] <= rule.most_per_family:
            kept.append(entry)
    return [
        GraphSource(
            key=entry.key,
            hash=entry.sha256,
            family=entry.family,
            framework=entry.framework,
            split=entry.split,
            entry=entry,
        )
        for entry in sorted(kept, key=lambda entry: entry.key)
    ]


def _is_meant(rule: GraphsRule, entry: Entry) -> bool:
    wanted = (
        (rule.splits, entry.split),
        (rule.families, entry.family),
        (rule.frameworks, entry.framework),
        (rule.modes, entry.mode),
        (rule.keys, entry.key),
    )
    is_named = all(not names or name in names for names, name in wanted)
    return is_named and rule.fewest_ops <= entry.ops <= rule.most_ops


def _rank(key: str) -> str:
    """Return what graphs of a family are chosen by: as good as random, and the same for good."""
    return hashlib.sha256(key.encode()).hexdigest()


def _files(rule: GraphsRule, folders: Sequence[Path]) -> list[GraphSource]:
    found = []
    for text in rule.files:
        path = next((folder / text for folder in folders if (folder / text).exists()), Path(text))
        data = next((path / name for name in FOLDER_PARTS if (path / name).is_file()), path)
        if not data.is_file():
            raise UsageError(f"graph file '{text}' does not exist; --files names its folder")
        found.append(
            GraphSource(
                key=Path(text).name if Path(text).is_absolute() else text,
                hash=hashlib.sha256(data.read_bytes()).hexdigest(),
                family=rule.family or Path(text).stem,
                framework="",
                split=FILE,
                path=path,
            )
        )
    return found


def _planted(rule: GraphsRule) -> list[GraphSource]:
    found = []
    for n_devices in rule.devices:
        for n_ops in rule.ops:
            for seed in range(rule.count):
                recipe = (rule.planted, n_ops, n_devices, seed)
                graph = planted_graph(*recipe).graph
                found.append(
                    GraphSource(
                        key=graph.name,
                        hash=model_hash(_model_of(graph.framework, graph)),
                        family=f"planted-{rule.planted}",
                        framework=graph.framework,
                        split=PLANTED_SPLIT,
                        system=str(n_devices),
                        objective=rule.planted,
                        planted=recipe,
                    )
                )
    return found


def _synthetic(rule: GraphsRule) -> list[GraphSource]:
    found = []
    for n_ops in rule.ops:
        for seed in range(rule.count):
            recipe = (rule.synthetic, n_ops, FIRST_SEED + seed)
            graph = _synthetic_graph(*recipe)
            found.append(
                GraphSource(
                    key=graph.name,
                    hash=model_hash(_model_of(graph.framework, graph)),
                    family=rule.synthetic,
                    framework=graph.framework,
                    split=side_of(rule.synthetic, graph.framework),
                    synthetic=recipe,
                )
            )
    return found


def _synthetic_graph(family: str, ops: int, seed: int) -> Graph:
    return synthetic_graph(family, seed, f"synthetic/{family}-{ops}-{seed - FIRST_SEED}", ops)
