"""A name of a class, or of a type alias, means one thing in the whole product, and the glossary says which."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOUSES = ("compiler", "dse", "profiling", "services", "db", "web")
SHIPPED = "compiler/runtime"
"""Runs inside packages, without any of ours: its names are a world of their own."""
TWICE = {
    "LoadOp": "an operation each of itensor and nest, written itensor.LoadOp and nest.LoadOp",
    "StoreOp": "as LoadOp",
    "TaskOp": "an operation each of itensor and stream",
    "WithinOp": "an operation each of itensor and nest",
    "YieldOp": "an operation each of itensor and nest",
    "ZooReference": "what a model is named by, and the same in a request's body",
    "Floats": "arrays of 64 bits, or of any float where rows of settings are many",
}


NAMES_AT = re.compile(r"((?:`[A-Z]\w+`(?:, (?:\.\.\. )?)?)+) \(`([\w/.-]+)`")
"""`Map`, `Reduce`, ... (`compiler/analysis/nests.py`)"""


def named(path: Path) -> Iterable[str]:
    """Public classes and aliases of a file; not its constants, which are spelled in capitals."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name[0].isupper() and not name.isupper():
                yield name


def test_a_name_means_one_thing() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in (path for house in HOUSES for path in sorted((ROOT / house).rglob("*.py"))):
        if not path.is_relative_to(ROOT / SHIPPED):
            for name in named(path):
                places[name].append(str(path.relative_to(ROOT)))
    public = {name: where for name, where in places.items() if len(where) > 1 and not name.startswith("_")}
    assert {name: where for name, where in public.items() if name not in TWICE} == {}
    assert set(TWICE) <= set(public), "no longer there twice"


def test_names_of_the_glossary_are_where_it_says() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text()
    said = [(name, path) for names, path in NAMES_AT.findall(page) for name in re.findall(r"`(\w+)`", names)]
    assert len(said) >= 40
    for name, path in said:
        place = ROOT / (path.replace("penstock_runtime", f"{SHIPPED}/penstock_runtime"))
        files = [place] if place.is_file() else sorted(place.rglob("*.py"))
        assert any(name in named(file) for file in files), f"the glossary says that {name} is in {path}"
