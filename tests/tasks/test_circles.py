"""Streams that lead back to where they come from: taken where every task gets its tokens, the same at every level."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.design import Design
from penstock.compiler.dialects import nest
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import Lowered, emit, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels
from penstock.compiler.schedule import load_library, schedule_nest
from penstock.compiler.tasks.circles import circular_ports
from penstock.compiler.tasks.interpret import interpret
from penstock.compiler.tasks.lowering.perfect import flatten
from penstock.compiler.tasks.mapping.apply import elements
from penstock.compiler.transforms.lower_tasks import write_instances
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.profiling.csim import build_csim
from penstock.profiling.simulated import simulate_design
from penstock.profiling.tool_runner import ToolRunner
from tests.tasks.in_verilator import assert_equal_in_verilator
from tests.tasks.programs import EXAMPLES, Array, drawn, read

AROUND = """
@program
def around(A: int32[12], B: int32[12]):
    there, back = Stream[int32], Stream[int32]

    @task
    def near():NEAR

    @task
    def far():FAR
"""
ANSWERED = """
        for i in range(12):
            back.put(there.get() * 3)
"""
WITHOUT = (
    AROUND.replace("there, back = Stream[int32], Stream[int32]", "there = Stream[int32]")
    .replace(
        "NEAR",
        """
        for i in range(12):
            there.put(A[i])
""",
    )
    .replace(
        "FAR",
        """
        for i in range(12):
            B[i] = there.get()
""",
    )
)
PROGRAMS: dict[str, tuple[str, str, Callable[[Array], Array]]] = {
    "a put before its answer": ("""
        for i in range(12):
            there.put(A[i])
            B[i] = back.get()
""", ANSWERED, lambda a: a * 3),
    "answers some rounds later": ("""
        for i in range(3):
            there.put(A[i])
        for i in range(9):
            there.put(A[i + 3])
            B[i] = back.get()
        for i in range(3):
            B[i + 9] = back.get()
""", ANSWERED, lambda a: a * 3),
    "two puts and two gets": ("""
        for i in range(12):
            there.put(A[i])
            x = back.get()
            there.put(x + 1)
            B[i] = back.get()
""", """
        for i in range(12):
            back.put(there.get() * 3)
            back.put(there.get() - 1)
""", lambda a: a * 3),
    "the first token from the other side": ("""
        for i in range(12):
            x = back.get() + A[i]
            B[i] = x
            if i < 11:
                there.put(x)
""", """
        back.put(5)
        for i in range(11):
            back.put(there.get())
""", lambda a: np.cumsum(a) + 5),
    "a get in one branch before a put, in the other after it": ("""
        for i in range(12):
            if i % 2 == 0:
                x = back.get()
            there.put(A[i])
            if i % 2 == 1:
                x = back.get()
            B[i] = x
""", """
        for i in range(12):
            if i % 2 == 0:
                back.put(7)
            y = there.get()
            if i % 2 == 1:
                back.put(y)
""", lambda a: np.where(np.arange(12) % 2 == 0, 7, a)),
}  # fmt: skip


def text_of(name: str) -> str:
    near, far, _ = PROGRAMS[name]
    return AROUND.replace("NEAR", near).replace("FAR", far)


def lowered_of(folder: Path, text: str, board: str = "ecp5-85k") -> Lowered:
    (folder / "program.py").write_text("from penstock.tasks import *\n" + text)
    evaluator = Evaluator.create(prepare(import_model(str(folder / "program.py"))), board)
    return lower(evaluator.program, finish(evaluator, evaluator.evaluate(evaluator.space.default_params())).design)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_taken_and_streams_equal_the_text(name: str, tmp_path: Path) -> None:
    network = read(text_of(name))
    inputs = drawn(network)
    np.testing.assert_array_equal(interpret(network, inputs)["B"], PROGRAMS[name][2](inputs["A"]))
    lowered = lowered_of(tmp_path, text_of(name))
    assert all(level.equal and level.values for level in verify_levels(lowered, make_inputs(lowered, random_sets=1)))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_hardware_equals_the_text_and_takes_the_simulated_cycles(name: str, tmp_path: Path) -> None:
    lowered = lowered_of(tmp_path, text_of(name))
    inputs = make_inputs(lowered, random_sets=1)
    emit(lowered, tmp_path / "out", part="x", clock_mhz=lowered.design.clock_mhz)
    assert verify_csim(lowered, build_csim(tmp_path / "out", ToolRunner()), inputs).equal
    assert_equal_in_verilator(lowered, inputs)


def test_vitis_links_the_test_bench_with_threads(tmp_path: Path) -> None:
    """Its own C simulation runs the circle's tasks side by side as well; of others nothing is said."""
    for number, text in enumerate((text_of("a put before its answer"), WITHOUT)):
        (tmp_path / str(number)).mkdir()
        lowered = lowered_of(tmp_path / str(number), text)
        out = tmp_path / str(number) / "out"
        emit(lowered, out, part="x", clock_mhz=lowered.design.clock_mhz)
        script, config = (out / "hls" / name for name in ("run_hls.tcl", "hls_config.cfg"))
        flags = (
            script.read_text().count("_design -argv $frames -ldflags -pthread }"),
            config.read_text().count("-pthread"),
        )
        assert flags == ((2, 2) if number == 0 else (0, 0))
        assert (out / "hls" / "together.h").exists() == (number == 0)


