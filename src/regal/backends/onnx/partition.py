"""Write a schedule for several devices as ONNX models: per device its stages, and an index."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

import onnx

from regal.backends.onnx.apply import external_files, fix_dimensions, reorder
from regal.backends.onnx.boundary import crossing_types, is_complete
from regal.backends.onnx.order import executed_order, is_folded
from regal.backends.onnx.parts import Part, Parts, index_name, parts_to_json
from regal.backends.onnx.stages import Stage, stages_of
from regal.backends.types import AppliedModel
from regal.errors import BackendError
from regal.frontends.onnx.kinds import SHAPE_READERS
from regal.frontends.onnx.source import OnnxSource
from regal.frontends.onnx.tidy import initializer_names, names_read
from regal.graph.memory import dependencies
from regal.graph.order import first_order
from regal.graph.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onnx import ModelProto, NodeProto, TypeProto, ValueInfoProto

    from regal.graph.types import Graph, LoadedModel
    from regal.plan.schedule import ModelSchedule

DEVICE_KEY = "regal.device"


def apply_schedule(
    model: LoadedModel, schedule: ModelSchedule, *, name: str = "model.onnx"
) -> AppliedModel:
    """Return the model cut into parts, one file per device and stage.

    The file "" is the whole model with its nodes in the order of the schedule, each with its
    device in its metadata. The others lie beside it: STEM.DEVICE.STAGE.onnx, STEM.parts.json
    (what runs where and which values go where, see `parts.py`), and external data. Each part
    is a model of its own: values from elsewhere are its inputs, and it holds only the weights
    that it reads.

    Args:
        model: what was planned.
        schedule: of this model.
        name: file name of the output; its stem begins the names of the other files.

    Raises:
        PlanError: the schedule is not one of this model.
        BackendError: external data cannot be read, or a value cannot go between devices.
    """
    source = model.source
    if not isinstance(source, OnnxSource):
        raise BackendError(f"a {model.framework} model cannot be written as ONNX")
    plan, graph = schedule.plans[0], model.graph
    whole = onnx.ModelProto()
    whole.CopyFrom(source.model)
    reorder(whole.graph, graph, plan.schedule.order, plan.bodies)
    order = executed_order(graph, plan.schedule.order)
    fixed = fix_dimensions(whole, source)
    files = external_files(whole, source.path)
    node_of = dict(zip(order, whole.graph.node, strict=True))
    stages = stages_of(graph, plan)
    if not stages and set(graph.outputs) - set(graph.inputs):
        stages = (Stage(0, 0, ()),)  # no nodes, but weights that are returned
    devices = tuple(device.name for device in schedule.system.devices)
    stem, labels = PurePath(name).stem, _labels(devices)
    flow = _flow(graph, stages)
    parts = Parts(
        model=name,
        devices=devices,
        inputs=tuple(graph.tensors[t].name for t in graph.inputs),
        outputs=tuple(flow.outputs),
        parts=tuple(
            Part(
                file=f"{stem}.{labels[stage.device]}.{stage.number}.onnx",
                device=stage.device,
                stage=stage.number,
                inputs=flow.reads[number],
                outputs=flow.gives[number],
            )
            for number, stage in enumerate(stages)
        ),
    )
    made = {name for node in whole.graph.node for name in node.output}
    vague = {v.name for v in whole.graph.output if v.name in made and not is_complete(v.type)}
    constants = [node_of[op] for op in order if is_folded(graph, op)]
    types = crossing_types(whole, source, graph, flow.crossing | vague)
    written = _Writer(whole, types, constants)
    for stage, part in zip(stages, parts.parts, strict=True):
        nodes = [node_of[op] for op in _order_within(graph, stage)]
        files[part.file] = written.part(part, nodes)
    files[index_name(stem)] = parts_to_json(parts).encode()
    for op, node in node_of.items():
        node.metadata_props.add(key=DEVICE_KEY, value=devices[plan.schedule.placement[op]])
    notes = [
        *source.notes,
        f"{len(stages)} parts on {len({s.device for s in stages})} devices; run them with"
        " regal.onnxruntime.parts_session",
    ]
    if fixed:
        notes.append(f"fixed the dimensions of {', '.join(fixed)}")
    return AppliedModel(files={"": whole.SerializeToString(), **files}, notes=tuple(notes))


def _order_within(graph: Graph, stage: Stage) -> list[int]:
    """Return the ops of a stage as the runtime runs them (see `executed_order`).

    What a Shape node reads is often an input of the part, and there from the start.
    """
    position = {op: i for i, op in enumerate(stage.ops)}
    before: list[list[int]] = [[] for _ in stage.ops]
    for writer, reader in dependencies(graph):
        if writer in position and reader in position:
            before[position[reader]].append(position[writer])
    rank = [(graph.ops[op].kind not in SHAPE_READERS,) for op in stage.ops]
    return [stage.ops[i] for i in first_order(before, rank)]


@dataclass(frozen=True, slots=True)
class _Flow:
    """Which values each part reads and gives; `crossing` are those that nodes made."""

    reads: tuple[tuple[tuple[str, int], ...], ...]
    gives: tuple[tuple[str, ...], ...]
    outputs: list[tuple[str, int]]
    crossing: set[str]


def _flow(graph: Graph, stages: tuple[Stage, ...]) -> _Flow:
    maker = {
        tensor: number
        for number, stage in enumerate(stages)
        for op in stage.ops
        for tensor in graph.ops[op].outputs
        if tensor != ABSENT
    }
    given = set(graph.inputs)
    reads: list[dict[int, int]] = []
    gives: list[dict[int, None]] = [{} for _ in stages]
    for number, stage in enumerate(stages):
        read: dict[int, int] = {}
        for tensor in (t for op in stage.ops for t in graph.ops[op].inputs if t != ABSENT):
            source = maker.get(tensor, -1 if tensor in given else number)
            if source != number:
                read[tensor] = source
                if source >= 0:
                    gives[source][tensor] = None
        reads.append(read)
    outputs: list[tuple[str, int]] = []
    for tensor in graph.outputs:
        # A returned weight comes from the first part.
        source = maker.get(tensor, -1 if tensor in given else 0)
        outputs.append((graph.tensors[tensor].name, source))
        if source >= 0:
            gives[source][tensor] = None
    crossing = {
        graph.tensors[t].name for read in reads for t, source in read.items() if source >= 0
    }
    return _Flow(
        reads=tuple(
            tuple((graph.tensors[t].name, source) for t, source in read.items()) for read in reads
        ),
        gives=tuple(tuple(graph.tensors[t].name for t in give) for give in gives),
        outputs=outputs,
        crossing=crossing,
    )


class _Writer:
    """Writes parts of one model."""

    def __init__(
        self, whole: ModelProto, types: Mapping[str, TypeProto], constants: Sequence[NodeProto]
    ) -> None:
        self._whole = whole
        self._types = types
        self._constants = constants
        self._inputs = {value.name: value for value in whole.graph.input}
        self._outputs = {value.name: value for value in whole.graph.output}
        self._filled = initializer_names(whole.graph)

    def part(self, part: Part, nodes: list[NodeProto]) -> bytes:
        """Return the file of a part that consists of `nodes`."""
        whole, model = self._whole, onnx.ModelProto()
        for field, value in whole.ListFields():
            if field.name not in ("graph", "functions"):
                _set(model, field.name, value)
        graph = model.graph
        graph.name = part.file.removesuffix(".onnx")
        used = {name for node in nodes for name in names_read(node)} | set(part.outputs)
        used |= set() if nodes else self._filled
        constants = [node for node in self._constants if used.intersection(node.output)]
        graph.node.extend([*constants, *nodes])
        made = {name for node in graph.node for name in node.output}
        graph.input.extend(self._value(name) for name, _ in part.inputs)
        # Defaults that a caller may replace stay inputs.
        graph.input.extend(
            value for name, value in self._inputs.items() if name in used & self._filled
        )
        graph.output.extend(self._value(name) for name in part.outputs)
        graph.initializer.extend(t for t in whole.graph.initializer if t.name in used)
        graph.sparse_initializer.extend(
            t for t in whole.graph.sparse_initializer if t.values.name in used
        )
        inner = made - set(part.outputs)
        graph.value_info.extend(v for v in whole.graph.value_info if v.name in inner)
        graph.quantization_annotation.extend(
            a for a in whole.graph.quantization_annotation if a.tensor_name in used | made
        )
        return bytes(model.SerializeToString())

    def _value(self, name: str) -> ValueInfoProto:
        """Return what a file states of a value that enters or leaves a part."""
        known = self._inputs.get(name) or self._outputs.get(name)
        if known is not None and name not in self._types:
            return known
        return onnx.ValueInfoProto(name=name, type=self._types[name])


def _set(model: ModelProto, name: str, value: object) -> None:
    field = getattr(model, name)
    if hasattr(field, "MergeFrom"):
        field.MergeFrom(value)
    else:
        setattr(model, name, value)


def _labels(devices: tuple[str, ...]) -> list[str]:
    """Return a part of a file name for each device."""
    labels: list[str] = []
    for number, name in enumerate(devices):
        label = re.sub(r"[^A-Za-z0-9_-]+", "_", name)
        labels.append(label if label and label not in labels else f"{label}_{number}")
    return labels
