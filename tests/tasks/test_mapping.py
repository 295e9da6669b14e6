"""Instances that share elements: what may be mapped, that it computes the same, and what a search finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import emit, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels
from penstock.compiler.tasks.mapping.apply import elements
from penstock.compiler.tasks.mapping.candidates import load_of
from penstock.compiler.tasks.opened import open_network
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.dse.space.tasks import MAPPING
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner
from tests.tasks.generated import right_program
from tests.tasks.in_verilator import assert_equal_in_verilator
from tests.tasks.mapped import FARM, mapped_equals_its_text, random_schedule
from tests.tasks.programs import EXAMPLES, opened, read

BOARD = "ecp5-85k"
HEAD = "from penstock.tasks import *\n\n"
FITS: dict[tuple[str, ...], list[str]] = {
    ("bundle(worker)",): ["load", "worker_0_to_3", "store"],
    ("bundle(worker, 2)",): ["load", "worker_0_to_1", "worker_2_to_3", "store"],
    ("bundle(worker, inside=1)", "chain(load, worker)"): ["load_worker", "store"],
    ("bundle(worker)", "chain(load, worker)", "chain(load_worker, store)"): ["load_worker_store"],
}
REFUSED = {
    "bundle(work)": "there is no task 'work'",
    "bundle(worker, 3)": "no groups of 3",
    "bundle(load)": "no groups of 1",
    "bundle(worker, inside=2)": "no nest of 2 loops",
    "chain(load, worker)": "load sends to 4 instances",
    "chain(worker, worker)": "not chained to itself",
    "chain(store, load)": "store sends to 0 instances",
    "join(load, store)": "no step of a mapping",
    "bundle(worker, x)": "no step of a mapping",
}


@pytest.mark.parametrize("mapping", FITS, ids=" ".join)
def test_a_mapped_program_answers_the_same(mapping: tuple[str, ...]) -> None:
    made = mapped_equals_its_text(read(FARM), mapping)
    assert [one.name for one in made.instances] == FITS[mapping]


def test_workers_that_take_turns_as_they_are_dealt_to_share_a_stream() -> None:
    """Where the loader deals a token to each in turn, and the element takes one of each in turn."""
    made = elements(read(FARM), ("bundle(worker, inside=1)",))
    assert dict(made.stands_for) == {"given_0": 4, "back_0": 4}
    assert set(made.channels) == {"given_0", "back_0"}
    assert load_of(made).ports == 2
    assert len(elements(read(FARM), ("bundle(worker)",)).channels) == 8  # one after the other: each has its own


@pytest.mark.parametrize("step", REFUSED)
def test_what_cannot_be_mapped_is_named(step: str) -> None:
    with pytest.raises(PenstockError) as caught:
        elements(read(FARM), (step,))
    assert caught.value.code == "bad-mapping"
    assert REFUSED[step] in caught.value.what
    assert caught.value.hint


def test_elements_that_would_wait_for_each_other_are_refused() -> None:
    """The ends of a fork and its join on one element, with something between them elsewhere."""
    text = """
@program
def p(A: int8[8], B: int32[8]):
    s, t, u = Stream[int8], Stream[int8], Stream[int8]

    @task
    def ends():
        for i in range(8):
            x = A[i]
            s.put(x)
            t.put(x)

    @task
    def middle():
        for i in range(8):
            u.put(s.get())

    @task
    def last():
        for i in range(8):
            B[i] = u.get() + t.get()
