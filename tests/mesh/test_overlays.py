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
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels
from penstock.compiler.tasks.interpret import interpret as run_tasks
from penstock.compiler.tasks.opened import open_network
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.profiling.csim import build_csim
from penstock.profiling.simulated import simulate_design
from penstock.profiling.tool_runner import ToolRunner
from tests.mesh.answers import CASES, Case
from tests.mesh.tile_values import interpret
from tests.tasks.in_verilator import assert_equal_in_verilator
from tests.tasks.programs import answered, drawn

MESH = "ecp5-85-4x4"
INTS = Case(
    "gemm_int8", {"a": "int8", "b": "int8", "c": "int32", "M": 16, "N": 16, "K": 8},
    lambda t: t["a"].reshape(16, 8) @ t["b"].reshape(8, 16), "c",
)  # fmt: skip


FLOATS = {
    "gemm": ("a_ptr b_ptr c_ptr", {"BLOCK_SIZE_M": 2, "BLOCK_SIZE_N": 2, "BLOCK_SIZE_K": 2, "M": 16, "N": 16, "K": 8}),
    "batched_gemm": ("a b c", {"B": 2, "M": 8, "N": 8, "K": 8, "BLOCK_M": 2, "BLOCK_N": 2, "BLOCK_K": 2}),
    "flash_attention": ("Q K V Out", {"HEADS": 4, "LENGTH": 8, "D": 4, "BLOCK_M": 2, "BLOCK_N": 2}),
    "causal": ("Q K V Out", {"HEADS": 4, "LENGTH": 16, "D": 2, "BLOCK_M": 2, "BLOCK_N": 8, "CAUSAL": 1}),
    "flash_decode": ("q k v out", {"HEADS": 16, "QUERIES": 1, "LENGTH": 8, "D": 2, "BLOCK": 2}),
    "mlp": ("x up down y", {"ROWS": 32, "WIDE": 4, "HIDDEN": 8, "BLOCK_M": 2, "BLOCK_H": 2}),
    "norm_gemm": ("x w y", {"M": 8, "N": 8, "K": 8, "BLOCK_M": 2, "BLOCK_N": 2, "BLOCK_K": 2}),
    "scan": ("x delta a b c y", {"LENGTH": 4, "CHANNELS": 16, "STATES": 4, "BLOCK_C": 1}),
}
FOUR = ("int8", "gemm", "batched_gemm", "mlp")
"""What fits an ECP5 on four cores; of the others two do."""
ONES = {"BLOCK_SIZE_M": 1, "BLOCK_SIZE_N": 1, "BLOCK_SIZE_K": 1, "BLOCK_M": 1, "BLOCK_N": 1, "BLOCK_K": 1, "BLOCK": 1,
        "BLOCK_H": 1, "M": 4, "N": 4, "K": 4, "D": 2, "LENGTH": 4, "ROWS": 4, "WIDE": 2, "HIDDEN": 4, "CHANNELS": 4,
        "STATES": 2}  # fmt: skip
"""Sizes of which four cores with floats fit an ECP5."""


def floats(name: str, sizes: dict[str, int] | None = None) -> Case:
    """A kernel with tensors of float32, small enough for the words of task programs."""
    tensors, given = FLOATS[name]
    values: dict[str, int | float | str] = {**dict.fromkeys(tensors.split(), "float32"), **given}
    values |= {key: value for key, value in (sizes or {}).items() if key in given}
    return Case("flash_attention" if name == "causal" else name, values, lambda t: t["never"], "")


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
    case = replace(INTS, given={**INTS.given, "M": 8, "N": 8, "K": 4}) if name == "int8" else floats(name, ONES)
    file.write_text(first_built(case, small(2 if name in FOUR else 1)))
    program = prepare(import_model(str(file)))
    evaluator = Evaluator.create(program, "ecp5-85k")
    lowered = lower(program, finish(evaluator, evaluator.evaluate(evaluator.space.default_params())).design)
    inputs = make_inputs(lowered, random_sets=1)
    assert all(level.equal and level.values for level in verify_levels(lowered, inputs))
    emit(lowered, tmp_path, part="x", clock_mhz=lowered.design.clock_mhz)
    assert verify_csim(lowered, build_csim(tmp_path, ToolRunner()), inputs).equal
    assert_equal_in_verilator(lowered, inputs)
