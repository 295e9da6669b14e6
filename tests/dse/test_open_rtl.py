"""The open-rtl rung: whole designs as SystemVerilog, measured, compared, and refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.verify import compare, make_inputs
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs import Bench, Measured, rank, simulated, usable
from penstock.dse.rungs.history import FolderHistory
from penstock.dse.rungs.open_rtl import WholeCore
from penstock.profiling.store import FolderProfiles
from penstock.profiling.tool_runner import ToolCommand, ToolProcess, ToolResult, ToolRunner
from tests.compiler.designs import Dense, build_network

SETTINGS = {"default_tile_size": 8, "order": "reduction-outer"}


@pytest.fixture(scope="module")
def program() -> Program:
    return build_network("int8", None, 16, (Dense(8, False, True), Dense(4, False, False)), seed=5)


@pytest.fixture(scope="module")
def evaluator(program: Program) -> Evaluator:
    return Evaluator.create(program, "ecp5-45k")


@pytest.fixture(scope="module")
def ranked(evaluator: Evaluator) -> list[Evaluation]:
    return [evaluator.evaluate({**SETTINGS, "overall_unroll_size": lanes}) for lanes in (4, 16)]


def test_measured_cycles_are_the_simulator_s(evaluator: Evaluator, ranked: list[Evaluation]):
    """And they need not be: the three come from a closed form, a data-free simulation and hardware with data."""
    found = rank(evaluator, ranked, "open-rtl")
    assert [one.failure for one in found] == ["", ""]
    for one in found:
        assert one.measured is not None
        assert one.measured.evidence == "open-rtl"
        expected = simulated(evaluator, one.candidate, Bench())
        assert (one.measured.latency, one.measured.interval) == (expected.latency, expected.interval)
        assert one.measured.initial_delay is not None
        assert one.measured.initial_delay < one.measured.latency
    assert found[0].measured is not None
    assert found[1].measured is not None
    assert found[0].measured.latency <= found[1].measured.latency


class Refusing(ToolRunner):
    """Nothing may be started."""

    def run(self, command: ToolCommand, watch: Callable[[ToolProcess], None] | None = None) -> ToolResult:
        raise AssertionError(f"{command.argv[0]} was started")


def test_a_design_that_was_measured_before_starts_no_tool(
    evaluator: Evaluator, ranked: list[Evaluation], tmp_path: Path
):
    store, history = FolderProfiles(tmp_path / "profiles"), FolderHistory(tmp_path / "history")
    first = rank(evaluator, ranked, "open-rtl", Bench(profiles=store, history=history))
    assert store.counts.misses == 2
    again = rank(evaluator, ranked, "open-rtl", Bench(Refusing(), store, history=history))
    assert (store.counts.misses, store.counts.hits) == (2, 2)
    assert [one.measured for one in again] == [one.measured for one in first]
    cited = {key for one in first if one.measured is not None for key in one.measured.profiles}
    assert len(cited) == 2
    assert [Measured.from_json(json.loads(json.dumps(one.measured.to_json()))) for one in first if one.measured] == [
        one.measured for one in first
    ]


def test_a_core_answers_for_one_set_of_inputs_after_the_other(evaluator: Evaluator, ranked: list[Evaluation]):
    lowered = lower(evaluator.program, ranked[0].design)
    sets = make_inputs(lowered, random_sets=3)
    answers = WholeCore.of(lowered, evaluator.platform).answers(sets)
    for got, inputs in zip(answers, sets, strict=True):
        assert compare("open-rtl", "stream", got, lowered.run_stream(inputs)).equal


def test_hardware_that_computes_something_else_is_an_error(evaluator: Evaluator, ranked: list[Evaluation]):
    """The same SystemVerilog with other weights in its ROMs."""
    lowered = lower(evaluator.program, ranked[0].design)
    other = {name: np.roll(values, 1) + 1 for name, values in lowered.padded.params.items()}
    wrong = replace(lowered, padded=replace(lowered.padded, params=other))
    core = WholeCore.of(wrong, evaluator.platform)
    inputs = make_inputs(lowered, random_sets=1)
    assert not compare("open-rtl", "stream", core.answers(inputs)[0], lowered.run_stream(inputs[0])).equal


def test_a_platform_of_another_route_is_refused():
    platform = load_platform("u55c")
    with pytest.raises(PenstockError, match="u55c is not built on the open route") as caught:
        usable("open-rtl", platform, platform.clock_mhz)
    assert "simulated" in caught.value.hint


def test_without_verilator_the_rung_falls_back_and_says_why(
    evaluator: Evaluator, ranked: list[Evaluation], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("VERILATOR_ROOT", str(tmp_path))
    rung, why = usable("open-rtl", evaluator.platform, evaluator.clock_mhz)
    assert rung == "simulated"
    assert "verilator" in why.lower()
    assert usable("simulated", evaluator.platform, evaluator.clock_mhz) == ("simulated", "")
    found = rank(evaluator, ranked[:1], rung)
    assert found[0].measured is not None
    assert found[0].measured.evidence == "simulated"
