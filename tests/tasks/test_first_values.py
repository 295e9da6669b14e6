"""A memory's first values cost hardware only where a load may see them, so where the answer depends on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.arrays import Array
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.verify import make_inputs
from penstock.compiler.tasks.lowering.first_values import without_unseen
from penstock.compiler.tasks.lowering.perfect import flatten
from penstock.compiler.tasks.network import Instances
from penstock.compiler.transforms.lower_tasks import nests_of
from tests.tasks.in_verilator import assert_equal_in_verilator
from tests.tasks.programs import answered, drawn, read

PROGRAM = """
@program
def p(A: int8[{rounds}], B: int32[{rounds}]):
    @task
    def t():
{above}
        for i in range({outer}):
{inside}
            for j in range({inner}):
{body}
"""
WHEN = (
    "",
    "if i == 0:",
    "if j >= 1:",
    "if i % 2 == 0:",
    "if j == 0:",
    "if i <= 1:",
    "if i == 0 and j >= 1:",
    "if i != 2:",
)
PLACES = ("j", "{inner} - 1 - j", "i", "0", "{size} - 1", "2 * j", "i + j")


def stays(network: Instances) -> bool:
    """Whether the values of a declaration become hardware."""
    (body,) = network.bodies
    return without_unseen(body, flatten(network.source, body)) is None


def program(
    outer: int, inner: int, wide: int, kept: tuple[str, str, str], fill: int, *, late: bool, again: bool
) -> str:
    when, there, here = kept
    size = (1 if again else wide) * (outer + 2 * inner)  # a large one is not filled inside a loop
    indent = "                    " if when else "                "
    store = [f"                {when}"] if when else []
    store.append(f"{indent}kept[{there.format(inner=inner, size=size)}] = x")
    load = f"                B[i * {inner} + j] = kept[{here.format(inner=inner, size=size)}]"
    take = f"                x: int32 = A[i * {inner} + j]"
    declared = f"kept: int32[{size}] = {fill}"
    return PROGRAM.format(
        rounds=outer * inner, outer=outer, inner=inner,
        above="        pass" if again else f"        {declared}",
        inside=f"            {declared}" if again else "            pass",
        body="\n".join([take, *([load, *store] if late else [*store, load])]),
    )  # fmt: skip


@settings(max_examples=60)
@given(
    outer=st.integers(1, 4), inner=st.integers(1, 4), wide=st.sampled_from((1, 40)),
    kept=st.tuples(st.sampled_from(WHEN), st.sampled_from(PLACES), st.sampled_from(PLACES)),
    late=st.booleans(), again=st.booleans(),
)  # fmt: skip
def test_they_are_left_out_exactly_where_nothing_depends_on_them(
    outer: int, inner: int, wide: int, kept: tuple[str, str, str], *, late: bool, again: bool
) -> None:
    zero, other = (read(program(outer, inner, wide, kept, n, late=late, again=again)) for n in (0, 1000))
    inputs = drawn(zero)
    assert stays(zero) == (not np.array_equal(answered(zero, inputs), answered(other, inputs)))


LINE = """
@program
def line(A: int8[32], B: int32[32]):
    @task
    def t():
        up: int32[8] = 3
        for i, j in grid(4, 8):
            x = A[i * 8 + j]
            B[i * 8 + j] = up[j] + x
            up[j] = x
"""
TAPS = """
@program
def taps(A: int8[16], B: int32[16]):
    @task
    def t():
        kept: int32[4] = 0
        for i in range(16):
            for k in unroll(3):
                kept[3 - k] = kept[2 - k]
            kept[0] = A[i]
            B[i] = kept[0] + 3 * kept[1] + 3 * kept[2] + kept[3]
"""


def passed_on(a: Array) -> dict[str, Array]:
    """What both programs answer."""
    return {LINE: a + np.append(np.full(8, 3), a[:-8]), TAPS: np.convolve(a, [1, 3, 3, 1])[: len(a)]}


@pytest.mark.parametrize("text", [LINE, TAPS])
def test_first_values_of_what_a_loop_loads_and_stores_take_a_round_before_it(text: str) -> None:
    network = read(text)
    (body,) = network.bodies
    first, loop = flatten(network.source, body).nests
    assert (len(first.loops), len(first.items), len(loop.loops)) == (0, 1, 2)
    inputs = drawn(network)
    np.testing.assert_array_equal(answered(network, inputs), passed_on(inputs["A"].astype(np.int32))[text])


@pytest.mark.slow
def test_a_line_buffer_is_systemverilog(tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text("from penstock.tasks import *\n" + LINE)
    lowered = lower(import_model(str(path)), Design("ecp5-85k", 50.0, {}, default_depth=4))
    assert_equal_in_verilator(lowered, make_inputs(lowered, random_sets=1))


EARLY = """
@program
def p(A: int8[8], B: int32[8]):
    @task
    def t():
        kept: int32[8]
        for i in range(8):
            if i >= STORED:
                kept[i] = A[i]
        for i in range(8):
            B[i] = kept[7 - i]
"""


@pytest.mark.parametrize(("stored", "word"), [("0", ""), ("1", "kept[0]"), ("3", "kept[2]")])
def test_what_was_never_stored_is_not_loaded(stored: str, word: str) -> None:
    """The first such load in the order of a run is named, at its place."""
    network = read(EARLY.replace("STORED", stored))
    if not word:
        assert list(nests_of(network, arrays=False))
        return
    with pytest.raises(PenstockError) as error:
        list(nests_of(network, arrays=False))
    assert f":13:20: {word} is loaded before anything is stored there" in error.value.one_line()
    assert "kept: int32[8] = 0" in error.value.hint


@pytest.mark.parametrize("kept", [("if i == 0:", "j", "j"), ("if i == 0:", "j", "{inner} - 1 - j")])
def test_both_answers_are_met(kept: tuple[str, str, str]) -> None:
    """Words that are loaded in the round that stores them, and words that wait for a later one."""
    assert stays(read(program(3, 4, 1, kept, 0, late=False, again=False))) == (kept[1] != kept[2])
