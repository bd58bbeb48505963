"""Trace modules without their weights: fake tensors know shapes and take no memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._functorch.aot_autograd import aot_export_module
from torch._subclasses.fake_tensor import FakeTensorMode

from regal.frontends.torch.fx import graph_of
from regal.graph.types import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from regal.graph.types import Graph


def fake_module(make: Callable[[], torch.nn.Module]) -> tuple[torch.nn.Module, FakeTensorMode]:
    """Return the module that `make` builds, its tensors fake ones on the CPU, and their mode.

    It is built on the meta device: no memory is taken, no weight is drawn.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with torch.device("meta"):
        module = make()
    converter = mode.fake_tensor_converter
    known: dict[int, torch.Tensor] = {}

    def faked(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in known:
            if tensor.device.type == "meta":
                made = converter.from_meta_and_device(mode, tensor.data, torch.device("cpu"))
            else:
                made = mode.from_tensor(tensor.data)
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
            known[id(tensor)] = made
        return known[id(tensor)]

    originals = []  # kept alive: identities of freed tensors would be used again
    for part in module.modules():
        held: tuple[dict[str, Any], ...] = (part._parameters, part._buffers, part.__dict__)
        for slots in held:
            for name, value in list(slots.items()):
                if isinstance(value, torch.Tensor):
                    originals.append(value)
                    slots[name] = faked(value)
    return module, mode


def exported_graph(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    name: str,
    kwargs: Mapping[str, Any] | None = None,
) -> Graph:
    """Return the graph of one forward pass, as torch.export has it.

    Source: torch.export, training IR before decompositions: in-place operators stay in place.
    """
    program = torch.export.export(module, args, dict(kwargs or {}), strict=False)
    return program_graph(program, name)


def program_graph(
    program: torch.export.ExportedProgram, name: str, number_of: Callable[[Any], int] = int
) -> Graph:
    """Return the graph of an exported program in its order; `number_of` binds symbolic sizes."""
    signature = program.graph_signature
    roles = dict.fromkeys(
        (
            *signature.inputs_to_parameters,
            *signature.inputs_to_buffers,
            *signature.inputs_to_lifted_tensor_constants,
        ),
        Role.PARAMETER,
    )
    mutated = set(signature.buffers_to_mutate.values())
    for placeholder, buffer in signature.inputs_to_buffers.items():
        if buffer in mutated:
            roles[placeholder] = Role.STATE
    return graph_of(program.graph_module, name, roles, number_of=number_of)


def joint_graph(module: torch.nn.Module, args: tuple[Any, ...], name: str) -> Graph:
    """Return the joint graph of forward and backward pass of a module that returns its loss.

    The module is exported first: tracing then meets no Python that looks at values.

    Source: AOTAutograd's joint graph of ATen operators: the loss, then all gradients.
    """
    program = torch.export.export(module, args, strict=False)
    forward = program.module()
    _freeze_unused(program, forward)
    joint, signature = aot_export_module(forward, args, trace_joint=True, output_loss_index=0)
    given = [node.name for node in joint.graph.nodes if node.op == "placeholder"]
    held = [*signature.parameters, *signature.buffers]
    roles = dict.fromkeys(given[: len(held)], Role.PARAMETER)
    return graph_of(joint, name, roles)


def _freeze_unused(program: torch.export.ExportedProgram, forward: torch.nn.Module) -> None:
    """Take gradients from parameters that the loss does not depend on: AOTAutograd demands it."""
    used: set[Any] = set()
    pending = [node for node in program.graph.nodes if node.op == "output"]
    while pending:
        node = pending.pop()
        if node not in used:
            used.add(node)
            pending.extend(node.all_input_nodes)
    names = program.graph_signature.inputs_to_parameters
    parameters = dict(forward.named_parameters())
    for node in program.graph.nodes:
        if node.name in names and node not in used and names[node.name] in parameters:
            parameters[names[node.name]].requires_grad_(False)
