"""Run the benchmarks and fuzz drivers that need nothing but this repository: `make bench`.

    python benchmarks/run.py [--corpus FOLDER] [--only NAME] [--fuzz-seconds 60] [--seed N]

Each runs in a process of its own, under a time limit; one that fails does not stop the others, but
the status tells. `benchmarks/README.md` says what each one shows. Fuzzing starts from a new seed
each time; the command that is printed repeats it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "benchmarks"
MODELS = ROOT / "examples" / "models"
MOST_SECONDS = 1_800  # per piece; the longest takes about a third of it
COMPILERS = ("c++", "g++", "clang++")
KERNEL_TOOLS = ("cmake", "ninja")


def main() -> int:
    """Run the pieces one after the other; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default=os.environ.get("REGAL_CORPUS", ""))
    parser.add_argument("--only", default="", help="parts of names, comma-separated")
    parser.add_argument("--fuzz-seconds", type=int, default=60, help="per driver")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the fuzz drivers")
    arguments = parser.parse_args()
    pieces = {
        **benchmarks(),
        **fuzz_drivers(arguments.fuzz_seconds, arguments.seed),
        **(corpus_benchmarks(arguments.corpus) if arguments.corpus else {}),
    }
    wanted = arguments.only.split(",")
    chosen = {name: c for name, c in pieces.items() if any(part in name for part in wanted)}
    if not chosen:
        print(f"no piece is named '{arguments.only}'; there are: {', '.join(pieces)}")
        return 1
    failed = [name for name, command in chosen.items() if not succeeds(name, command)]
    print(f"failed: {', '.join(failed)}" if failed else f"all {len(chosen)} pieces ran")
    return 1 if failed else 0


def benchmarks() -> dict[str, list[str]]:
    """Return name -> command of what runs on shipped models and made-up problems."""
    models = [str(path) for path in sorted(MODELS.glob("*.*")) if path.suffix != ".md"]
    return {
        "kernel_speed": script("kernel_speed.py", "--quick"),
        "search_time": script("search_time.py", "--repeats", "1"),
        "thread_scaling": script("thread_scaling.py"),
        "exact_order": script("exact_order.py", *models, "--states", "100000"),
        "offsets": script("offsets.py"),
        "peers_order": script("peers.py", "order", "--seconds", "5"),
        "peers_offsets": script(
            "peers.py", "offsets", "--seconds", "5", "--vela-iterations", "500"
        ),
    }


def fuzz_drivers(seconds: int, seed: int) -> dict[str, list[str]]:
    """Return name -> command of the fuzz drivers; the kernel's wants a compiler."""
    drivers = {
        "fuzz_tflite": script("fuzz_tflite.py", "--seconds", str(seconds), "--seed", str(seed)),
        "fuzz_onnx": script("fuzz_onnx.py", str(seconds), str(seed)),
        "fuzz_files": script("fuzz_files.py", str(seconds), str(seed)),
    }
    missing = [tool for tool in KERNEL_TOOLS if not shutil.which(tool, path=tool_path())]
    if not any(shutil.which(compiler) for compiler in COMPILERS):
        missing.append("a C++ compiler")
    if missing:
        print(f"== fuzz_kernel: left out, needs {' and '.join(missing)}\n")
        return drivers
    return {
        **drivers,
        "fuzz_kernel": [str(ROOT / "tools" / "fuzz_kernel.sh"), str(seconds), str(seed)],
    }


def corpus_benchmarks(folder: str) -> dict[str, list[str]]:
    """Return name -> command of what runs on a folder of models and buffer lists."""
    found = {"corpus": script("corpus.py", folder)}
    lists = [str(path) for path in sorted(Path(folder).rglob("minimalloc_*.csv"))]
    if lists:
        found["offsets_corpus"] = script("offsets.py", *lists, "--capacity", "1048576")
    return found


def script(name: str, *arguments: str) -> list[str]:
    """Return the command that runs one of the files beside this one."""
    return [sys.executable, str(HERE / name), *arguments]


def succeeds(name: str, command: list[str]) -> bool:
    """Run a piece to its end, or to the time limit; return whether it went well."""
    shown = " ".join(str(Path(word).name) if "/" in word else word for word in command)
    print(f"== {name}: {shown}", flush=True)
    started = time.perf_counter()
    # A session of its own: at the time limit its children end, too.
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PATH": tool_path()}, start_new_session=True
    )
    try:
        status = str(process.wait(timeout=MOST_SECONDS))
    except subprocess.TimeoutExpired:
        status = f"stopped after {MOST_SECONDS} s"
    except KeyboardInterrupt:
        stop(process)
        raise
    if status != "0":
        stop(process)
    print(f"== {name}: status {status}, {time.perf_counter() - started:.0f} s\n", flush=True)
    return status == "0"


def stop(process: subprocess.Popen[bytes]) -> None:
    """End the process and its children, if any is left."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def tool_path() -> str:
    """Return where programs are: first beside this Python, as in a virtual environment."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])


if __name__ == "__main__":
    sys.exit(main())
