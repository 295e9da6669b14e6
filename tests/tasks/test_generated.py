"""Programs that nobody wrote: right ones equal NumPy, wrong ones are refused at their line or seen to stop."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter import stream as stream_interpreter
from penstock.compiler.layout import pack, unpack
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_csim
from penstock.compiler.platforms import load_platform
from penstock.compiler.tasks.interpret import interpret
from penstock.compiler.tasks.opened import open_network
from penstock.compiler.transforms.lower_tasks import write_instances
from penstock.dse.evaluation.assemble_tasks import TaskAssembler
from penstock.profiling.csim import build_csim
from penstock.profiling.simulated import simulate_design
from penstock.profiling.tool_runner import ToolRunner
from tests.tasks.generated import right_program
from tests.tasks.spoilt import wrong_program

BOARD, CLOCK_MHZ = "ecp5-85k", 100.0


def answers_as_numpy_does(seed: int) -> None:
    """The text's meaning, and the channels and nests that it becomes."""
    made = right_program(seed)
    network = open_network("program.py", made.text, "", ())
    found = interpret(network, made.inputs)
    module = write_instances(network, network.instances, Design(BOARD, CLOCK_MHZ, {}))
    module.verify()
    top = next(iter(module.ops))
    names = [one.data for one in top.argument_names]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
    layouts = {name: top.layout(i) for i, name in enumerate(names)}  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]
    held = {name: pack(value, layouts[name]) if layouts[name] else value for name, value in made.inputs.items()}
    streamed = stream_interpreter.run(module, held, {})
    for name, wanted in made.answers.items():
        np.testing.assert_array_equal(found[name], wanted, err_msg=made.text)
        got = streamed[name]
        got = unpack(got, layouts[name], wanted.shape) if layouts[name] else got
        np.testing.assert_array_equal(got, wanted, err_msg=made.text)


def is_refused_or_stops(seed: int, folder: Path) -> str:
    """The kind of mistake, which was told at its line, or which the simulator saw."""
    made = wrong_program(seed)
    if not made.lines:
        path = folder / f"program{seed}.py"
        path.write_text(made.text)
        platform = load_platform(BOARD)
        network = TaskAssembler(import_model(str(path)), platform, CLOCK_MHZ).network(Design(BOARD, CLOCK_MHZ, {}))
        stuck = simulate_design(network, platform, CLOCK_MHZ).deadlock
        assert stuck is not None, made.text
        assert made.said in str(stuck), made.text
        deep = network.with_depths(
            {name: one.depth if name != made.said else 64 for name, one in network.channels.items()}
        )
        assert not has_stopped_at(simulate_design(deep, platform, CLOCK_MHZ).deadlock, made.said), made.text
        return made.kind
    with pytest.raises(PenstockError) as caught:
        open_network("program.py", made.text, "", ())
    error = caught.value
    named = {int(line) for line in re.findall(r"program\.py:(\d+)", f"{error.where} {error.limit} {error.what}")}
    assert named & made.lines, f"{error.one_line()}\n{made.text}"
    assert made.said in error.what, f"{error.one_line()}\n{made.text}"
    return made.kind


def has_stopped_at(stuck: object, channel: str) -> bool:
    """Whether a channel is one that tasks wait for; a program may still stop at others that are shallow."""
    return stuck is not None and channel in str(stuck)


KINDS = 8
RIGHT, WRONG = range(30), range(30)
MORE_RIGHT, MORE_WRONG = range(30, 330), range(30, 330)


def test_right_programs_are_taken_and_equal_numpy() -> None:
    for seed in RIGHT:
        answers_as_numpy_does(seed)


def test_wrong_programs_are_refused_at_their_line_or_stop(tmp_path: Path) -> None:
    assert len({is_refused_or_stops(seed, tmp_path) for seed in WRONG}) == KINDS


@pytest.mark.slow
def test_three_hundred_right_programs_equal_numpy() -> None:
    for seed in MORE_RIGHT:
        answers_as_numpy_does(seed)


@pytest.mark.slow
def test_three_hundred_wrong_programs_are_refused(tmp_path: Path) -> None:
    assert len({is_refused_or_stops(seed, tmp_path) for seed in MORE_WRONG}) == KINDS


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3, 11, 33])
def test_their_cpp_equals_their_text(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(right_program(seed).text)
    lowered = lower(prepare(import_model(str(path))), Design(BOARD, CLOCK_MHZ, {}, default_depth=64))
    inputs = make_inputs(lowered, random_sets=1)
    out = tmp_path / "out"
    emit(lowered, out, part="x", clock_mhz=CLOCK_MHZ)
    assert verify_csim(lowered, build_csim(out, ToolRunner()), inputs).equal
