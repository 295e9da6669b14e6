"""Plans as hardware: the task program of a plan answers as NumPy does, and takes in Verilator what was simulated."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.mesh.description import load_machine, machine_of, module_of_toml
from penstock.compiler.mesh.facts import facts_of
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.mapping import MeshPlan
from penstock.compiler.mesh.overlay.program import OverlayProgram
from penstock.compiler.mesh.planner import Reuse, all_plans, plan_programs
from penstock.compiler.mesh.shipped import FOLDER
from penstock.compiler.mesh.traffic import Traffic
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.pipeline.verify import FLOAT_TOLERANCE, make_inputs, verify_csim, verify_levels
from penstock.compiler.tasks.interpret import interpret as run_tasks
from penstock.compiler.tasks.opened import open_network
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.dse.rungs.open_rtl import WholeCore
from penstock.profiling.csim import build_csim
from penstock.profiling.simulated import simulate_design
from penstock.profiling.tool_runner import ToolRunner
from tests.mesh.answers import CASES, Case
from tests.mesh.small_kernels import FLOATS, INTS, ONES, error, few_ints, floats
from tests.mesh.tile_values import interpret
from tests.tasks.in_verilator import assert_equal_in_verilator
from tests.tasks.programs import answered, drawn

MESH = "ecp5-85-4x4"
FOUR = ("int8", "gemm", "batched_gemm", "mlp")
"""What fits an ECP5 on four cores; of the others two do."""
SIXTEEN_FIT = ("int8", "gemm", "batched_gemm")
ON_SIXTEEN = {**ONES, "ROWS": 16, "CHANNELS": 16}
"""Enough of all for sixteen cores."""


def first_built(case: Case, machine: Machine) -> str:
    for measured in plan_programs([case.program()], machine, 3, Reuse()).measured:
        with suppress(PenstockError):
            return OverlayProgram(measured.plan, machine).text()
    raise AssertionError("no plan is built")


def small(rows: int = 2) -> Machine:
    """The same overlay of four cores, or of two."""
    text = (FOLDER / f"{MESH}.toml").read_text().replace("x = 4", f"x = {rows}").replace("y = 4", "y = 2")
    return machine_of(module_of_toml(text.replace("d = 4", f"d = {rows}"), MESH))


def built(case: Case, machine: Machine) -> dict[str, MeshPlan]:
    """Of every fifth plan, those that are built, by their program."""
    found = dict[str, MeshPlan]()
    for plan in list(all_plans(facts_of(case.program(), machine), Traffic(machine), Reuse()))[::5]:
        with suppress(PenstockError):
            found[OverlayProgram(plan, machine).text()] = plan
    return found


def test_every_plan_that_is_built_answers_as_numpy_does() -> None:
    programs = built(INTS, load_machine(MESH))
    assert len(programs) >= 12  # two orders, each operand hoisted or not, fetched by each core or shared every way
    for text in list(programs)[::2]:
        network = open_network("program.py", text, "", ())
        inputs = drawn(network)
        wanted = inputs["a"].astype(np.int64) @ inputs["b"].astype(np.int64)
        np.testing.assert_array_equal(answered(network, inputs), wanted)


@pytest.mark.parametrize("name", FLOATS)
def test_kernels_become_programs_that_answer_as_they_do(name: str) -> None:
    case = floats(name)
    program = case.program()
    network = open_network("program.py", first_built(case, load_machine(MESH)), "", ())
    inputs = drawn(network)
    # the kernel's one-letter tensors may have other names in the program; their order is the kernel's
    named = {name.rstrip("_"): value for name, value in inputs.items()}
    tensors = {n: named[n].ravel() if n in named else np.zeros(t.elements, np.float32)
               for n, t in program.tensors.items()}  # fmt: skip
    interpret(program, tensors)
    ((_, found),) = run_tasks(network, inputs).items()
    (wanted,) = (tensors[name] for name in program.written)
    assert np.abs(found.ravel() - wanted).max() < 2e-3 * np.abs(wanted).max()


def test_what_does_not_fit_a_scratchpad_is_said() -> None:
    with pytest.raises(PenstockError, match=r"no plan fits"):  # not even one instance alone
        plan_programs([CASES["mlp"].program()], load_machine(MESH), 1, Reuse())


def test_the_best_plan_is_built_and_keeps_what_it_hoists() -> None:
    machine = load_machine(MESH)
    best = plan_programs([INTS.program()], machine, 5, Reuse()).best.plan
    assert "kept_" in OverlayProgram(best, machine).text()


NOT_BUILT = {
    "halves": (replace(INTS, given={**INTS.given, "a": "float16"}), r"a is float16.*--set a=float32"),
    "an edge": (floats("gemm", {"M": 14}), r"7 blocks on 4 cores leave an edge|mask cuts"),
    "a wide tile": (floats("mlp", {"WIDE": 32}), r"a tile of x is 2048 bits.*at most 512"),
}


@pytest.mark.parametrize("name", NOT_BUILT)
def test_what_is_not_built_is_said(name: str) -> None:
    case, said = NOT_BUILT[name]
    machine = load_machine(MESH)
    best = plan_programs([case.program()], machine, 1, Reuse()).best.plan
    with pytest.raises(PenstockError, match=said):
        OverlayProgram(best, machine).text()


def test_the_hardware_of_words_as_small_as_tiles_keeps_what_the_plan_promised(tmp_path: Path) -> None:
    """What a core keeps is not filled before, and comes while it computes: a round is a cycle."""
    machine = load_machine(MESH)
    best = plan_programs([INTS.program()], machine, 5, Reuse()).best
    file = tmp_path / "program.py"
    file.write_text(OverlayProgram(best.plan, machine).text())
    evaluator = Evaluator.create(prepare(import_model(str(file))), "ecp5-85k")
    design = finish(evaluator, evaluator.evaluate(evaluator.space.default_params())).design
    simulated = simulate_design(evaluator.assembler.network(design), evaluator.platform, evaluator.clock_mhz)
    assert simulated.latency <= 1.1 * best.run.cycles


@pytest.mark.slow
@pytest.mark.parametrize("name", ["int8", *sorted(set(FLOATS) - {"gemm", "flash_attention"})])
def test_overlays_equal_at_every_level_and_take_the_simulated_cycles(name: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    case = few_ints() if name == "int8" else floats(name, ONES)
    file.write_text(first_built(case, small(2 if name in FOUR else 1)))
    program = prepare(import_model(str(file)))
    evaluator = Evaluator.create(program, "ecp5-85k")
    lowered = lower(program, finish(evaluator, evaluator.evaluate(evaluator.space.default_params())).design)
    inputs = make_inputs(lowered, random_sets=1)
    assert all(level.equal and level.values for level in verify_levels(lowered, inputs))
    emit(lowered, tmp_path, part="x", clock_mhz=lowered.design.clock_mhz)
    assert verify_csim(lowered, build_csim(tmp_path, ToolRunner()), inputs).equal
    assert_equal_in_verilator(lowered, inputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["int8", *FLOATS])
def test_sixteen_cores_answer_in_verilator_as_numpy_does_in_the_simulated_cycles(name: str, tmp_path: Path) -> None:
    """What an ECP5-85 has no room for is still SystemVerilog."""
    case = few_ints() if name == "int8" else floats(name, ON_SIXTEEN if name in ("mlp", "scan") else ONES)
    file = tmp_path / "program.py"
    file.write_text(first_built(case, load_machine(MESH)))
    evaluator = Evaluator.create(prepare(import_model(str(file))), "ecp5-85k")
    evaluated = evaluator.evaluate(evaluator.space.default_params())
    assert evaluated.feasible == (name in SIXTEEN_FIT)
    lowered = lower(evaluator.program, evaluated.design)
    network = evaluator.assembler.network(lowered.design)
    assert sum(task.name.startswith("core_") for task in network.tasks) == 16
    inputs = make_inputs(lowered, random_sets=1)
    core = WholeCore.of(lowered, evaluator.platform)
    names = [port.name.rstrip("_") for port in lowered.program.signature.inputs]
    for given, (found,) in zip(inputs, core.answers(inputs), strict=True):
        wrong = error(case, dict(zip(names, given, strict=True)), found)
        assert wrong == 0 if name == "int8" else wrong < FLOAT_TOLERANCE
    simulated = simulate_design(network, evaluator.platform, evaluator.clock_mhz)
    assert core.run(inputs[0]).latency == simulated.latency
