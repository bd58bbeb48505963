"""Give spoiled graphs, plans and buffer lists to the commands; exit 1 at the first finding.

    python benchmarks/fuzz_files.py [SECONDS] [FIRST_CASE]

Every case is a valid file with a few wrong values, run through one command. A finding is a
traceback, a wrong exit code, more or less than one line of error, a file that was left behind, or
a case that takes over a minute. Its number names it: `fuzz_files.py 0 CASE` repeats it. The test
suite runs the first 300 cases.
"""

from __future__ import annotations

import faulthandler
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.hostile_runs import check_case

MOST_SECONDS = 60


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    end = time.monotonic() + seconds
    codes: Counter[int] = Counter()
    number = first
    with tempfile.TemporaryDirectory() as folder:
        while True:
            faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
            try:
                wrong, code = check_case(number, Path(folder))
            except BaseException:
                print(f"case {number} raised", file=sys.stderr)
                raise
            if wrong:
                print(wrong, file=sys.stderr)
                return 1
            codes[code] += 1
            number += 1
            if time.monotonic() >= end:
                break
    print(f"{number - first} cases from {first} on: no finding; exit codes {dict(codes)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
