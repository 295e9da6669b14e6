"""Ports on banks: spread by what they move, and served as a bank serves whoever asks."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from penstock.compiler.platforms.sharing import shares, spread

MOVED = st.lists(st.integers(1, 1 << 20), min_size=1, max_size=12)


def test_what_moves_little_leaves_a_bank_to_what_moves_much() -> None:
    assert shares([1 << 20]) == [1]
    assert shares([100, 100]) == [Fraction(1, 2), Fraction(1, 2)]
    large, small = shares([990, 10])
    assert (large, small) == (Fraction(99, 100), Fraction(1, 2))


@given(MOVED)
def test_everybody_has_an_equal_part_at_least_and_the_largest_takes_the_banks_time(moved: list[int]) -> None:
    found = shares(moved)
    assert all(Fraction(1, len(moved)) <= share <= 1 for share in found)
    longest = max(Fraction(bits) / share for bits, share in zip(moved, found, strict=True))
    assert longest <= sum(moved), "no port takes longer than the bank for all of them"
    assert max(moved) <= longest


@given(MOVED, st.integers(1, 8))
def test_ports_are_spread_over_all_banks(moved: list[int], banks: int) -> None:
    found = spread(moved, banks)
    assert set(found) == set(range(min(banks, len(moved))))
    loads = [sum(bits for bits, bank in zip(moved, found, strict=True) if bank == b) for b in range(banks)]
    assert max(loads) <= sum(moved) / banks + max(moved)
