"""Programs beside the package import only names that the package has."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

OPTIONAL = ("torch", "jax")  # what needs them cannot be imported where they are not installed
ROOT = Path(__file__).parents[1]
PROGRAMS = sorted(
    path for folder in ("examples", "benchmarks", "tools") for path in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("path", PROGRAMS, ids=[str(p.relative_to(ROOT)) for p in PROGRAMS])
def test_every_name_that_a_program_imports_from_the_package_is_there(path: Path) -> None:
    imports = [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "regal"
        for alias in node.names
    ]
    for module, name in imports:
        assert has(module or "", name), f"{module}.{name}"


def has(module: str, name: str) -> bool:
    """Return whether a module has a name, or needs what is not installed."""
    try:
        return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None
    except ModuleNotFoundError as error:
        if error.name in OPTIONAL:
            return True
        raise
