"""Packages of models whose layers share the accelerator, and of models that keep something between calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.arrays import Array
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.calls import example_calls, run_calls
from penstock.compiler.package import collect_package, write_folder
from penstock.compiler.pipeline import Lowered, emit, lower, prepare
from penstock.compiler.program import Program
from penstock.compiler.runtime import penstock_runtime
from penstock.compiler.runtime.penstock_runtime import Port
from penstock.compiler.runtime.penstock_runtime.layout import from_memory, to_memory
from penstock.compiler.runtime.penstock_runtime.state import State, States
from penstock.profiling.tool_runner import ToolRunner
from penstock.services.jobs.check import Checked, check_design
from penstock.services.jobs.foretelling import run_quantised
from tests.frontend import held_models
from tests.package import hand_made
from tests.rtl.rtl_batch import Core, build, check_whole

MODELS = Path(held_models.__file__)
LAYOUTS = [
    None,
    {"tile": [3, 2], "word": [1, 2]},
    {"tile": [6, 4], "word": [2, 2]},
]


def states_of(layout: dict[str, list[int]] | None, dim: int | None, stripes: int = 1) -> tuple[States, Array]:
    """A cache of 6 x 4 in such a layout, over so many memories."""
    initial = np.arange(24, dtype=np.float32).reshape(6, 4)
    shares = [layout]
    if layout and stripes > 1:
        shares = [{**layout, "stripes": stripes, "stripe": n} for n in range(stripes)]
    entries = [
        {"index": 0, "argument": f"m{n}", "shape": [6, 4], "dtype": "float32", "layout": share}
        for n, share in enumerate(shares)
    ]
    result = {"index": 0, "argument": "r", "shape": [6, 4], "dtype": "float32", "layout": layout}
    state = State("cache", 0, 0, 0, 0, dim, "places", [initial])
    ports = [Port("cache", (6, 4), "float32")], [Port("new", (6, 4) if dim is None else (2, 4), "float32")]
    return States([state], ports, {"inputs": entries, "outputs": [result]}), initial.copy()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("stripes", [1, 2])
def test_rows_are_written_in_place_and_nothing_else_is(layout: dict[str, list[int]] | None, stripes: int) -> None:
    states, wanted = states_of(layout, 0, stripes)
    (packed,) = states.enter(0, [])
    before = {name: memory.copy() for name, memory in packed.memories.items()}
    rows = np.array([[-1, -2, -3, -4], [-5, -6, -7, -8]], np.float32)
    states.keep(0, [rows], [None], {"places": torch.tensor([4, 1])})
    wanted[[4, 1]] = rows
    np.testing.assert_array_equal(states.arrays()["cache"], wanted)
    assert states.enter(0, [])[0] is packed, "no copy of the cache"
    changed = sum(np.count_nonzero(packed.memories[name] != memory) for name, memory in before.items())
    assert changed == rows.size
    states.reset()
    np.testing.assert_array_equal(states.arrays()["cache"], np.arange(24).reshape(6, 4))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_whole_state_is_the_memory_that_the_accelerator_wrote(layout: dict[str, list[int]] | None) -> None:
    states, before = states_of(layout, None)
    assert states.whole == {0}
    entry = {"shape": [6, 4], "dtype": "float32", "layout": layout}
    memory = to_memory(before + 1, entry).reshape(-1)
    states.keep(0, [memory], [None], {})
    assert states.enter(0, ["x"])[0].memories["m0"] is memory
    np.testing.assert_array_equal(states.arrays()["cache"], from_memory(memory, entry))


def packaged(
    reference: str, folder: Path, quantize: str | None = None, models: Path = MODELS
) -> tuple[Lowered, Checked]:
    """A package in `folder`/package, after the whole chain of checks."""
    return packaged_program(prepare(import_model(f"{models}:{reference}"), quantize), folder, quantize)


def packaged_program(program: Program, folder: Path, quantize: str | None = None) -> tuple[Lowered, Checked]:
    lowered = lower(program, default_design(read_graph(program.module), "u55c", 300.0, quantize))
    emit(lowered, folder / "emitted", part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    checked = check_design(lowered, folder / "emitted", ToolRunner())
    report = hand_made.report(hand_made.program()).model_copy(update={"verify": checked.verify})
    contents = collect_package(program, lowered.design, folder / "emitted", report, checked.expected)
    write_folder(contents, folder / "package")
    return lowered, checked


MODELS_HELD: list[tuple[str, Callable[[], held_models.Model], str | None]] = [
    ("between#blocks", held_models.between, None),
    ("residuals#", held_models.residuals, None),
    ("decoder#", held_models.decoder, None),
    ("running", held_models.running, None),
    ("running", held_models.running, "w8a8"),
    ("attention", held_models.attention, None),
    ("residuals#", held_models.residuals, "w8a8"),
    ("decoder#", held_models.decoder, "w8a8"),
    ("attention", held_models.attention, "w8a8"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("reference", "make", "quantize"), MODELS_HELD)
def test_a_session_answers_as_pytorch_does_call_after_call(
    reference: str, make: Callable[[], held_models.Model], quantize: str | None, tmp_path: Path
) -> None:
    _, checked = packaged(reference, tmp_path, quantize)
    assert checked.passed, checked.differences()
    module, (x,) = make()
    calls = [x.roll(call, -1) for call in range(held_models.PLACES)]
    with torch.no_grad():
        answers = [module(given).numpy() for given in calls]
    tolerance = 1e-5 if quantize is None else 0.05 * np.max(np.abs(answers))
    with penstock_runtime.load(tmp_path / "package") as accelerator:
        for session in range(2):
            for given, wanted in zip(calls, answers, strict=True):
                relative = 1e-5 if quantize is None else 0
                np.testing.assert_allclose(accelerator.run(given.numpy()), wanted, rtol=relative, atol=tolerance)
            if reference in ("decoder#", "attention"):
                with pytest.raises(penstock_runtime.PackageError, match=r"at 5 to 5 of 5 places - call reset\(\)"):
                    accelerator.run(x.numpy())
            if session == 0:
                accelerator.reset()


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["chain#", "between#blocks", "decoder#"])
def test_quantised_layers_by_one_start_answer_as_layers_one_by_one_and_as_their_integers(
    reference: str, tmp_path: Path
) -> None:
    lowered, checked = packaged(reference, tmp_path, "w8a8")
    assert checked.passed, checked.differences()
    program = lowered.program
    calls = example_calls(program)
    wanted = run_calls(program, calls, lambda one, given: run_quantised(one, [given])[0])
    with penstock_runtime.load(tmp_path / "package") as accelerator:
        assert accelerator.backend.call_list is not None
        for _ in range(2):  # by one start, then layer by layer
            found = [accelerator.run_call(given)[1] for given in calls[: len(wanted)]]
            for ours, theirs in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(ours, theirs)
            accelerator.backend.call_list = None
            accelerator.reset()


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["residuals#", "running"])
def test_their_systemverilog_has_the_same_bits_and_the_simulators_cycles(reference: str) -> None:
    program = prepare(import_model(f"{MODELS}:{reference}"))
    design = default_design(read_graph(program.module), "ecp5-85k", 100.0)
    core = Core(lower(program, design), reference)
    (built,) = build([core])
    check_whole(core, built)
