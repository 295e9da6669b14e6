"""Arrays that are filled once, with what the source alone decides: the tool makes ROMs of them, and no loops.

A loop fills them, or a call of a function with loops, if all that it stores follows from constants and its own
counters, every word gets one value, and nothing was read from them before or is stored to them later (UG1399,
Implementing ROMs). What functions of floats give is known in a function of its own alone, as the guide has it. The
words are worked out by the walk itself, with all loops unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Self, cast

from penstock.compiler.errors import Mistakes, PenstockError
from penstock.compiler.hls_in.bindings import ArrayView, NotKnown, Slot, StreamView, where
from penstock.compiler.hls_in.float_functions import FUNCTIONS
from penstock.compiler.hls_in.functions import Abandon
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.nests import Nests
from penstock.compiler.hls_in.storage import KernelArray
from penstock.compiler.hls_in.syntax import (
    Tree,
    all_calls_in,
    assigned_in,
    declared_within,
    loops_in,
    names_in,
    names_of_counters,
    stored_in,
)

MOST_FILLED = 8192
"""Words that are worked out; what fills more stays a loop."""
_FEWEST = 5
"""Fewer are no memory at all."""

TableWords = tuple[float | int, ...]


class RomTables(Nests):
    altering: dict[str, set[str]]
    """What each function changes."""
    ends: dict[str, dict[str, float | int]]
    """Where counters that were declared before them stand behind loops that fill tables."""

    def makes_tables(self, tree: Tree, later: Sequence[Tree]) -> bool:
        """Whether a statement fills tables of constants, which are known from here on; `later` are those behind it."""
        if not self._may_fill(tree):
            return False
        arrays, place = self._filled_by(tree, later), (where(tree[1]), self._given(tree))
        if not arrays:
            return False
        if any(self.filled.get(array) != place for array in arrays):  # not another call of the function around
            found = None if self.touched.union(self.tables).intersection(arrays) else self._worked_out(tree, arrays)
            if found is None:
                return False
            for array, words in zip(arrays, found, strict=True):
                self.filled[array], self.tables[array], array.constant = place, words, True
                self.initial.pop(array, None)
                self.says(f"{array.name} is a ROM: what fills it at {place[0]} is known, and takes no time")
        for name, value in self.ends.get(place[0], {}).items():
            if isinstance(slot := self.scope.find(name), Slot):
                slot.write(self.graph.constant(value, slot.kind, slot.bits, slot.signed), self.path, self.graph)
        return True

    def _may_fill(self, tree: Tree) -> bool:
        if self.works_out or self.at_once or self.sometimes or not self.only_goes_on():
            return False
        if tree[0] == "for":
            return not self._computes_with_floats(tree) and not self._reaches_out(tree)
        call = tree[2] if tree[0] == "expression" else None
        if call is None or call[0] != "call" or call[2] in self.calls:
            return False
        function = self.functions.get(call[2])
        return function is not None and any(True for _ in loops_in(function[6])) and not self._reaches_out(call)

    def _computes_with_floats(self, tree: Tree) -> bool:
        """Whether functions of floats are asked for, as far as they are named here."""
        names = {call[2] for call in all_calls_in(tree)}
        return any(name in FUNCTIONS or name.removesuffix("f") in FUNCTIONS for name in names - {"abs"})

    def _filled_by(self, tree: Tree, later: Sequence[Tree]) -> list[KernelArray]:
        """All that a statement changes, if that is arrays of the design's own, which no other changes here."""
        if any(self._is_data(name) for name in set(names_in(tree)) - declared_within(tree)):
            return []
        names = sorted(self._altered(tree))
        if any(not self._altered(other).isdisjoint(names) for other in later):
            return []
        views = [view for name in names if isinstance(view := self.scope.find(name), ArrayView) and _is_whole(view)]
        found = [view.array for view in views]
        return found if len(found) == len(names) and all(map(self._may_be_a_table, found)) else []

    def _may_be_a_table(self, array: KernelArray) -> bool:
        if array.argument or array.blocks or array.number or array.registers or array.where in self.spoiled:
            return False
        return _FEWEST <= array.words <= MOST_FILLED

    def _given(self, tree: Tree) -> tuple[tuple[str, float | int | None], ...]:
        """Constants from outside that decide what a statement stores."""
        slots = {name: self.scope.find(name) for name in sorted(set(names_in(tree)) - declared_within(tree))}
        return tuple((n, s.value.value) for n, s in slots.items() if isinstance(s, Slot) and s.value is not None)

    def _reaches_out(self, tree: Tree) -> bool:
        """Whether a function that is called changes what it neither declares nor is given."""
        called = [function for call in all_calls_in(tree) if (function := self.functions.get(call[2])) is not None]
        return any(self._altered_by(one) - {parameter for parameter, _, _ in one[3]} for one in called)

    def _is_data(self, name: str) -> bool:
        """Whether a name stands for what no constant can be."""
        binding = self.scope.find(name)
        return isinstance(binding, StreamView) or (isinstance(binding, ArrayView) and binding.array.argument)

    def _altered(self, tree: Tree) -> set[str]:
        """Names from outside that a statement changes, or words of them, itself or by functions that it calls."""
        found = stored_in(tree) | set(assigned_in(tree, heads=False))
        for call in all_calls_in(tree):
            if (function := self.functions.get(call[2])) is None:
                continue
            given = {name: list(names_in(tree))[:1] for (name, _, _), tree in zip(function[3], call[3], strict=False)}
            found.update(*(given.get(name, [name]) for name in self._altered_by(function)))
        return found - declared_within(tree)

    def _altered_by(self, function: Tree) -> set[str]:
        """The same of a function's body: its parameters, and what is neither theirs nor its own."""
        if function[2] not in self.altering:
            self.altering[function[2]] = set()  # of a recursion
            self.altering[function[2]] = self._altered(function[6])
        return self.altering[function[2]]

    def _worked_out(self, tree: Tree, arrays: Sequence[KernelArray]) -> list[TableWords] | None:
        """The words that a statement leaves in arrays; None where they are not all constants."""
        counting = {n: slot for n in names_of_counters(tree) if isinstance(slot := self.scope.find(n), Slot)}
        before = {name: (slot.value, slot.latest) for name, slot in counting.items()}
        words = self._aside()._walked_through(tree, arrays)
        ends = {name: slot.value.value for name, slot in counting.items() if slot.value is not None}
        self.ends[where(tree[1])] = {name: value for name, value in ends.items() if value is not None}
        for name, slot in counting.items():
            slot.value, slot.latest = before[name]
        return words

    def _aside(self) -> Self:
        """A walk of its own from here, of which nothing is left."""
        walk = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, list | dict | set):
                setattr(walk, name, copy(cast("object", value)))
        walk.items, walk.mistakes, walk.rolled, walk.works_out = None, Mistakes(), False, True
        walk.begin()
        return walk

    def _walked_through(self, tree: Tree, arrays: Sequence[KernelArray]) -> list[TableWords] | None:
        try:
            self.statement(tree)
        except (PenstockError, Abandon, NotKnown):
            return None
        if self.mistakes.found or not all(_is_plain(node, arrays) for node in self.graph.nodes):
            return None
        found = [_words_of(self.graph.nodes, array, self.initial.get(array)) for array in arrays]
        return None if None in found else [words for words in found if words is not None]


def _is_whole(view: ArrayView) -> bool:
    return not view.prefix and view.offset is None


def _is_plain(node: KernelValue, arrays: Sequence[KernelArray]) -> bool:
    """A constant, or the store of one that happens and that no other takes the place of."""
    return node.op == "const" or (node.op == "store" and node.array in arrays and node.guard is None)


def _words_of(nodes: Sequence[KernelValue], array: KernelArray, before: TableWords | None) -> TableWords | None:
    """What stores leave in an array, of which each word is stored once, or is what it was `before`."""
    words: dict[int, float | int] = {}
    for node in (node for node in nodes if node.array is array):
        flat = 0
        for at, length in zip(node.index, array.dims, strict=True):
            if at.value is None or not 0 <= at.value < length:
                return None
            flat = flat * length + int(at.value)
        value = node.args[0].value
        if value is None or flat in words:
            return None
        words[flat] = value
    if len(words) < array.words and before is None:
        return None
    return tuple(words.get(n, before[n] if before is not None else 0) for n in range(array.words))