"""
    with pytest.raises(PenstockError, match="stands in a circle"):
        elements(read(text), ("chain(ends, last)",))
    mapped_equals_its_text(read(text), ("chain(ends, middle)", "chain(ends_middle, last)"))


def test_instances_that_differ_share_no_element() -> None:
    with pytest.raises(PenstockError, match="do not run the same"):
        elements(opened("systolic"), ("bundle(element, 4)",))
    assert len(mapped_equals_its_text(opened("systolic"), ("chain(element, drain)",)).instances) == 31


@pytest.mark.parametrize(
    ("lines", "said"),
    [("bundle(workers, 2)", "no task 'workers'"), ("bundle(worker, 1)", "share nothing"),
     ("chain(worker)", "takes tasks"),
     ("bundle(worker, size=3)", "no argument"), ("fit(elements=0)", "at least 1"), ("fit()", "takes limits"),
     ("bundle(worker, W + x)", "'x' is not defined"), ("bundle(worker)\n    fit(elements=3)", "a schedule by hand")],
)  # fmt: skip
def test_a_wrong_schedule_in_a_program_is_refused_at_its_line(lines: str, said: str) -> None:
    with pytest.raises(PenstockError) as caught:
        read(f"{FARM}\n    {lines}\n")
    error = caught.value
    assert said in f"{error.what} ({error.limit})"
    assert "bundle" in error.excerpt or "chain" in error.excerpt or "fit" in error.excerpt


def test_generated_programs_answer_the_same_on_any_elements() -> None:
    taken = 0
    for seed in range(24):
        network = open_network("program.py", right_program(seed).text, "", ())
        if schedule := random_schedule(network, seed):
            mapped_equals_its_text(network, tuple(map(str, schedule)))
            taken += len(schedule)
    assert taken > 24


def test_a_search_maps_a_program_into_its_limits(tmp_path: Path) -> None:
    """Every mapping that it tries keeps to them, and the fastest one is found by simulation."""
    path = tmp_path / "farm.py"
    path.write_text(f"{HEAD}{FARM}\n    fit(elements=4, ports=6)\n")
    evaluator = Evaluator.create(prepare(import_model(str(path))), BOARD)
    settings = evaluator.space.first_settings()
    assert len(settings) > 3
    found = {str(params[MAPPING]): evaluator.evaluate(params) for params in settings}
    for one in found.values():
        load = load_of(elements(read(f"{FARM}\n    fit(elements=4, ports=6)\n"), one.design.mapping))
        assert load.elements <= 4
        assert load.ports <= 6
    best = min(found, key=lambda name: found[name].values[0])
    assert best.startswith("bundle(worker, 2")  # two elements work side by side
    assert found["bundle(worker, 4, inside=1)"].values[0] > found[best].values[0]
    path.write_text(f"{HEAD}{FARM}\n    fit(elements=1, ports=1)\n")
    with pytest.raises(PenstockError, match="no mapping of the program fits"):
        Evaluator.create(prepare(import_model(str(path))), BOARD)


def test_a_search_finds_what_shares_a_tensor(tmp_path: Path) -> None:
    """As it stands, all instances of a grid meet one tensor: only mapped can the program be built."""
    text = (EXAMPLES / "shared_elements.py").read_text().replace("bundle(load)\n", "fit(elements=5)\n")
    path = tmp_path / "shards.py"
    path.write_text("\n".join(line for line in text.splitlines() if "    bundle(" not in line))
    path.write_text(path.read_text().replace("import Layout, Stream, bundle,", "import Layout, Stream, fit,"))
    evaluator = Evaluator.create(prepare(import_model(str(path))), BOARD)
    mappings = [str(params[MAPPING]) for params in evaluator.space.first_settings()]
    assert mappings
    for mapping in mappings:
        made = mapped_equals_its_text(evaluator.assembler.instances, tuple(mapping.split("; ")))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
        assert len(made.instances) <= 5


def test_tokens_of_some_rounds_wait_in_no_buffer() -> None:
    """A buffer's address is within it in all rounds; those in which nothing is put are some of them."""
    with pytest.raises(PenstockError, match="not in every round"):
        elements(open_network("program.py", right_program(275).text, "", ()), ("chain(t6, t10)",))


@pytest.mark.slow
def test_three_hundred_generated_programs_answer_the_same_on_any_elements() -> None:
    for seed in range(24, 324):
        network = open_network("program.py", right_program(seed).text, "", ())
        if schedule := random_schedule(network, seed):
            mapped_equals_its_text(network, tuple(map(str, schedule)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mapping"),
    [("farm", ("bundle(worker, 2)",)), ("farm", ("bundle(worker, inside=1)", "chain(worker, store)")),
     ("attention", ("chain(score, softmax)",)), ("producer_consumer", ("chain(feed_A, consumer)",))],
)  # fmt: skip
def test_mapped_hardware_equals_the_text_in_the_simulated_cycles(
    name: str, mapping: tuple[str, ...], tmp_path: Path
) -> None:
    path = EXAMPLES / f"{name}.py"
    if name == "farm":
        path = tmp_path / "farm.py"
        path.write_text(HEAD + FARM)
    program = prepare(import_model(str(path)))
    evaluator = Evaluator.create(program, BOARD)
    evaluation = evaluator.evaluate_design(Design(BOARD, evaluator.clock_mhz, {}, mapping=mapping))
    lowered = lower(program, finish(evaluator, evaluation).design)
    inputs = make_inputs(lowered, random_sets=1)
    assert all(level.equal and level.values for level in verify_levels(lowered, inputs))
    emit(lowered, tmp_path / "out", part="x", clock_mhz=lowered.design.clock_mhz)
    assert verify_csim(lowered, build_csim(tmp_path / "out", ToolRunner()), inputs).equal
    assert_equal_in_verilator(lowered, inputs, BOARD)
