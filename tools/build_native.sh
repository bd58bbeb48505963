#!/usr/bin/env bash
# Builds the native kernel into src/regal, for work on the kernel without a reinstall.
# Usage: PYTHON=python3 tools/build_native.sh
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
cmake -S . -B build/dev -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DPython_EXECUTABLE="$(command -v "$python")" \
  -Dnanobind_DIR="$("$python" -c 'import nanobind; print(nanobind.cmake_dir())')" >/dev/null
cmake --build build/dev
cmake --install build/dev --prefix src >/dev/null
