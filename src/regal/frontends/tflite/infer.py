"""Child process: LiteRT resizes the inputs of a model, runs it once, and prints all shapes.

Reads {"path", "shapes"} from stdin; prints {"shapes": {tensor: [sizes]}} or {"error"}.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Print one JSON object as the last line of stdout."""
    request = json.load(sys.stdin)
    try:
        litert: Any = import_module("ai_edge_litert.interpreter")
    except ImportError:
        print(json.dumps({"error": "ai-edge-litert is not installed: pip install regal[tflite]"}))
        return
    import numpy as np

    try:
        run = litert.Interpreter(
            model_path=request["path"],
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )
        for detail in run.get_input_details():
            if detail["name"] in request["shapes"]:
                run.resize_tensor_input(detail["index"], request["shapes"][detail["name"]])
        run.allocate_tensors()
        for detail in run.get_input_details():
            if detail["dtype"] not in (np.bytes_, np.object_):
                run.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
        run.invoke()
        found = {d["index"]: [int(n) for n in d["shape"]] for d in run.get_tensor_details()}
    except (RuntimeError, ValueError) as error:
        print(json.dumps({"error": " ".join(str(error).split())[:300]}))
        return
    print(json.dumps({"shapes": found}), flush=True)


if __name__ == "__main__":
    main()
