"""CONTRIBUTING.md sends people to files and names: they are there, and what it says of SQL is what the code does."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
HOUSES = ("compiler", "db", "dse", "profiling", "services", "web")
QUOTED = re.compile(r"`([^`\n]+)`")
NAMES_IN = re.compile(r"((?:`\w[\w.]*`(?:,\s|\sand\s|\sor\s)?)+)\s(?:in|of)\s`([\w./-]+)`")
"""`OBJECTIVES` in `dse/evaluation/objectives.py`; `SIMPLIFY` or `QUANTISE` of `compiler/transforms/canonicalise.py`."""
A_FILE = re.compile(r"[\w./*-]+\.(?:py|toml|md|mlir|json|txt)")
MADE_BY_YOU = ("NAME.before.mlir", "NAME.design.json", ".after.mlir")
MAY_BE_SQL = re.compile(r"SELECT |INSERT INTO |DELETE FROM |UPDATE ")
STATEMENT = re.compile(r"\s*(SELECT\s.|INSERT INTO\s|DELETE FROM\s|UPDATE\s.*\sSET\s|WITH\s.*\sAS\s)", re.DOTALL)


def paths(text: str) -> set[str]:
    """What a page calls by its place, or by a file's name alone; `penstock.x.y` is a module."""
    found = {one for one in QUOTED.findall(text) if not any(made in one for made in MADE_BY_YOU)}
    return {one for one in found if re.fullmatch(r"\.?[\w-]+(?:/[\w.*-]+)+", one) or A_FILE.fullmatch(one)}


@cache
def file_names() -> frozenset[str]:
    return frozenset(path.name for house in (*HOUSES, "docs", "tests") for path in (ROOT / house).rglob("*.*"))


@pytest.mark.parametrize("path", sorted(paths(PAGE)))
def test_what_the_page_names_is_there(path: str) -> None:
    there = path in file_names() or (ROOT / path).exists() or any(ROOT.glob(path if "/" in path else f"*/*/*/{path}"))
    assert there, f"CONTRIBUTING.md names {path}"


def names_in_files() -> list[tuple[str, str]]:
    found = {(name, path) for names, path in NAMES_IN.findall(PAGE) for name in QUOTED.findall(names)}
    return sorted(one for one in found if (ROOT / one[1]).is_file())


@pytest.mark.parametrize(("name", "path"), names_in_files())
def test_a_name_is_where_the_page_says(name: str, path: str) -> None:
    """Defined there, in the file or in one of its classes."""
    tree = ast.parse((ROOT / path).read_text())
    defined: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                defined.add(node.name)
            case ast.Name(ctx=ast.Store()):
                defined.add(node.id)
            case _:
                pass
    assert set(name.split(".")) <= defined, f"CONTRIBUTING.md says that {name} is in {path}"


def test_the_page_is_read_as_it_is_written() -> None:
    found = names_in_files()
    assert ("RunOptions", "services/run_options.py") in found
    assert ("converter_bits", "compiler/analysis/converting.py") in found
    assert ("QUANTISE", "compiler/transforms/canonicalise.py") in found
    assert ("Evaluation.measures_at", "dse/evaluation/evaluation.py") in found
    assert len(found) >= 12
    assert len(paths(PAGE)) >= 40


def test_both_pages_name_the_files_with_sql_outside_of_db() -> None:
    code = [path for house in HOUSES if house != "db" for path in (ROOT / house).rglob("*.py")]
    speaking = {str(path.relative_to(ROOT)) for path in code if has_statements(path.read_text())}
    for page in ("CONTRIBUTING.md", "ARCHITECTURE.md"):
        said = re.split(r"\n\n|\n- ", (ROOT / page).read_text().partition("SQL lives in")[2])[0]
        assert {one for one in QUOTED.findall(said) if one.endswith(".py")} == speaking, page


def has_statements(text: str) -> bool:
    if not MAY_BE_SQL.search(text):
        return False
    texts = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return any(isinstance(one, str) and STATEMENT.match(one) for one in texts)
