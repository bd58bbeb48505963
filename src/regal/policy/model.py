"""Exported networks: read, checked, and run by ONNX Runtime on one thread."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from regal import _native
from regal.errors import UsageError
from regal.policy.inputs import (
    CONTEXT,
    DEVICE_FEATURES,
    EDGE_FEATURES,
    node_feature_names,
)
from regal.search.devices.guide import ARMS, PROGRESS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from regal.policy.inputs import PolicyInputs

FORMAT = 1
PRIOR = "prior"  # kind of the policies of the default method
COLUMNS = "columns"  # another kind of them: learned features
FUSION = "fusion"  # of fusion and layout keys
METADATA = "regal.policy"  # key of the file's metadata that holds one JSON object


class PolicyNetwork:
    """A network that was exported by `regal.learning.export`.

    Equal inputs give equal outputs on one machine: it runs on one thread, in a fixed order.
    """

    def __init__(self, data: bytes, name: str) -> None:
        """Read a network.

        Args:
            data: an ONNX file.
            name: of the file, for errors.

        Raises:
            UsageError: it is no network of a policy, or one for other features.
        """
        # A third of a second: only those who use a policy pay for it.
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as state

        # What Runtime raises at what it cannot load; no common base but Exception.
        refusals = (
            state.Fail,
            state.InvalidArgument,
            state.InvalidGraph,
            state.InvalidProtobuf,
            state.NotImplemented,
            state.RuntimeException,
            RuntimeError,
            ValueError,
        )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(
                data, options, providers=["CPUExecutionProvider"]
            )
            metadata = self._session.get_modelmeta().custom_metadata_map
        except refusals as error:
            text = " ".join(str(error).split())[:120]
            raise UsageError(f"policy '{name}' is not an ONNX file that runs: {text}") from None
        self.about = _about(metadata.get(METADATA), name)
        self.sha256 = hashlib.sha256(data).hexdigest()
        self._outputs = [output.name for output in self._session.get_outputs()]
        self._inputs = {one.name for one in self._session.get_inputs()}

    @property
    def kind(self) -> str:
        """Return what the outputs mean: "paper" or another policy."""
        return str(self.about["kind"])

    def __call__(self, inputs: PolicyInputs) -> Mapping[str, NDArray[np.float32]]:
        """Return the outputs by name.

        Cost: 15 ms per 1,000 ops.
        """
        return self.run({name: a for name, a in inputs.arrays().items() if name in self._inputs})

    def run(self, feeds: Mapping[str, NDArray[np.generic]]) -> Mapping[str, NDArray[np.float32]]:
        """Return the outputs by name, for inputs by name."""
        values = self._session.run(self._outputs, dict(feeds))
        return dict(zip(self._outputs, values, strict=True))


def load_network(path: Path) -> PolicyNetwork:
    """Return the network of a file.

    Raises:
        UsageError: the file is missing, or is not a policy for these features.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"policy '{path}' cannot be read: {error.strerror}") from None
    return PolicyNetwork(data, str(path))


def feature_names(kind: str = "") -> dict[str, list[str]]:
    """Return the names of all features, array by array: a network fits exactly these.

    A network of kind "prior" sees the context and what has happened in a run, and chooses arms.
    """
    if kind == PRIOR:
        ops = [name for name, *_ in _native.device_feature_names()]
        return {"state": [*CONTEXT, *PROGRESS], "arms": list(ARMS), "ops": ops}
    own = [name for name, *_ in _native.fusion_feature_names()] if kind == FUSION else []
    return {
        "nodes": [*node_feature_names(), *own],
        "edges": list(EDGE_FEATURES),
        "context": list(CONTEXT),
        "devices": list(DEVICE_FEATURES),
    }


def _about(text: str | None, name: str) -> Mapping[str, Any]:
    if text is None:
        raise UsageError(f"policy '{name}' is an ONNX file without '{METADATA}': not a policy")
    try:
        about = json.loads(text)
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or not isinstance(about.get("kind"), str):
        raise UsageError(f"policy '{name}': its '{METADATA}' is broken")
    if about.get("format") != FORMAT:
        raise UsageError(
            f"policy '{name}' has format {about.get('format')}; this version reads {FORMAT}"
        )
    wanted, found = feature_names(about["kind"]), about.get("features")
    if found != wanted:
        part = next(
            (key for key in wanted if not isinstance(found, dict) or found.get(key) != wanted[key]),
            "features",
        )
        raise UsageError(
            f"policy '{name}' was trained on other features of {part}; train it again, or use"
            " --policy default"
        )
    return about
