"""Counts of rounds, however long loops are: as if each round were looked at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.compiler.tasks.affine import Test as Comparison
from penstock.compiler.tasks.affine import rounds_of, rounds_within

COMPARISONS = st.one_of(
    st.builds(Comparison, st.just(0), st.sampled_from(["eq", "ne", "ge", "le"]), st.integers(0, 9000)),
    st.integers(2, 60).flatmap(
        lambda every: st.builds(
            Comparison, st.just(0), st.sampled_from(["eq", "ne"]), st.integers(0, every - 1), st.just(every)
        )
    ),
)


@given(st.lists(COMPARISONS, max_size=4), st.integers(1, 9000))
def test_rounds_that_pass_tests_are_counted(tests: list[Comparison], trip: int) -> None:
    wanted = sum(all(test.holds(counter) for test in tests) for counter in range(trip))
    assert rounds_within(tuple(tests), trip) == wanted


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-9, 9).filter(bool))
def test_rounds_are_those_of_range(start: int, stop: int, step: int) -> None:
    assert rounds_of(start, stop, step) == len(range(start, stop, step))
