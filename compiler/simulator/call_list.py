"""Cycles of what one start takes besides: of the lengths that it says, and of a list of calls.

Each call of a list begins when the one before it has ended.

What a call reads of the one before may be the first or the last that this one wrote, so that none begins earlier.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.compiler.simulator.rules import Rules


@dataclass(frozen=True)
class ListCycles:
    """One call, all of them, and what the sequencer takes besides."""

    calls: int
    one: int
    overhead: int

    @property
    def total(self) -> int:
        return self.calls * self.one + self.overhead


def cycles_of_list(one: int, calls: int, moved: int, rules: Rules, read_latency: int) -> ListCycles:
    """Of calls that take `one` cycles each and have `moved` memories.

    Before a call the sequencer reads a word for each of its memories, a word a cycle, `read_latency` cycles after the
    first is asked for; before the first call also how many there are, which C++ reads for itself.
    """
    before = moved + read_latency - 1 + rules.call_gap
    count = 0 if rules.flushing else read_latency
    return ListCycles(calls, one, calls * before + count + rules.list_entry)


def cycles_of_lengths(lengths: int, read_latency: int) -> int:
    """Of a start on the open route, before its frame or its list begins: so many lengths are read for it.

    They are asked for one a cycle. The last is there `read_latency` cycles later, in its register in the cycle after
    that, and the numbers that follow from it are in theirs another cycle later.
    """
    return lengths + read_latency + 1 if lengths else 0
