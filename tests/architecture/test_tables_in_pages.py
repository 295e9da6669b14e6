"""Tables that pages show are those of the code: each stands between two marks, and is written from what is imported."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.compiler.evidence import RUNGS
from penstock.dse.evaluation.objectives import OBJECTIVES
from penstock.dse.rungs import RUNGS as MEASURED_BY
from penstock.dse.search.sampler_kinds import DEFAULT_SAMPLER, SAMPLERS
from penstock.services.step_kinds import STEP_KINDS
from tests.goldens import check_golden

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "services" / "steps" / "README.md"]
MARKED = re.compile(r"<!-- table: ([a-z-]+) -->\n(.*?)<!-- end -->\n", re.DOTALL)


def objectives() -> str:
    lines = [(f"`{o.name}`", f"`{o.figure}`", o.meaning) for o in OBJECTIVES.values()]
    return rows(("objective", "its figure", "what it is"), lines)


def samplers() -> str:
    names = {name: f"`{name}`{' (default)' if name == DEFAULT_SAMPLER else ''}" for name in SAMPLERS}
    return rows(("`--sampler`", "proposes"), [(names[name], kind.meaning) for name, kind in SAMPLERS.items()])


def steps() -> str:
    named = {name: f"`{name}/N`" if kind.many else f"`{name}`" for name, kind in STEP_KINDS.items()}
    lines = [(named[name], kind.queue, kind.does, kind.outputs or "–") for name, kind in STEP_KINDS.items()]
    return rows(("step", "queue", "what it does", "outputs"), lines)


TABLES: dict[str, Callable[[], str]] = {
    "objectives": objectives, "samplers": samplers, "steps": steps,
}  # fmt: skip


def rows(heads: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    table = [heads, tuple("---" for _ in heads), *lines]
    return "".join(f"|{'|'.join(cell if cell == '---' else f' {cell} ' for cell in row)}|\n" for row in table)


def marked() -> dict[str, Path]:
    return {m[1]: page for page in PAGES for m in MARKED.finditer(page.read_text())}


def test_every_table_stands_in_a_page() -> None:
    assert set(marked()) == set(TABLES)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_page_shows_the_table_as_it_is(name: str) -> None:
    page = marked()[name]

    def written(found: re.Match[str]) -> str:
        return f"<!-- table: {name} -->\n{TABLES[name]()}<!-- end -->\n" if found[1] == name else found[0]

    check_golden(page, MARKED.sub(written, page.read_text()))


def test_every_rung_has_what_measures_it() -> None:
    assert tuple(MEASURED_BY) == RUNGS
