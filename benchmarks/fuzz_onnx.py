"""Fuzz the ONNX frontend: only RegalError may leave it, in bounded time and memory.

Usage: python benchmarks/fuzz_onnx.py [SECONDS] [SEED] [FILE...]

Mutates small models (or the given files) in bytes and in structure. Uses atheris where it is
installed and no SECONDS are given, for 30 minutes; the driver below needs nothing.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper

from regal.errors import RegalError
from regal.frontends.onnx import load, sizes
from regal.frontends.onnx.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_MEMORY = 8 << 30
SLOW = 5.0  # seconds for one small file are a finding
INTERESTING = (0, 1, 127, 128, 255)


def no_run(*arguments: object, **options: object) -> Trace:
    """Stand for the run that measures shapes: it has a process and limits of its own."""
    return Trace(reason="not run while fuzzing", runs={})


def seeds() -> list[bytes]:
    """Return small models that reach most of the frontend."""
    return [model.SerializeToString() for model in (looped(), branched(), called())]


def looped() -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Concat", ["s", "x"], ["z"], axis=0)],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, [None]),
        ],
        [
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        helper.make_node("Loop", ["n", "t", "x"], ["l"], body=body),
        helper.make_node("Reshape", ["l", "shape"], ["r"]),
        helper.make_node("Shape", ["r"], ["h"]),
        helper.make_node("ConstantOfShape", ["h"], ["k"]),
        helper.make_node("Relu", ["k"], ["y"]),
    ]
    weights = {"n": np.array(3), "t": np.array(True), "shape": np.array([5, -1])}
    return finished(nodes, [("x", ["N"])], "y", weights)


def branched() -> onnx.ModelProto:
    def branch(kind: str) -> onnx.GraphProto:
        output = helper.make_tensor_value_info("b", TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node(kind, ["a"], ["b"])], "b", [], [output])

    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("If", ["c"], ["d"], then_branch=branch("Exp"), else_branch=branch("Neg")),
        helper.make_node("SequenceConstruct", ["d", "a"], ["s"]),
        helper.make_node("SequenceAt", ["s", "one"], ["y"]),
    ]
    weights = {
        "w": np.ones((4, 3, 3, 3), np.float32),
        "c": np.array(True),
        "one": np.array(1),
    }
    return finished(nodes, [("x", ["N", 3, 8, 8])], "y", weights)


def called() -> onnx.ModelProto:
    nodes = [helper.make_node("Twice", ["x"], ["y"], domain="m")]
    model = finished(nodes, [("x", [2, 2])], "y", {})
    body = [helper.make_node("HardSwish", ["a"], ["b"]), helper.make_node("Abs", ["b"], ["c"])]
    imports = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("m", "Twice", ["a"], ["c"], body, imports))
    model.opset_import.add(domain="m", version=1)
    return model


def finished(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, Sequence[int | str]]],
    output: str,
    weights: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(v, k) for k, v in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mutated(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Return `data` with a few bytes, slices or a tail changed."""
    broken = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        if not broken:
            break
        place = chance.randrange(len(broken))
        kind = chance.randrange(6)
        if kind == 0:
            broken[place] = chance.randrange(256)
        elif kind == 1:
            broken[place] = chance.choice(INTERESTING)
        elif kind == 2:
            broken[place] ^= 1 << chance.randrange(8)
        elif kind == 3:
            del broken[place : place + chance.randint(1, 16)]
        elif kind == 4:
            other = chance.choice(others)
            start = chance.randrange(len(other))
            broken[place:place] = other[start : start + chance.randint(1, 64)]
        else:
            del broken[place:]
    return bytes(broken)


def try_one(data: bytes, path: Path) -> bool:
    """Return whether the frontend accepted `data`; anything but RegalError is raised."""
    path.write_bytes(data)
    started = time.process_time()
    try:
        load(path, {}, {})
    except RegalError as error:
        if "\n" in str(error):
            raise AssertionError(f"more than one line: {error!r}") from error
        return False
    finally:
        if time.process_time() - started > SLOW:
            raise AssertionError(f"took {time.process_time() - started:.1f} s: {path}")
    return True


def drive(seconds: float, seed: int, corpus: list[bytes]) -> None:
    chance = random.Random(seed)
    accepted = tried = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fuzz.onnx")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            data = mutated(chance.choice(corpus), corpus, chance)
            try:
                accepted += try_one(data, path)
            except BaseException:
                finding = Path("benchmarks/out", f"onnx-{seed}-{tried}.onnx")
                finding.parent.mkdir(parents=True, exist_ok=True)
                finding.write_bytes(data)
                print(f"finding: {finding}", file=sys.stderr)
                raise
            tried += 1
    print(f"{tried} files, {accepted} accepted, {tried - accepted} refused, no finding")


def main() -> None:
    sizes.trace = no_run
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    corpus = [Path(name).read_bytes() for name in sys.argv[3:]] or seeds()
    if len(sys.argv) == 1:
        try:
            import atheris
        except ImportError:
            atheris = None
        if atheris is not None:
            folder = Path(tempfile.mkdtemp())
            for number, data in enumerate(seeds()):
                (folder / str(number)).write_bytes(data)
            path = Path(tempfile.mkdtemp(), "fuzz.onnx")
            options = [sys.argv[0], "-max_total_time=1800", "-max_len=65536", str(folder)]
            atheris.instrument_all()
            atheris.Setup(options, lambda data: try_one(bytes(data), path))
            atheris.Fuzz()
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    drive(seconds, int(sys.argv[2]) if len(sys.argv) > 2 else 0, corpus)


if __name__ == "__main__":
    main()
