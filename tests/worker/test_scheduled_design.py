"""What `verify` lowered is what `package` takes, where both run in one process; elsewhere it is lowered anew."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.services.steps.bodies.verify import scheduled_design
from tests.compiler.designs import Dense, build_network


def context(folder: Path, turn: str, clock_mhz: float) -> Any:
    """As much of a step's context as is looked at: a program and a design, told apart by what they are."""
    program = build_network("int8", None, 8, (Dense(8, False, False),), seed=1)
    tree, design = folder / turn / "program", folder / turn / "design.json"
    program.save(tree)
    design.write_text(json.dumps(default_design(read_graph(program.module), "u55c", clock_mhz).to_json()))
    return SimpleNamespace(
        artifact=lambda _, name: SimpleNamespace(sha256=f"{name} {clock_mhz if name == 'design.json' else ''}"),
        input_tree=lambda *_: tree,
        input_file=lambda *_: design,
    )


def test_a_design_is_lowered_once_for_its_check_and_its_package(tmp_path: Path) -> None:
    here = context(tmp_path, "here", 250.0)
    checked = scheduled_design(here, keep=True)
    assert scheduled_design(here) is checked
    anew = scheduled_design(here)  # a package that is made again, in a process that kept nothing
    assert anew is not checked
    assert str(anew.lowered.stream) == str(checked.lowered.stream)
    assert (anew.figures, anew.unsized) == (checked.figures, checked.unsized)


def test_another_choice_is_not_packaged_as_the_one_before(tmp_path: Path) -> None:
    before = scheduled_design(context(tmp_path, "before", 250.0), keep=True)
    after = scheduled_design(context(tmp_path, "after", 200.0))
    assert (before.lowered.design.clock_mhz, after.lowered.design.clock_mhz) == (250.0, 200.0)
