"""Kernels that are planned to write in place, or to copy onto themselves, in TFLM itself."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from regal.backends.tflite import apply, verify
from regal.backends.tflite.offsets import arena_offsets, placed_subgraphs
from regal.frontends.tflite import load, source_of
from regal.options import Options
from regal.pipeline import search
from tests.frontends.tflite_models import floats, mul
from tests.frontends.tflite_writer import G, M, O, T, write_tflite

if TYPE_CHECKING:
    from pathlib import Path

    from tests.frontends.tflite_writer import Options as OpOptions

pytest.importorskip("tflite_micro")

SHAPE = (2, 8)
WEIGHT = T(name="w", shape=SHAPE, data=floats(*(0.25 * i - 1.6 for i in range(16))))
POSITIVE = T(name="v", shape=SHAPE, data=floats(*(0.1 * i + 0.5 for i in range(16))))
ROW = T(name="row", shape=(1, 8), data=floats(*(0.5 * i + 0.5 for i in range(8))))

UNARY_FLOAT: dict[str, OpOptions | None] = {
    "ABS": (78, ()),
    "CEIL": None,
    "COS": (86, ()),
    "ELU": None,
    "EXP": (33, ()),
    "FLOOR": None,
    "HARD_SWISH": (91, ()),
    "LEAKY_RELU": (75, ()),
    "LOGISTIC": None,
    "NEG": (42, ()),
    "RELU": None,
    "RELU6": None,
    "ROUND": None,
    "SIN": None,
    "SQUARE": (66, ()),
    "TANH": None,
}
BINARY_FLOAT: dict[str, OpOptions | None] = {
    "ADD": (11, ()),
    "DIV": (29, ()),
    "FLOOR_DIV": (65, ()),
    "FLOOR_MOD": (72, ()),
    "MAXIMUM": (39, ()),
    "MINIMUM": (39, ()),
    "MUL": (21, ()),
    "PRELU": None,
    "SQUARED_DIFFERENCE": (76, ()),
    "SUB": (28, ()),
}


def floats_of(name: str) -> T:
    return T(name=name, shape=SHAPE)


def every_unary() -> M:
    """Return x * w into each unary op, all results kept."""
    tensors = [floats_of("x"), WEIGHT]
    ops = []
    for kind, options in UNARY_FLOAT.items():
        tensors += [floats_of(f"{kind} in"), floats_of(f"{kind} out")]
        ops.append(mul("x", "w", f"{kind} in"))
        ops.append(O(kind=kind, inputs=(f"{kind} in",), outputs=(f"{kind} out",), options=options))
    outputs = tuple(f"{kind} out" for kind in UNARY_FLOAT)
    return M(subgraphs=[G(tensors=tensors, ops=ops, inputs=("x",), outputs=outputs)])


def every_binary(other: T, *, swapped: bool) -> M:
    """Return x * w and a constant into each binary op; `other` may be broadcast."""
    tensors = [floats_of("x"), WEIGHT, other]
    ops = []
    kinds = {k: o for k, o in BINARY_FLOAT.items() if not (swapped and k == "PRELU")}
    for kind, options in kinds.items():
        tensors += [floats_of(f"{kind} in"), floats_of(f"{kind} out")]
        ops.append(mul("x", "w", f"{kind} in"))
        operands = (f"{kind} in", other.name)
        operands = operands[::-1] if swapped else operands
        ops.append(O(kind=kind, inputs=operands, outputs=(f"{kind} out",), options=options))
    outputs = tuple(f"{kind} out" for kind in kinds)
    return M(subgraphs=[G(tensors=tensors, ops=ops, inputs=("x",), outputs=outputs)])


def quantized() -> M:
    """Return int8 element-wise ops: look-up tables, requantizing, rescaling."""

    def q(name: str, scale: float = 0.02) -> T:
        return T(name=name, shape=SHAPE, dtype="int8", scale=scale, zero_point=3)

    weight = T(name="w", shape=SHAPE, dtype="int8", scale=0.01, data=bytes(range(40, 56)))
    kinds: dict[str, tuple[OpOptions | None, float, int]] = {
        "RELU": (None, 0.02, 3),
        "LOGISTIC": (None, 1 / 256, -128),
        "TANH": (None, 1 / 128, 0),
        "HARD_SWISH": ((91, ()), 0.03, 3),
        "QUANTIZE": ((89, ()), 0.05, 3),
        "LEAKY_RELU": ((75, ()), 0.02, 3),
        "ADD": ((11, ()), 0.04, 3),
        "SUB": ((28, ()), 0.04, 3),
        "MUL": ((21, ()), 0.01, 3),
        "MAXIMUM": ((39, ()), 0.02, 3),
    }
    tensors, ops = [q("x"), weight], []
    for kind, (options, scale, zero) in kinds.items():
        out = T(name=f"{kind} out", shape=SHAPE, dtype="int8", scale=scale, zero_point=zero)
        tensors += [q(f"{kind} in"), out]
        ops.append(O(kind="MUL", inputs=("x", "w"), outputs=(f"{kind} in",), options=(21, ())))
        binary = kind in ("ADD", "SUB", "MUL", "MAXIMUM")
        operands = (f"{kind} in", "x") if binary else (f"{kind} in",)
        ops.append(O(kind=kind, inputs=operands, outputs=(out.name,), options=options))
    outputs = tuple(f"{kind} out" for kind in kinds)
    return M(subgraphs=[G(tensors=tensors, ops=ops, inputs=("x",), outputs=outputs)])


def copies() -> M:
    """Return a chain of ops that only copy."""
    shape = T(name="shape", shape=(2,), dtype="int32", data=struct.pack("<2i", 4, 4))
    axis = T(name="axis", shape=(1,), dtype="int32", data=struct.pack("<i", 0))
    tensors = [floats_of("x"), WEIGHT, shape, axis, floats_of("p"), T(name="q", shape=(4, 4))]
    tensors += [T(name="r", shape=(1, 4, 4)), T(name="s", shape=(4, 4)), T(name="y", shape=(4, 4))]
    ops = [
        mul("x", "w", "p"),
        O(kind="RESHAPE", inputs=("p", "shape"), outputs=("q",), options=(17, ())),
        O(kind="EXPAND_DIMS", inputs=("q", "axis"), outputs=("r",), options=(52, ())),
        O(kind="SQUEEZE", inputs=("r",), outputs=("s",), options=(30, ())),
        O(kind="ABS", inputs=("s",), outputs=("y",), options=(78, ())),
    ]
    return M(subgraphs=[G(tensors=tensors, ops=ops, inputs=("x",), outputs=("y",))])


def parts() -> M:
    """Return split, pack, concatenate and slice, each part as large as an alignment unit."""
    half = (1, 8)

    def part(name: str) -> T:
        return T(name=name, shape=half)

    def integers(name: str, *values: int) -> T:
        data = struct.pack(f"<{len(values)}i", *values)
        return T(name=name, shape=(len(values),), dtype="int32", data=data)

    tensors = [
        *(floats_of("x"), WEIGHT, POSITIVE, floats_of("p")),
        T(name="zero", shape=(), dtype="int32", data=bytes(4)),
        *(part("a"), part("b"), part("c"), part("d"), floats_of("e"), floats_of("f")),
        *(integers("at", 1, 0), integers("size", 1, 8), part("g"), part("y")),
    ]
    ops = [
        mul("x", "w", "p"),
        O(
            kind="SPLIT",
            inputs=("zero", "p"),
            outputs=("a", "b"),
            options=(35, ((0, "i32", 2),)),
        ),
        mul("a", "b", "c"),
        O(kind="ABS", inputs=("a",), outputs=("d",), options=(78, ())),
        O(kind="CONCATENATION", inputs=("c", "d"), outputs=("e",), options=(10, ())),
        mul("e", "v", "f"),
        O(kind="SLICE", inputs=("f", "at", "size"), outputs=("g",), options=(48, ())),
        O(kind="NEG", inputs=("g",), outputs=("y",), options=(42, ())),
    ]
    return M(subgraphs=[G(tensors=tensors, ops=ops, inputs=("x",), outputs=("y",))])


MODELS = {
    "every unary op": every_unary(),
    "every binary op": every_binary(POSITIVE, swapped=False),
    "every binary op, second operand": every_binary(POSITIVE, swapped=True),
    "every binary op, broadcast": every_binary(ROW, swapped=False),
    "quantized": quantized(),
    "copies": copies(),
    "parts": parts(),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_shared_bytes_give_the_outputs_of_separate_ones(tmp_path: Path, name: str) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(write_tflite(MODELS[name]))
    model = load(path, {}, {})
    plan = search(model, Options())
    (graph_plan,) = plan.plans
    wanted = sum(bool(op.in_place) and op.kind != "MUL" for op in model.graph.ops)
    shared = {b for _, b in graph_plan.in_place} | {inner for inner, _, _ in graph_plan.sub_buffers}
    assert len(shared) >= min(wanted, 3), "the plan shares too little to prove anything"
    out = tmp_path / "out.tflite"
    out.write_bytes(apply(model, plan).files[""])
    verdict = verify(path, out, seed=3, invocations=5)
    tflm = [check for check in verdict.checks if check.runtime.startswith("tflite-micro")]
    assert tflm, verdict.skipped
    assert verdict.outputs_equal, [check.detail for check in verdict.checks]
    assert tflm[0].after["head_bytes"] == graph_plan.arena_bytes
    assert tflm[0].after["head_bytes"] <= tflm[0].before["head_bytes"]


def test_a_part_lies_in_its_place_in_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(write_tflite(parts()))
    model = load(path, {}, {})
    plan = search(model, Options())
    offsets = arena_offsets(source_of(model), placed_subgraphs(model, plan))
    index = {t.name: i for i, t in enumerate(model.graph.tensors)}
    for inner, outer, distance in plan.plans[0].sub_buffers:
        assert offsets[inner] == offsets[outer] + distance
    assert {index["c"], index["d"]} <= {inner for inner, _, _ in plan.plans[0].sub_buffers}
