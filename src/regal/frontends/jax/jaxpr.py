"""Jaxprs -> Graph. Calls are inlined; scans, loops and conditions are ops with bodies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

from jax.extend.core import ClosedJaxpr, DropVar, Jaxpr, Literal
from jax.interpreters.partial_eval import dce_jaxpr

from regal.cost.work import op_flops
from regal.errors import ModelError
from regal.graph.types import ABSENT, Graph, Op, Role, Tensor
from regal.units import packed_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jax.extend.core import JaxprEqn, Var

    from regal.graph.types import AttributeValue

ALIGNMENT = 64  # bytes: XLA's on CPUs
# Calls that mean their body, and the name of the parameter that holds it.
CALLS = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "remat": "jaxpr", "remat2": "jaxpr", "checkpoint": "jaxpr", "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr", "custom_vjp_call_jaxpr": "fun_jaxpr",
}  # fmt: skip
# Ops whose result is the memory of their operand: XLA makes bitcasts of them.
VIEWS = frozenset(
    {"reshape", "squeeze", "expand_dims", "stop_gradient", "bitcast_convert_type",
     "optimization_barrier", "copy_p", "sharding_constraint", "random_wrap", "random_unwrap"}
)  # fmt: skip
KEY_BYTES = 8  # of a random key of the default kind: two 32-bit words
MOST_ATTRIBUTE_INTS = 16


@dataclass(slots=True)
class _Reader:
    """What is known while the equations of one jaxpr are read in order."""

    name: str
    tensors: list[Tensor] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    last_effect: int = ABSENT


def graph_of(closed: ClosedJaxpr, name: str, roles: Sequence[Role] = ()) -> Graph:
    """Return the graph of a jaxpr: its primitives in the order in which they were traced.

    Primitives that no result needs are left out.

    Args:
        closed: what `jax.make_jaxpr(f)(...)` returns.
        name: of the graph.
        roles: of the first arguments, PARAMETER for weights; the others are inputs.

    Raises:
        ModelError: a shape that is not numbers.

    Cost: O(equations + edges), bodies included.
    """
    reader = _Reader(name)
    jaxpr, _ = dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars), instantiate=True)
    known: dict[Var, int] = {}
    for i, var in enumerate(jaxpr.invars):
        role = roles[i] if i < len(roles) else Role.INPUT
        known[var] = _add(reader, f"argument.{i}", var, role)
        if role is Role.INPUT:
            reader.inputs.append(known[var])
    for i, var in enumerate(jaxpr.constvars):
        known[var] = _add(reader, f"constant.{i}", var, Role.CONSTANT)
    outputs = _read(reader, jaxpr, known)
    return _finished(reader, outputs, is_body=False)


def _body_of(closed: ClosedJaxpr, name: str) -> Graph:
    """Return the graph of the body of a loop or a branch: its arguments are the outer graph's."""
    reader = _Reader(name)
    jaxpr = closed.jaxpr
    known: dict[Var, int] = {}
    for i, var in enumerate((*jaxpr.invars, *jaxpr.constvars)):
        known[var] = _add(reader, f"argument.{i}", var, Role.CAPTURED)
    outputs = _read(reader, jaxpr, known)
    return _finished(reader, outputs, is_body=True)


def _finished(reader: _Reader, outputs: Sequence[int], *, is_body: bool) -> Graph:
    tensors = list(reader.tensors)
    given = tuple(dict.fromkeys(t for t in outputs if t != ABSENT))
    for t in given:
        if tensors[t].role is Role.ACTIVATION:
            tensors[t] = replace(tensors[t], role=Role.OUTPUT)
    return Graph(
        name=reader.name,
        framework="jax",
        ops=tuple(reader.ops),
        tensors=tuple(tensors),
        inputs=() if is_body else tuple(reader.inputs),
        outputs=given,
        alignment=ALIGNMENT,
    )


def _read(reader: _Reader, jaxpr: Jaxpr, known: dict[Var, int]) -> list[int]:
    """Read all equations; return the tensors of the jaxpr's results, ABSENT for literals."""
    for equation in jaxpr.eqns:
        inner = _called(equation)
        if inner is None:
            _read_equation(reader, equation, known)
            continue
        body = inner.jaxpr
        inside = {
            var: number
            for var, outer in zip(body.invars, equation.invars, strict=True)
            if (number := _number(outer, known)) != ABSENT
        }
        for var in body.constvars:
            inside[var] = _add(reader, f"constant.{len(reader.tensors)}", var, Role.CONSTANT)
        results = _read(reader, body, inside)
        for var, number in zip(equation.outvars, results, strict=True):
            if not isinstance(var, DropVar) and number != ABSENT:
                known[var] = number
    return [_number(var, known) for var in jaxpr.outvars]


