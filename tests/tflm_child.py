"""Run a .tflite file in TFLM, in a process of its own: the runtime may abort it.

Usage: python tflm_child.py MODEL INPUTS.npy OUTPUTS.npy, with INPUTS
[sequences, steps, ...] in the model's own dtype. State is fresh for every sequence.
"""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np


def main(model: str, inputs: str, outputs: str) -> None:
    runtime = import_module("tflite_micro").runtime
    data = Path(model).read_bytes()
    results = []
    for sequence in np.load(inputs):
        interpreter = runtime.Interpreter.from_bytes(data, arena_size=4_000_000)
        for step in sequence:
            interpreter.set_input(step[np.newaxis], 0)
            interpreter.invoke()
            results.append(interpreter.get_output(0)[0].copy())
    np.save(outputs, np.stack(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
