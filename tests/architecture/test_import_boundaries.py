"""The arrows between packages point down only, and the API does without the compiler's libraries."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = "penstock."
TOP_LEVEL = ("services", "web", "dse", "profiling", "compiler", "db")

# What a package may import of ours, besides itself. Longest prefix decides whose row a module is in.
BASE = {"compiler.errors", "compiler.program", "compiler.layout", "compiler.host_parts", "compiler.jit"}
BOTTOM = {"compiler.dialects", "compiler.platforms"}
DECISIONS = BOTTOM | {"compiler.analysis", "compiler.schedule", "compiler.design"}
PASSES = DECISIONS | {
    "compiler.transforms",
    "compiler.backend",
    "compiler.simulator",
    "compiler.frontend",
    "compiler.interpreter",
}
WHOLE_COMPILER = PASSES | {"compiler.pipeline"}
ALLOWED: dict[str, set[str]] = {
    "db": set(),
    "web": set(),
    "compiler": set(),
    "compiler.errors": set(),
    "compiler.layout": set(),
    "compiler.host_parts": {"compiler.errors"},
    "compiler.program": {"compiler.errors", "compiler.dialects", "compiler.host_parts"},
    "compiler.dialects": BASE | BOTTOM,
    "compiler.platforms": BASE | BOTTOM,
    "compiler.analysis": BASE | DECISIONS,
    "compiler.schedule": BASE | DECISIONS,
    "compiler.design": BASE | DECISIONS,
    "compiler.transforms": BASE | PASSES,
    "compiler.backend": BASE | PASSES,
    "compiler.simulator": BASE | PASSES,
    "compiler.frontend": BASE | PASSES,
    "compiler.interpreter": BASE | PASSES,
    "compiler.pipeline": BASE | WHOLE_COMPILER,
    "profiling": BASE | PASSES,
    "dse": BASE | WHOLE_COMPILER | {"profiling"},
    "services": BASE | WHOLE_COMPILER | {"profiling", "dse", "db", "web"},
}
HEAVY = ("torch", "torch_mlir", "xdsl", "numpy", "optuna", "scipy", "numba", "networkx", "pulp", "sklearn")


def modules() -> list[Path]:
    return [path for top in TOP_LEVEL for path in sorted((ROOT / top).rglob("*.py"))]


def name_of(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """Our own modules that a file imports, wherever in the file it does; without the `penstock.` before each."""
    whole = f"{OURS}{name_of(path)}".split(".")
    package = whole if path.name == "__init__.py" else whole[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            # `from penstock.compiler import errors` names a module too, so each name counts below its origin.
            found |= {f"{origin}.{alias.name}" for alias in node.names}
    return {name.removeprefix(OURS) for name in found if name.startswith(OURS) and name != f"{OURS}IMPORT_ROOT"}


def covers(package: str, name: str) -> bool:
    return name == package or name.startswith(package + ".")


def row_of(module: str) -> str:
    return max((package for package in ALLOWED if covers(package, module)), key=len)


def offences(path: Path) -> list[str]:
    row = row_of(name_of(path))
    # The package `compiler` itself is empty; its row must not open all of the compiler to itself.
    allowed = ALLOWED[row] | ({row} if row != "compiler" else set())
    return [
        f"{path.relative_to(ROOT)} (in {row}) imports {name}"
        for name in sorted(imported(path))
        if not any(covers(package, name) for package in allowed)
    ]


def test_every_import_points_down() -> None:
    wrong = [offence for path in modules() for offence in offences(path)]
    assert not wrong, "\n".join(wrong)


def test_the_check_sees_an_arrow_that_points_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    culprit = tmp_path / "compiler" / "transforms" / "bad.py"
    culprit.parent.mkdir(parents=True)
    imports = "from penstock.dse.tiling import choose", "from ..pipeline import lower"
    culprit.write_text(f"def late() -> None:\n    {imports[0]}\n    {imports[1]}\n")
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert len(offences(culprit)) == 2


def test_the_only_import_name_is_penstock() -> None:
    """`import compiler` finds the folder from a checkout's root, as a second module of its own."""
    bare = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(TOP_LEVEL)})\b", re.M)
    found = [path for top in (*TOP_LEVEL, "tests", "examples", "benchmarks") for path in (ROOT / top).rglob("*.py")]
    matches = {path: bare.search(path.read_text()) for path in found}
    wrong = [f"{path.relative_to(ROOT)}: {match.group().strip()}" for path, match in matches.items() if match]
    assert not wrong, "\n".join(wrong)


def test_every_folder_is_linked_under_the_import_name() -> None:
    links = {link.name: link.resolve() for link in (ROOT / "penstock").iterdir() if link.is_symlink()}
    assert links == {top: ROOT / top for top in TOP_LEVEL}


def test_the_table_names_every_package() -> None:
    """A new folder of the compiler must be given its place among the arrows."""
    folders = {f"compiler.{path.parent.name}" for path in (ROOT / "compiler").glob("*/__init__.py")}
    assert folders <= set(ALLOWED), folders - set(ALLOWED)


BLOCKER = f"""
import importlib.abc, sys
class Block(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY!r}:
            raise ImportError("blocked: " + name)
sys.meta_path.insert(0, Block())
"""


@pytest.mark.parametrize(
    "module",
    [
        "penstock.services.api.app",
        "penstock.services.cli.main",
        "penstock.services.cli.client",
        "penstock.services.cli.up",
        "penstock.services.supervisor.up",
    ],
)
def test_faces_do_without_the_compilers_libraries(module: str) -> None:
    code = BLOCKER + f"import {module}"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert answer.returncode == 0, answer.stderr


def test_the_blocker_blocks() -> None:
    answer = subprocess.run([sys.executable, "-c", BLOCKER + "import numpy"], capture_output=True, text=True)
    assert "blocked: numpy" in answer.stderr


def test_help_is_quick_and_light() -> None:
    """`penstock --help` imports neither a web framework nor the compiler's libraries."""
    code = (
        "import sys; from penstock.services.cli.main import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    loaded = {name.split(".")[0] for name in answer.stderr.split()}
    assert answer.returncode == 0
    assert not loaded & {*HEAVY, "fastapi", "sqlalchemy", "celery", "httpx", "pydantic"}
