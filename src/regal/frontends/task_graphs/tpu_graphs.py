"""TpuGraphs tuning data: HLO modules with the configurations that were measured on them.

Read are the modules; a file of several is a model of several entries. Runs and configurations
are left alone. A plain `HloModuleProto`, or an `HloProto`, is read as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from regal.errors import ModelError
from regal.frontends.task_graphs.hlo import graph_of
from regal.frontends.task_graphs.hlo_proto import SCHEMA as HLO
from regal.frontends.task_graphs.hlo_proto import module_of
from regal.frontends.task_graphs.protos import Fields, binary_message, message_class
from regal.graph.check import require_valid_model
from regal.graph.types import LoadedModel

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# tpu_graphs/proto/tuning.proto; an HloProto has its module in the same field.
SCHEMA: dict[str, Fields] = {
    **HLO,
    "ModuleTuningData": {"module": (1, "HloModuleProto")},
    "TuningData": {"modules": (1, "repeated ModuleTuningData")},
}

READINGS: tuple[tuple[str, Callable[[Any], list[Any]]], ...] = (
    ("HloModuleProto", lambda message: [message]),
    ("ModuleTuningData", lambda message: [message.module]),
    ("TuningData", lambda message: [entry.module for entry in message.modules]),
)


def parse(data: bytes, name: str) -> LoadedModel:
    """Return one entry per module.

    Raises:
        ModelError: no module is in the file, or a broken one.
    """
    protos = _modules(data, name)
    if not protos:
        raise ModelError(
            f"'{name}' is no protobuf file of a known form: neither TpuGraphs tuning data nor an"
            " HLO module"
        )
    graphs = tuple(graph_of(module_of(proto, name), name) for proto in protos)
    return require_valid_model(LoadedModel(framework="graph", entries=graphs, source=None))


def _modules(data: bytes, name: str) -> list[Any]:
    """Return the modules of the outermost message that makes sense of the bytes."""
    for root, modules_of in READINGS:
        try:
            message = binary_message(message_class("regal_tuning", SCHEMA, root), data, name)
        except ModelError:
            continue
        modules = modules_of(message)
        if modules and all(module.computations for module in modules):
            return modules
    return []
