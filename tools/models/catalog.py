"""The list of models that ship, and how each becomes files."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx

from tools.models.fit import FittedNetwork, fit
from tools.models.nasnet import nasnet
from tools.models.onnx_writer import write_onnx
from tools.models.order import as_written, converter_order
from tools.models.quantize import quantize
from tools.models.random_numbers import images, uniform
from tools.models.randwire import randwire
from tools.models.tflite_writer import write_tflite
from tools.models.unet import unet
from tools.models.wakeword import wakeword

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.models.network import Network
    from tools.models.random_numbers import Array

SEED = 0
_PICTURES = 16  # enough for the statistics, and all models are made in seconds
_STEPS, _SEQUENCES = 30, 16


@dataclass(frozen=True, slots=True)
class Entry:
    """One network and the kinds of file that it ships as."""

    network: Callable[[], Network]
    onnx: bool


ENTRIES = {
    "nasnet_a_mobile": Entry(nasnet, onnx=True),
    "randwire_ws_32_4_075": Entry(randwire, onnx=True),
    "unet": Entry(unet, onnx=False),
    "wakeword_streaming": Entry(wakeword, onnx=False),
}


def model_files() -> dict[str, bytes]:
    """Return the bytes of every file that ships, by file name."""
    files: dict[str, bytes] = {}
    for name, entry in ENTRIES.items():
        fitted = fitted_network(name)
        network = fitted.network
        order = as_written(network) if network.variables else converter_order(network)
        files[f"{name}_int8.tflite"] = write_tflite(quantize(fitted, order))
        if entry.onnx:
            stream = io.BytesIO()
            onnx.save_model(write_onnx(fitted, as_written(network)), stream)
            files[f"{name}.onnx"] = stream.getvalue()
    return files


def fitted_network(name: str) -> FittedNetwork:
    """Return a network of ENTRIES with its weights."""
    network = ENTRIES[name].network()
    return fit(network, sample_inputs(network, SEED), SEED)


def sample_inputs(network: Network, seed: int) -> Array:
    """Return seeded inputs, [steps, batch, *input shape]; one step without state."""
    shape = network.shapes[network.input]
    if not network.variables:
        return images(seed, _PICTURES, shape)[np.newaxis]
    frames, features = shape
    # Slow and fast changes over time, as in a spectrogram.
    slow = uniform(seed, "slow", (_STEPS // 5, _SEQUENCES, 1, features))
    fast = uniform(seed, "fast", (_STEPS, _SEQUENCES, frames, features))
    return np.abs(slow.repeat(5, axis=0) + 0.5 * fast)
