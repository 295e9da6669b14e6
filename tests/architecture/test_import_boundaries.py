"""The arrows between packages point down only, and the API does without the compiler's libraries."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from tests.architecture.layers import allows, rank_of

ROOT = Path(__file__).resolve().parents[2]
OURS = "penstock."
TOP_LEVEL = ("services", "web", "dse", "profiling", "compiler", "db")

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


def files() -> dict[str, Path]:
    """Every module of ours by its name."""
    return {name_of(path): path for path in modules()}


def folder_of(module: str) -> str:
    """The folder of a module; a package's own file stands in it."""
    return module if (ROOT / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]


def arrows() -> list[tuple[str, str]]:
    """Who imports whom, module by module: the picture that a drawing tool would draw."""
    return _arrows(ROOT)


@cache
def _arrows(_root: Path) -> list[tuple[str, str]]:
    known = files()
    return [
        (module, found)
        for module, path in known.items()
        for name in sorted(imported(path))
        if (found := name if name in known else name.rpartition(".")[0]) != module
    ]


def circles(edges: Iterable[tuple[str, str]]) -> list[list[str]]:
    graph: nx.DiGraph[str] = nx.DiGraph(edges)
    return [sorted(found) for found in nx.strongly_connected_components(graph) if len(found) > 1]


def offences(edges: Iterable[tuple[str, str]]) -> list[str]:
    """Arrows that point up, or into a house that is none of theirs."""
    return [f"{a} imports {b}" for a, b in edges if not allows(folder_of(a), folder_of(b))]


def test_every_folder_has_its_line() -> None:
    standing = {folder_of(module) for module, path in files().items() if path.read_text().strip()}
    assert standing - set(rank_of()) == set(), "give it a line in tests/architecture/layers.py"
    assert set(rank_of()) - {folder_of(module) for module in files()} == set(), "there is no such folder"


def test_every_import_points_down() -> None:
    wrong = offences(arrows())
    assert not wrong, "\n".join(wrong)


def test_no_circle_among_files_or_folders() -> None:
    edges = arrows()
    assert not circles(edges)
    assert not circles((a, b) for a, b in ((folder_of(a), folder_of(b)) for a, b in edges) if a != b)


def test_the_check_sees_circles_and_arrows_that_point_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, imports in {
        "compiler/transforms/low.py": ("from penstock.dse.evaluation import evaluate", "from ..pipeline import high"),
        "compiler/pipeline/high.py": ("import penstock.compiler.transforms.low",),
        "dse/evaluation/evaluate.py": (),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("def late() -> None:\n" + "".join(f"    {line}\n" for line in (*imports, "...")))
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert len(offences(arrows())) == 2
    assert circles(arrows()) == [["compiler.pipeline.high", "compiler.transforms.low"]]


def test_the_only_import_name_is_penstock() -> None:
    """`import compiler` finds the folder from a checkout's root, as a second module of its own."""
    bare = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(TOP_LEVEL)})\b", re.M)
    found = [path for top in (*TOP_LEVEL, "tests", "examples", "benchmarks") for path in (ROOT / top).rglob("*.py")]
    matches = {path: bare.search(path.read_text()) for path in found}
    wrong = [f"{path.relative_to(ROOT)}: {match.group().strip()}" for path, match in matches.items() if match]
    assert not wrong, "\n".join(wrong)


def test_every_folder_is_linked_under_the_import_name() -> None:
    links = {link.name: link.resolve() for link in (ROOT / "penstock").iterdir() if link.is_symlink()}
    assert links == {top: ROOT / top for top in (*TOP_LEVEL, "examples")}


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
        "penstock.client",
        "penstock.services.cli.up",
        "penstock.services.supervisor.up",
    ],
)
def test_faces_do_without_the_compilers_libraries(module: str) -> None:
    code = BLOCKER + f"import {module}"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("reference", ["examples/tasks/systolic_1d.py", "zoo.mlir"])
def test_what_is_read_as_text_does_without_pytorch(reference: str, tmp_path: Path) -> None:
    """It takes seconds to load; torch-mlir's Python side does without it as well."""
    path = ROOT / reference
    if path.suffix == ".mlir":
        path = tmp_path / reference
        path.write_text(
            "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            "  %e = tensor.empty() : tensor<4xf32>\n"
            "  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], "
            'iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {\n'
            "  ^bb0(%a: f32, %b: f32):\n    %s = arith.addf %a, %a : f32\n    linalg.yield %s : f32\n"
            "  } -> tensor<4xf32>\n  func.return %y : tensor<4xf32>\n}\n"
        )
    code = BLOCKER.replace(repr(HEAVY), repr(("torch",))) + (
        f"from penstock.compiler.frontend import import_model\nprint(import_model({str(path)!r}).signature.outputs)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=600)
    assert answer.returncode == 0, answer.stderr
    assert "Port(" in answer.stdout


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
