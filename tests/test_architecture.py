"""The folder order is the data flow; this file keeps it true."""

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "regal"
NATIVE = ROOT / "native"
ORDER = [
    {"errors", "_native", "__version__"},
    {"units", "files", "records", "child"},
    {"devices"},
    {"graph"},
    {"cost"},
    {"frontends", "plan"},
    {"baselines", "policy", "search"},
    {"fusion"},
    {"backends", "onnxruntime", "tensorflow"},
    {"profiling"},
    {"result"},
    {"schedule_result"},
    {"options"},
    {"scheduling"},
    {"pipeline", "report", "torch", "executorch"},
    {"inspection", "comparison", "schedule_comparison", "validation", "data"},
    {"evaluation"},
    {"learning"},
    {"__init__"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
LONGEST_FILE = 400


def part_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Return the parts of regal that a file imports, anywhere in it."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("regal.")}


def test_no_folder_imports_from_a_later_step_of_the_pipeline() -> None:
    wrong = [
        f"{path.relative_to(SRC)} imports regal.{other}"
        for path in SRC.rglob("*.py")
        for other in imports_of(path)
        if other != part_of(path) and LEVEL[other] > LEVEL[part_of(path)]
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_bindings_know_python() -> None:
    wrong = [
        file.name
        for file in [*NATIVE.glob("*.cc"), *NATIVE.glob("*.h")]
        if "nanobind" in file.read_text() and not file.name.startswith("bindings")
    ]
    assert not wrong


def test_no_file_is_longer_than_the_limit() -> None:
    files = [*SRC.rglob("*.py"), *NATIVE.glob("*.cc"), *NATIVE.glob("*.h")]
    for part in ("tests", "benchmarks", "tools"):
        files += (ROOT / part).rglob("*.py")
    lengths = {str(file): len(file.read_text().splitlines()) for file in files}
    too_long = {file: n for file, n in lengths.items() if n > LONGEST_FILE}
    assert not too_long


def test_no_test_loads_tensorflow_into_its_own_process() -> None:
    # Its libraries do not stand beside those of OR-tools: the process crashes later, elsewhere.
    loads = 'importorskip("' + "tensorflow"
    wrong = [file.name for file in (ROOT / "tests").rglob("test_*.py") if loads in file.read_text()]
    assert not wrong


def named_in(page: str, prefix: str = "") -> set[str]:
    """Return what stands in backquotes in the first column of the tables of a page."""
    lines = (ROOT / page).read_text().splitlines()
    first = [line.split("|")[1] for line in lines if line.startswith("|")]
    found = {name for cell in first for name in re.findall("`([^`]+)`", cell)}
    return {name.removeprefix(prefix).rstrip("/") for name in found}


def test_the_architecture_page_names_every_native_file() -> None:
    patterns = named_in("ARCHITECTURE.md")
    files = [file.name for file in [*NATIVE.glob("*.cc"), *NATIVE.glob("*.h")]]
    missing = [file for file in files if not any(fnmatch(file, pattern) for pattern in patterns)]
    assert not missing
    absent = [p for p in patterns if re.search(r"[*]|[.](cc|h)$", p) and not list(NATIVE.glob(p))]
    assert not absent


def test_the_architecture_page_names_every_folder_and_module() -> None:
    names = named_in("ARCHITECTURE.md", "src/regal/")
    parts = [path.name for path in SRC.iterdir() if path.is_dir() and path.name != "__pycache__"]
    parts += [path.name for path in SRC.glob("*.py") if not path.name.startswith("_")]
    assert sorted(set(parts) - names) == []


def test_the_benchmarks_page_names_every_benchmark() -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text()
    programs = [
        file.name
        for file in (ROOT / "benchmarks").glob("*.py")
        if "__main__" in file.read_text() and file.name != "run.py"
    ]
    assert [name for name in programs if name not in page] == []
