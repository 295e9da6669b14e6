"""Accesses of one port: no two in one cycle, none before its own stage, and all within as many slots as they are."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from penstock.compiler.analysis.extents import Extents
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr, Term
from penstock.compiler.schedule.apart import fall_together, stages_apart

EXTENTS = Extents.of_trips((4,))
GUARDS = (ALWAYS, GuardAttr((Term(0, "eq", 0),)), GuardAttr((Term(0, "eq", 1),)), GuardAttr((Term(0, "ge", 1),)))


@given(
    accesses=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(GUARDS)), min_size=1, max_size=6),
    more=st.integers(0, 2), front=st.integers(0, 9),
)  # fmt: skip
def test_each_has_a_slot(accesses: list[tuple[int, GuardAttr]], more: int, front: int) -> None:
    ii = len(accesses) + more
    found = stages_apart(accesses, ii, front, EXTENTS)
    assert found is not None
    assert all(stage >= first for stage, (first, _) in zip(found, accesses, strict=True))
    placed = [(stage, when) for stage, (_, when) in zip(found, accesses, strict=True)]
    assert not any(fall_together(a, b, ii, front, EXTENTS) for a, b in combinations(placed, 2))
    if not any(fall_together(a, b, ii, front, EXTENTS) for a, b in combinations(accesses, 2)):
        assert placed == accesses


def test_there_is_no_room_for_more_than_there_are_slots() -> None:
    assert stages_apart([(0, ALWAYS)] * 3, 2, 0, EXTENTS) is None
    assert stages_apart([(0, GUARDS[1]), (0, GUARDS[2])], 1, 0, EXTENTS) == [0, 0]
