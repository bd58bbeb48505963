#!/usr/bin/env bash
# Builds the kernel under ASan and UBSan, and drives it with random tiny problems (native/fuzz.cc).
# Usage: tools/fuzz_kernel.sh [SECONDS] [FIRST_CASE]; a finding names its case, `0 CASE` repeats it.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake -S . -B build/checked -G Ninja -DREGAL_CHECKED=ON >/dev/null
cmake --build build/checked >&2
exec build/checked/regal_fuzz "${1:-60}" "${2:-0}"
