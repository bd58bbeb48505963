"""What runs in a child process: Keras reads a .keras file; its layers may do anything.

Usage: python -m regal.frontends.tensorflow.keras_child MODEL.keras RESULT
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from regal.files import write_atomically
from regal.frontends.tensorflow.objects import function_of_keras, meta_graph_of


def main() -> None:
    """Write the model's call as a MetaGraph."""
    source, result = sys.argv[1:]
    import keras

    # Safe mode: no code from the file is run.
    model = keras.saving.load_model(source, compile=False, safe_mode=True)
    meta = meta_graph_of(function_of_keras(model))
    write_atomically(Path(result), meta.SerializeToString())
    # TensorFlow takes its time to be torn down.
    os._exit(0)


if __name__ == "__main__":
    main()
