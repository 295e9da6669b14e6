"""Ports on the banks of an external memory: which bank each is served by, and how much of it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction


def spread(moved: Sequence[int], banks: int) -> list[int]:
    """The bank of every port: each its own, in order, as far as there are some.

    Else what moves most chooses first, each the bank that has least to do so far.
    """
    if len(moved) <= banks:
        return list(range(len(moved)))
    loads, found = [0] * banks, [0] * len(moved)
    for port in sorted(range(len(moved)), key=lambda i: -moved[i]):
        bank = found[port] = min(range(banks), key=lambda b: loads[b])
        loads[bank] += max(1, moved[port])
    return found


def shares(moved: Sequence[int]) -> list[Fraction]:
    """What each port on one bank gets of it while it asks, from what all of them move in a run.

    A bank serves whoever asks, and all alike when all ask. So each has at least an equal part; what the others do not
    ask for on average, since they move less, is left to those that move more.
    """
    count, whole = len(moved), max(1, sum(moved))
    equal = Fraction(1, count)
    wanted = [min(Fraction(bits, whole), equal) for bits in moved]
    return [max(equal, 1 - (sum(wanted) - own)) for own in wanted]
