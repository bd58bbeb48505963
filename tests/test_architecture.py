"""The folder order is the data flow; this file keeps it true."""

import ast
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "regal"
NATIVE = SRC.parents[1] / "native"
ORDER = [
    {"errors", "_native", "__version__"},
    {"units", "files", "child"},
    {"devices"},
    {"graph"},
    {"cost"},
    {"frontends", "plan"},
    {"baselines", "search"},
    {"backends", "onnxruntime", "tensorflow"},
    {"profiling"},
    {"result"},
    {"schedule_result"},
    {"options"},
    {"scheduling"},
    {"pipeline", "report", "torch"},
    {"inspection", "comparison", "schedule_comparison", "validation", "data"},
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
    lengths = {str(file): len(file.read_text().splitlines()) for file in files}
    too_long = {file: n for file, n in lengths.items() if n > LONGEST_FILE}
    assert not too_long


def test_no_test_loads_tensorflow_into_its_own_process() -> None:
    # Its libraries do not stand beside those of OR-tools: the process crashes later, elsewhere.
    tests = SRC.parents[1] / "tests"
    loads = 'importorskip("' + "tensorflow"
    wrong = [file.name for file in tests.rglob("test_*.py") if loads in file.read_text()]
    assert not wrong
