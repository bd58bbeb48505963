"""Fuzz the TFLite reader: whatever the bytes, a model or one ModelError, in bounded time.

    python benchmarks/fuzz_tflite.py [--seconds 60] [--seed 0] [--corpus FOLDER] [--keep FOLDER]

With atheris installed its coverage-guided engine drives (libFuzzer options after `--`), else
a seeded mutator of small real models. What loads is also applied with the file's own order,
and must load again. A finding is written to `--keep` and ends the run with status 1.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.frontends.tflite_models import all_models
from tests.frontends.tflite_writer import write_tflite

from regal.backends.tflite.apply import planned_bytes
from regal.errors import RegalError
from regal.frontends.tflite import load, source_of

SLOW_SECONDS = 5.0
MOST_BYTES = 64 << 10


def main() -> int:
    """Run until the time is up or something is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", type=Path, help="real models to mutate as well")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()))
    arguments, rest = parser.parse_known_args()
    try:
        import atheris  # type: ignore[import-untyped]
    except ImportError:
        return fuzz_at_random(arguments)
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(small_models(arguments.corpus)):
            Path(folder, str(number)).write_bytes(data)
        options = [f"-max_total_time={arguments.seconds:.0f}", f"-max_len={MOST_BYTES}", *rest]
        atheris.instrument_all()
        atheris.Setup([sys.argv[0], *options, folder], check)
        atheris.Fuzz()
    return 0


def small_models(corpus: Path | None) -> list[bytes]:
    """Return what mutation starts from: the models of the tests, and small ones of `corpus`."""
    models = [write_tflite(model) for model in all_models().values()]
    files = sorted(corpus.glob("**/*.tflite")) if corpus else []
    return models + [path.read_bytes() for path in files if path.stat().st_size <= MOST_BYTES]


def fuzz_at_random(arguments: argparse.Namespace) -> int:
    """Return 1 after the first finding, 0 when the time is up without one."""
    chance = random.Random(arguments.seed)
    seeds = small_models(arguments.corpus)
    end = time.monotonic() + arguments.seconds
    counts = {"loaded": 0, "refused": 0}
    slowest = 0.0
    while time.monotonic() < end:
        data = mutated(chance.choice(seeds), chance)
        started = time.process_time()
        try:
            counts[check(data)] += 1
        except Exception:  # everything else is a finding
            return report(arguments.keep, data, traceback.format_exc())
        took = time.process_time() - started
        slowest = max(slowest, took)
        if took > SLOW_SECONDS:
            return report(arguments.keep, data, f"took {took:.1f} CPU seconds")
    print(f"{counts['loaded']} loaded, {counts['refused']} refused, slowest {slowest:.2f} s")
    return 0


def check(data: bytes) -> str:
    """Return "loaded" or "refused"; raise what a user would never want to see."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz.tflite"
        path.write_bytes(data)
        try:
            model = load(path, {}, {})
        except RegalError as error:
            if "\n" in str(error):
                raise AssertionError(f"more than one line: {error!s}") from error
            return "refused"
        source = source_of(model)
        subgraphs = source.file.subgraphs
        n = sum(len(s.tensors) for s in subgraphs)
        orders = {i: range(len(s.operators)) for i, s in enumerate(subgraphs)}
        try:
            path.write_bytes(planned_bytes(source, orders, [-1] * n))
        except RegalError:
            return "refused"
        again = load(path, {}, {})
        if again.entries != model.entries:
            raise AssertionError("a plan without offsets changes the graphs")
    return "loaded"


def mutated(seed: bytes, chance: random.Random) -> bytes:
    """Return damaged bytes that still carry the identifier, most of the time."""
    data = bytearray(seed)
    extremes = (0, 1, 2, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, len(data))
    for _ in range(chance.choice((1, 1, 2, 3, 8, 40))):
        at = chance.randrange(len(data) - 8)
        match chance.randrange(7):
            case 0:
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                struct.pack_into("<I", data, at & ~3, chance.choice(extremes))
            case 2:
                struct.pack_into("<i", data, at & ~3, chance.randrange(-64, 64))
            case 3:
                source = chance.randrange(len(data) - 8)
                data[at : at + 4] = data[source : source + 4]
            case 4:
                struct.pack_into("<H", data, at & ~1, chance.randrange(64))
            case 5:
                # Point one offset at where another one points.
                source = chance.randrange(len(data) - 8) & ~3
                (distance,) = struct.unpack_from("<I", data, source)
                struct.pack_into("<I", data, at & ~3, (source + distance - (at & ~3)) & 0xFFFFFFFF)
            case 6:
                del data[chance.randrange(16, len(data)) :]
                data += bytes(16)
    if chance.random() < 0.98:
        data[4:8] = b"TFL3"
    return bytes(data)


def report(folder: Path, data: bytes, what: str) -> int:
    """Write the finding and return the exit status."""
    path = folder / "regal-fuzz-finding.tflite"
    path.write_bytes(data)
    print(f"{what}\nwritten to {path}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
