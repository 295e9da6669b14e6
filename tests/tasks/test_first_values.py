"""A memory's first values cost hardware only where a load may see them, so where the answer depends on them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.tasks.lowering.first_values import without_unseen
from penstock.compiler.tasks.lowering.perfect import flatten
from penstock.compiler.tasks.network import Instances
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


@pytest.mark.parametrize("kept", [("if i == 0:", "j", "j"), ("if i == 0:", "j", "{inner} - 1 - j")])
def test_both_answers_are_met(kept: tuple[str, str, str]) -> None:
    """Words that are loaded in the round that stores them, and words that wait for a later one."""
    assert stays(read(program(3, 4, 1, kept, 0, late=False, again=False))) == (kept[1] != kept[2])
