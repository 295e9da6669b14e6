"""Passes below linalg in a row share one module, and still do what each does alone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.pipeline.stages import itensor_passes, last_stage, run_passes, stream_passes
from penstock.compiler.program import Program


@pytest.fixture(scope="module")
def block() -> tuple[Program, Design]:
    """A block in two groups whose weights stream, so that words, converters and spills are there."""
    program = prepare(import_model("zoo:llama?mode=decode"))
    graph = read_graph(program.module)
    layers = [operation.layer for operation in graph.operations]
    design = default_design(graph, "u55c", 300.0, weights="stream")
    return program, replace(design, groups={layer: int(i >= len(layers) // 2) for i, layer in enumerate(layers)})


def without_names(module: object) -> str:
    """Copies shorten the numbers at the end of values' names, which mean nothing."""
    return re.sub(r"%\w+", "%", str(module))


def test_no_pass_changes_what_it_is_given(block: tuple[Program, Design]) -> None:
    program, design = block
    module = program.module
    for name, one in (*itensor_passes(design), *stream_passes(design)):
        before = str(module)
        after = one.apply(module)
        after.verify()
        assert str(module) == before, name
        module = after


def test_sharing_gives_what_copies_give(block: tuple[Program, Design]) -> None:
    program, design = block
    copied = program.module
    for passes in (itensor_passes(design), stream_passes(design)):
        shared = last_stage(copied, passes)
        *_, last = run_passes(copied, passes)
        assert without_names(shared) == without_names(last.module)
        copied = last.module
