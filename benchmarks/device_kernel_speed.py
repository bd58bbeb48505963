"""Evaluations per second of the decoders for several devices, on one core.

    python benchmarks/device_kernel_speed.py [--sizes 1000 10000 100000] [--devices 2 4]

Synthetic graphs of three families, random keys, objective time (EFT, raw) or memory (inherit). One
evaluation is one decoded and simulated schedule. Seconds are CPU time, so that a busy machine
changes little. Targets on 2 devices: EFT 10,000/s at 1,000 ops, 500/s at 10,000, 30/s at 100,000.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from device_baselines import graph_of
from synthetic import FAMILIES

from regal import _native
from regal.cost.roofline import graph_cost
from regal.devices.presets import system_named
from regal.plan.schedule_problem import schedule_problem
from regal.search.devices.compact import compact_devices

DECODERS = (
    (_native.DeviceDecoder.EFT, 1.0, 0.0),
    (_native.DeviceDecoder.RAW, 1.0, 0.0),
    (_native.DeviceDecoder.INHERIT, 0.0, 1.0),
)
STEPS = 2_000_000  # evaluations * ops of one measurement


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--devices", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--families", nargs="+", default=["layered", "cells", "training"])
    arguments = parser.parse_args()
    print("| family | ops | devices | EFT /s | raw /s | inherit /s |")
    print("|---|---|---|---|---|---|")
    for family in arguments.families:
        for n_ops in arguments.sizes:
            graph = graph_of(FAMILIES[family](n_ops), family)
            for devices in arguments.devices:
                system = system_named(f"gpu-pcie-2:{devices}")
                problem = compact_devices(
                    schedule_problem(graph, system, graph_cost(graph, system))
                )
                speeds = [
                    speed(problem, n_ops, decoder, per_ns, per_byte)
                    for decoder, per_ns, per_byte in DECODERS
                ]
                cells = [
                    family,
                    f"{len(graph.ops):,}",
                    str(devices),
                    *(f"{s:,.0f}" for s in speeds),
                ]
                print(f"| {' | '.join(cells)} |", flush=True)


def speed(
    problem: _native.CompactDevices,
    n_ops: int,
    decoder: _native.DeviceDecoder,
    per_ns: float,
    per_byte: float,
) -> float:
    """Return the evaluations per CPU second."""
    size = _native.GeneLayout(problem.problem, decoder).size
    count = max(2, STEPS // n_ops)
    rows = min(count, 50)
    genes = np.random.default_rng(0).integers(0, 1 << 32, (rows, size), dtype=np.uint32)
    done, started = 0, time.process_time()
    while done < count:
        _native.decoded_values(problem, decoder, per_ns, per_byte, genes)
        done += rows
    return done / (time.process_time() - started)


if __name__ == "__main__":
    main()