def intervals(text: str, library: str, clock_mhz: float) -> dict[str, tuple[int, int, bool]]:
    """II and depth of each nest of a program, and whether it stands in a circle."""
    network = read(text)
    module = write_instances(network, network.instances, Design("ecp5-85k", 100.0, {}))
    found = {
        op: schedule_nest(op, load_library(library, clock_mhz)) for op in module.walk() if isinstance(op, nest.NestOp)
    }
    return {one.name: (one.ii, one.depth, op.in_circle is not None) for op, one in found.items()}


def test_a_round_takes_its_tokens_before_it_puts_any() -> None:
    """On the open route rounds follow each other at once; a pipeline that stops as a whole has one at a time."""
    text = text_of("a put before its answer")
    network = read(text)
    (near, _) = network.bodies
    assert len(circular_ports(network)[near]) == 2
    assert (
        flatten(network.source, near).nests[0].loops
        != flatten(network.source, near, circular_ports(network)[near]).nests[0].loops
    )
    flushing, stopping = (
        intervals(text, "open-ecp5", 100.0),
        intervals(text, "vitis-ultrascale-plus", 300.0),
    )
    assert all(circular for _, _, circular in (*flushing.values(), *stopping.values()))
    assert {ii for ii, _, _ in flushing.values()} == {1}
    assert all(ii == depth > 1 for ii, depth, _ in stopping.values())


def test_who_feeds_no_circle_keeps_its_pace() -> None:
    text = (EXAMPLES / "heat.py").read_text()
    found = intervals(text, "vitis-ultrascale-plus", 300.0)
    assert {name.split(".")[0].rstrip("_01"): circular for name, (_, _, circular) in found.items()} == {
        "load": False, "half": True, "store": False,
    }  # fmt: skip


FIRST = """
        for i in range(12):
            x = back.get()
            there.put(A[i])
            B[i] = x
"""
TOO_FEW = """
        for i in range(11):
            there.put(A[i])
            B[i] = back.get()
        B[11] = back.get()
        there.put(A[11])
"""


@pytest.mark.parametrize("near", [FIRST, TOO_FEW])
def test_who_waits_for_whom_is_shown_with_its_lines(near: str) -> None:
    text = AROUND.replace("NEAR", near).replace("FAR", ANSWERED)
    with pytest.raises(PenstockError) as caught:
        read(text)
    assert caught.value.what.startswith("tasks wait for each other for ever: ")
    lines = text.splitlines()
    for task, stream in (("near", "back"), ("far", "there")):
        match = re.search(rf"{task} waits for {stream} \(program.py:(\d+)\)", caught.value.what)
        assert match is not None
        assert f"{stream}.get()" in lines[int(match[1]) - 1 - 2]  # two lines are put before a program that is read


def test_tokens_too_many_to_count_are_named() -> None:
    text = text_of("a put before its answer").replace("[12]", "[4000000]").replace("range(12)", "range(4000000)")
    with pytest.raises(PenstockError, match="tokens pass near too often to see whether its circle ends") as caught:
        read(text)
    assert "in a circle" in caught.value.limit


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("chain(near, far)", "near and far wait for each other in a circle"),
        ("bundle(station)", "puts into ring_2 and gets from it itself"),
    ],
)
def test_tasks_of_a_circle_share_no_element(step: str, said: str) -> None:
    ring = (EXAMPLES / "token_ring.py").read_text().replace("* 2 + i", "* 2")
    text = ring if "station" in step else text_of("a put before its answer")
    with pytest.raises(PenstockError, match=said) as caught:
        elements(read(text), (step,))
    assert caught.value.code == "bad-mapping"


def test_a_body_by_hand_stands_in_no_circle() -> None:
    text = text_of("a put before its answer") + (
        '\n    inject(far, "own", cpp=BODY, function="f", reads={"there": 12}, writes={"back": 12}, ii=1, depth=2)\n'
    )
    body = 'BODY = """\nvoid f(hls::stream<int32_t> &a, hls::stream<int32_t> &b) { b.write(a.read()); }\n"""\n'
    with pytest.raises(PenstockError, match="far stands in a circle") as caught:
        read(body + text)
    assert "inject(far" in caught.value.excerpt


def test_depths_of_a_circle_are_sized_by_simulation() -> None:
    """A sender that is as far ahead as its credits: its FIFO is as deep, and no deeper. With less they stop."""
    evaluator = Evaluator.create(prepare(import_model(str(EXAMPLES / "credits.py"))), "ecp5-85k")
    found = finish(evaluator, evaluator.evaluate(evaluator.space.default_params())).design
    network = evaluator.assembler.network(found)
    assert max(one.depth for one in network.channels.values()) <= 4
    assert simulate_design(network, evaluator.platform, evaluator.clock_mhz).deadlock is None
    shallow = network.with_depths(dict.fromkeys(network.channels, 1))
    stuck = simulate_design(shallow, evaluator.platform, evaluator.clock_mhz).deadlock
    assert "data is full" in str(stuck)
    assert "credit is full" in str(stuck)


def test_its_modelled_time_is_the_simulated_one() -> None:
    for name in ("token_ring", "heat"):  # the model counts two cycles more between the loops of one task
        evaluator = Evaluator.create(prepare(import_model(str(EXAMPLES / f"{name}.py"))), "ecp5-85k")
        modelled = evaluator.evaluate(evaluator.space.default_params())
        network = evaluator.assembler.network(modelled.design)
        simulated = simulate_design(network, evaluator.platform, evaluator.clock_mhz)
        assert modelled.figures.latency == simulated.latency
