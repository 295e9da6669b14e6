"""Lowered designs in the simulator: figures with evidence `simulated`, next to the model's."""

from __future__ import annotations

import pytest

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.pipeline import lower, prepare
from penstock.compiler.platforms import load_platform
from penstock.compiler.reference import parse_reference
from penstock.compiler.schedule import load_library
from penstock.profiling.network import TaskNetwork, network_of
from penstock.profiling.simulated import simulate_design
from tests.profiling.model_profiler import model_design

CLOCK = 250.0
BOARD = load_platform("u55c")


def network(reference: str) -> TaskNetwork:
    program = prepare(import_loaded(load_model(parse_reference(reference)), lambda stage: None))
    design = default_design(read_graph(program.module), BOARD.name, CLOCK)
    return network_of(lower(program, design).top, load_library(BOARD.operators, CLOCK))


@pytest.mark.parametrize("reference", ["examples/digits_mlp.py:model", "zoo:attention?d=8&heads=2&seq=4"])
def test_a_lowered_design_is_simulated_as_the_model_foretells(reference: str):
    design = network(reference)
    deep = simulate_design(design, BOARD, CLOCK, bounded=False)
    modelled = model_design(design, BOARD, CLOCK, bounded=False)
    assert deep.evidence == "simulated"
    assert deep.latency == pytest.approx(modelled.latency, abs=8)
    assert set(deep.processes) == {task.name for task in modelled.tasks}
    marks = {name: channel.high_water for name, channel in deep.channels.items()}
    assert all(mark >= 1 for mark in marks.values())
    exact = simulate_design(design, BOARD, CLOCK, depths=marks)
    assert exact.latency == deep.latency, "at the high-water marks nothing waits"


def test_attention_with_short_fifos_stops_and_says_where():
    """The softmax reads its rows twice: a row waits in a FIFO that is too short for it."""
    design = network("zoo:attention?d=8&heads=2&seq=4")
    stuck = simulate_design(design, BOARD, CLOCK, depths=dict.fromkeys(design.channels, 1)).deadlock
    assert stuck is not None
    assert {wait.process for wait in stuck.cycle} == {wait.waits_for for wait in stuck.cycle}
    assert any(wait.cause == "full" for wait in stuck.cycle)
