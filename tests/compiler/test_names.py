"""Every part, channel and memory has a name of its own, whatever the model's layers and arguments are called."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from penstock.compiler.backend.hls.names_cpp import cpp_names
from penstock.compiler.dialects import itensor, stream
from penstock.compiler.names import LONGEST_IDENTIFIER, RESERVED, Names, c_name, hint_of
from penstock.compiler.platforms import load_platform
from penstock.dse.evaluation.assemble import Assembler
from penstock.profiling.network import network_of
from tests.compiler.hostile import HostileCase, hostile_cases
from tests.compiler.test_chain import BUILDS, RELAXED, check_csim

ONE = settings(RELAXED, phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink])


def check_names(case: HostileCase) -> None:
    """Nothing is named twice, and the search's network is the one that is built."""
    program = case.program()
    lowered = case.lowered()
    parts = [
        op.properties["sym_name"]
        for kernel in lowered.itensor.walk() if isinstance(kernel, itensor.KernelOp)
        for op in kernel.body.block.ops if "sym_name" in op.properties
    ]  # fmt: skip
    channels = [op.sym_name.data for op in lowered.channels]
    tasks = [op.sym_name.data for op in lowered.top.body.block.ops if isinstance(op, stream.TaskOp)]
    given = cpp_names(lowered.top)
    spelt = [*given.values.values(), *given.roms.values(), *given.kernels.values(), *tasks]
    for names in (parts, channels, tasks, spelt):
        assert [name for name, count in Counter(names).items() if count > 1] == []
    assert all(re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name not in RESERVED for name in spelt)
    board = load_platform(lowered.design.platform)
    assembler = Assembler(program, board, lowered.design.clock_mhz)
    assembled, whole = assembler.network(lowered.design), network_of(lowered.top, assembler.library)
    assert assembled.ends() == whole.ends()
    assert {task.name for task in assembled.tasks} == {task.name for task in whole.tasks}


def test_a_value_s_name_in_printed_ir_does_not_end_in_a_number() -> None:
    assert [hint_of(name) for name in ("cat_2_0", "mm_2", "_1", "_1_2", "a2", "a_2b")] == [
        "cat", "mm", "value", "value", "a2", "a_2b",
    ]  # fmt: skip


@settings(ONE, max_examples=25)
@given(case=hostile_cases())
def test_nothing_is_named_twice(case: HostileCase) -> None:
    check_names(case)


@pytest.mark.slow
@settings(ONE, max_examples=240)
@given(case=hostile_cases())
def test_nothing_is_named_twice_in_many_more(case: HostileCase) -> None:
    check_names(case)


def hostile_batches(size: int) -> st.SearchStrategy[list[HostileCase]]:
    return st.lists(hostile_cases(), min_size=size // 2, max_size=size)


@settings(BUILDS, max_examples=2)
@given(batch=hostile_batches(8))
def test_hostile_names_compile(batch: list[HostileCase], tmp_path_factory: pytest.TempPathFactory) -> None:
    check_csim([case.lowered() for case in batch], tmp_path_factory.mktemp("csim"), batch)


@pytest.mark.slow
@settings(BUILDS, max_examples=5)
@given(batch=hostile_batches(16))
def test_many_more_hostile_names_compile(
    batch: list[HostileCase], tmp_path_factory: pytest.TempPathFactory
) -> None:  # fmt: skip
    check_csim([case.lowered() for case in batch], tmp_path_factory.mktemp("csim"), batch)


@given(wanted=st.lists(st.sampled_from(["a", "a_2", "a_2_2", "b", "a_3"]), max_size=30))
def test_a_name_is_given_once(wanted: list[str]) -> None:
    names = Names(["a_3"])
    given_names = [names.take(one) for one in wanted]
    assert len({*given_names, "a_3"}) == len(wanted) + 1
    assert all(got.startswith(one) for got, one in zip(given_names, wanted, strict=True))


def test_many_equal_names_take_no_time() -> None:
    names = Names()
    assert [names.take("op") for _ in range(50_000)][-1] == "op_50000"


@given(text=st.text())
def test_any_text_becomes_an_identifier(text: str) -> None:
    name = c_name(text)
    assert re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
    assert name not in RESERVED


def test_reserved_words_get_an_underscore() -> None:
    for word in ("int", "module", "cell", "NAN", "std", "inputs", "output", "parameters"):
        assert c_name(word) == f"{word}_"
    assert c_name("fc1.weight") == "fc1_weight"
    assert c_name("слой") != c_name("слои")
    assert c_name("couche.é") == "couche_e"


def test_a_long_name_keeps_its_ends_and_still_names_a_file() -> None:
    long = f"encoder.{'deep.' * 60}fc1.weight"
    assert len(c_name(long)) <= LONGEST_IDENTIFIER
    assert c_name(long).startswith("encoder_deep_")
    assert c_name(long).endswith("_fc1_weight")
    assert all(len(c_name("あ" * count)) <= LONGEST_IDENTIFIER + 1 for count in range(20, 60))