def _called(equation: JaxprEqn) -> ClosedJaxpr | None:
    """Return the body that a call stands for, None for a primitive that does something itself."""
    key = CALLS.get(equation.primitive.name)
    body = equation.params.get(key) if key else None
    if isinstance(body, ClosedJaxpr):
        return body
    return ClosedJaxpr(body, []) if isinstance(body, Jaxpr) else None


def _read_equation(reader: _Reader, equation: JaxprEqn, known: dict[Var, int]) -> None:
    kind = equation.primitive.name
    index = len(reader.ops)
    name = f"{kind}_{index}"
    inputs = tuple(_number(var, known) for var in equation.invars)
    alias = inputs[0] if kind in VIEWS and inputs else ABSENT
    outputs = []
    for i, var in enumerate(equation.outvars):
        shared = alias if i == 0 and alias != ABSENT and _may_share(reader, alias, var) else ABSENT
        outputs.append(_add(reader, f"{name}.{i}", var, Role.ACTIVATION, shared))
        if not isinstance(var, DropVar):
            known[var] = outputs[-1]
    control: tuple[int, ...] = ()
    if equation.effects:
        control = (reader.last_effect,) if reader.last_effect != ABSENT else ()
        reader.last_effect = index
    op = Op(
        name=name,
        kind=kind,
        inputs=inputs,
        outputs=tuple(outputs),
        control_inputs=control,
        subgraphs=tuple(
            _body_of(body, f"{name}.{i}") for i, body in enumerate(_bodies(equation.params))
        ),
        attributes=_attributes(equation),
    )
    reader.ops.append(replace(op, flops=op_flops(op, reader.tensors, "jax")))


def _bodies(params: Mapping[str, Any]) -> list[ClosedJaxpr]:
    """Return the bodies among the parameters of a primitive, those of reductions left out."""
    found: list[ClosedJaxpr] = []
    for key in ("jaxpr", "cond_jaxpr", "body_jaxpr", "branches"):
        value = params.get(key)
        for body in value if isinstance(value, tuple) else (value,):
            if isinstance(body, ClosedJaxpr):
                found.append(body)
            elif isinstance(body, Jaxpr):
                found.append(ClosedJaxpr(body, []))
    return found


def _number(var: Var | Literal, known: Mapping[Var, int]) -> int:
    """Return the tensor of a variable; literals are part of the op."""
    return ABSENT if isinstance(var, Literal) else known.get(var, ABSENT)


def _add(reader: _Reader, name: str, var: Var, role: Role, alias: int = ABSENT) -> int:
    index = len(reader.tensors)
    shape, dtype, size = _type_of(name, var)
    storage = reader.tensors[alias].storage if alias != ABSENT else index
    reader.tensors.append(
        Tensor(name=name, shape=shape, dtype=dtype, bytes=size, role=role, storage=storage)
    )
    return index


def _may_share(reader: _Reader, alias: int, var: Var) -> bool:
    return reader.tensors[alias].bytes == _type_of("", var)[2]


def _type_of(name: str, var: Var) -> tuple[tuple[int, ...], str, int]:
    """Return shape, dtype and bytes of a variable; tokens and the like take none."""
    aval = var.aval
    sizes, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if sizes is None or dtype is None:
        return (), "token", 0
    if not all(isinstance(size, int) for size in sizes):
        raise ModelError(f"value '{name}' has sizes that are not numbers: bind them")
    shape = tuple(int(size) for size in sizes)
    text = str(dtype)
    if text.startswith("key<"):
        return shape, "uint32", KEY_BYTES * prod(shape)
    bits = 4 if text in ("int4", "uint4") else 8 * int(dtype.itemsize)
    return shape, text, packed_bytes(prod(shape), bits)


def _attributes(equation: JaxprEqn) -> dict[str, AttributeValue]:
    """Return the plain parameters, and the axes that costs need."""
    found: dict[str, AttributeValue] = {}
    for key, value in equation.params.items():
        if isinstance(value, bool | int | float):
            found[key] = value
        elif numbers := _short_list(value):
            found[key] = numbers
    axes = equation.params.get("dimension_numbers")
    if equation.primitive.name == "dot_general":
        found["lhs_contracting"] = tuple(int(axis) for axis in axes[0][0])
    if equation.primitive.name == "conv_general_dilated":
        found["rhs_out_axis"] = int(axes.rhs_spec[0])
    if equation.primitive.name == "scan":
        found["trip_count"] = int(equation.params["length"])
    return found


def _short_list(value: object) -> tuple[int, ...]:
    """Return a short list of integers; () for what is none."""
    if not isinstance(value, tuple) or len(value) > MOST_ATTRIBUTE_INTS:
        return ()
    return value if all(type(item) is int for item in value) else ()
