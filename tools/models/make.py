"""Write every model of `examples/models`: `python tools/models/make.py [FOLDER]`.

The files come out byte for byte the same on every run and machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(folder: Path) -> None:
    """Write all models into `folder` and print their sizes."""
    from tools.models.catalog import model_files

    folder.mkdir(parents=True, exist_ok=True)
    for name, data in model_files().items():
        (folder / name).write_bytes(data)
        print(f"{name:32} {len(data):>9,} bytes")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # run as a file, python looks only beside it
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "examples" / "models")
