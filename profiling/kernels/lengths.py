"""Values for the scalar arguments of a kernel with which its loops and accesses stay where its source has room.

A bound that an argument gives (`i < n`) goes as far as LOOP_TRIPCOUNT says, every address that arguments and counters
decide lies in its array, and what `assert` says holds. Other arguments may be any number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product

import numpy as np

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.graph import KernelValue, fold, leaves_of
from penstock.compiler.hls_in.integers import wrapped
from penstock.compiler.hls_in.records import (
    Again,
    DataflowRegion,
    DataTurns,
    Pipeline,
    ReadKernel,
    Region,
    Straight,
)
from penstock.compiler.hls_in.storage import Counter

_Known = Mapping[KernelValue | Counter, int]
_BEGUN = (1, 2, 4, 16, 64, 0, -1)
"""What all arguments are at first, until these values are right."""
_ROUNDS = 64
_TRIES = 64
_MOST_ACCESSES = 400
_CORNERS = 4
"""Counters of an access whose first and last turns are looked at in all ways."""
_DEEPEST = 200


@dataclass(frozen=True)
class _Access:
    node: KernelValue
    around: tuple[Counter, ...]
    """Counters of the loops around it."""
    moved_by: tuple[Counter, ...]


class Lengths:
    """What a kernel's source asks of its scalar arguments."""

    def __init__(self, kernel: ReadKernel) -> None:
        self.kernel = kernel
        numbers = {what: name for name, what in kernel.arguments if isinstance(what, KernelValue)}
        numbers = {what: name for what, name in numbers.items() if what.kind == "int"}
        self._given = set(numbers)
        self.turns = [one for one in kernel.turns if self._is_given(one.begin) and self._is_given(one.end)]
        self.turns = [one for one in self.turns if not (one.begin.constant and one.end.constant)]
        self.asserted = [one for one in kernel.assumed if self._is_given(one)]
        self._counted = {one.counter: one for one in self.turns if one.counter is not None}
        self._accesses = list(islice(self._decided(), _MOST_ACCESSES))
        values = [node for one in self.turns for node in (one.begin, one.end)] + self.asserted
        values += [at for access in self._accesses for at in access.node.index]
        met = {leaf for value in values for leaf in leaves_of(value)} & self._given
        self.scalars = {numbers[what]: what for what in numbers if what in met}
        """Integers that decide where loops end, which words are met, or of which something is asserted."""

    def _is_given(self, node: KernelValue) -> bool:
        """Whether arguments alone decide a value that is understood here."""
        leaves = leaves_of(node)
        return leaves <= self._given and _worth(node, dict.fromkeys(leaves, 1)) is not None

    def _decided(self) -> Iterator[_Access]:
        """Accesses whose place arguments decide, or counters that arguments end."""
        seen: set[object] = set()
        for node, around in _accesses(self.kernel.body, ()):
            leaves = {leaf for at in node.index for leaf in leaves_of(at)}
            moved = tuple(c for c in around if c in leaves)
            key = node.array, *node.index, node.guard
            if key in seen or not leaves <= self._given | set(around):
                continue
            seen.add(key)
            if leaves & self._given or any(c in self._counted for c in moved):
                yield _Access(node, around, moved)

    def drawn(self, seed: int) -> list[dict[str, int]]:
        """The largest values that were found, and smaller ones; nothing where no argument is bound."""
        if not self.scalars:
            return []
        tried = [dict.fromkeys(self.scalars, value) for value in _BEGUN]
        most = min(tried, key=lambda values: (*self._broken(values), not self._reached(values)))
        allowed = self._broken(most)  # an access that no value keeps in its array may never happen
        if allowed[0]:
            raise self._refused()
        for _ in range(_ROUNDS):
            larger = [one for one in self._larger(most) if self._broken(one) <= allowed]
            best = max(larger, key=self._reached, default=most)
            if self._reached(best) <= self._reached(most):
                break
            most = best
        if self.turns and not self._reached(most):
            raise self._refused()
        generator = np.random.default_rng(seed)
        for _ in range(_TRIES):
            other = {name: int(generator.integers(min(0, end), max(2, end + 1))) for name, end in most.items()}
            if other != most and self._broken(other) <= allowed and bool(self._reached(other)) is bool(self.turns):
                return [most, other]
        return [most]

    def _larger(self, values: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """Each of some values by powers of two more, and all of them."""
        words = [a.words for a in self.kernel.arrays] + [one.most for one in self.turns]
        for bit in range(max(words, default=1).bit_length() + 1):
            for names in (*([name] for name in values), list(values)):
                yield {name: value + (1 << bit if name in names else 0) for name, value in values.items()}

    def _reached(self, values: Mapping[str, int]) -> int:
        known = self._known(values)
        return sum(min(one.most, _turns_of(one, known) or 0) for one in self.turns)

    def _known(self, values: Mapping[str, int]) -> dict[KernelValue | Counter, int]:
        return {what: values[name] for name, what in self.scalars.items()}

    def _broken(self, values: Mapping[str, int]) -> tuple[int, int]:
        """How much of what the source says of loops and numbers does not hold, and how many accesses miss arrays."""
        known = self._known(values)
        rules = sum(wrapped(known[what], what.bits, what.signed) != known[what] for what in self.scalars.values())
        rules += sum(not _worth(one, known) for one in self.asserted)
        for one in self.turns:
            turns = _turns_of(one, known)
            rules += turns is None or turns > one.most
        return (rules, 0) if rules else (0, sum(not self._lies_inside(one, known) for one in self._accesses))

    def _lies_inside(self, access: _Access, known: _Known) -> bool:
        node, ends = access.node, dict[Counter, int]()
        assert node.array is not None
        for counter in access.around:
            one = self._counted.get(counter)
            ends[counter] = counter.trip if one is None else -(-(_turns_of(one, known) or 0) // one.lanes)
            if ends[counter] <= 0:
                return True
        fixed = {counter: end - 1 for counter, end in ends.items()}
        corners = product(*({0, ends[c] - 1} for c in access.moved_by[:_CORNERS]))
        for corner in corners:
            at = {**known, **fixed, **dict(zip(access.moved_by, corner, strict=False))}
            if node.guard is not None and _worth(node.guard, at) == 0:
                continue
            for index, length in zip(node.index, node.array.dims, strict=True):
                word = _worth(index, at)
                if word is not None and not 0 <= word < length:
                    return False
        return True

    def _refused(self) -> PenstockError:
        first = next(iter(self.turns), None)
        names = ", ".join(self.scalars)
        loop = f" the loop over {first.variable!r} goes round, and" if first is not None else ""
        return PenstockError(
            code="no-values", what=f"no values of {names} were found with which{loop} every access lies in its array",
            where=first.where if first is not None else self.kernel.body_at,
            limit="values that loop bounds, LOOP_TRIPCOUNT, the lengths of arrays and asserts leave",
            hint="say what is allowed: assert(n <= 64); or #pragma HLS LOOP_TRIPCOUNT max=64 in the loop",
        )  # fmt: skip


def _accesses(
    items: Iterable[Region], around: tuple[Counter, ...]
) -> Iterator[tuple[KernelValue, tuple[Counter, ...]]]:
    """Loads and stores, with the counters of the loops around them."""
    for item in items:
        if isinstance(item, (Pipeline, Straight)):
            inside = (*around, *item.counters) if isinstance(item, Pipeline) else around
            for node in item.graph.nodes:
                if node.op in ("load", "store") and node.array is not None:
                    yield node, inside
        elif isinstance(item, DataflowRegion):
            for task in item.tasks:
                yield from _accesses(task.body, around)
        else:
            yield from _accesses(item.body, (*around, item.counter) if isinstance(item, Again) else around)


def _turns_of(one: DataTurns, known: _Known) -> int | None:
    """How often a loop goes round; None where it does not end, or nobody knows."""
    begin, end = _worth(one.begin, known), _worth(one.end, known)
    if begin is None or end is None:
        return None
    way = (end - begin) if one.step > 0 else (begin - end)
    if one.sign == "!=":
        return None if way < 0 or way % abs(one.step) else way // abs(one.step)
    return max(0, -(-(way + (one.sign in ("<=", ">="))) // abs(one.step)))


def _worth(node: KernelValue, known: _Known, deep: int = 0) -> int | None:
    """An integer's value as C++ computes it; None where it is not known."""
    if node.value is not None:
        return int(node.value) if node.kind in ("int", "bool") else None
    if node in known:
        return known[node]
    if node.linear is not None:
        terms = node.linear.terms
        known_all = all(c in known for c, _ in terms)
        return node.linear.base + sum(f * known[c] for c, f in terms) if known_all else None
    if not node.args or node.kind not in ("int", "bool") or deep > _DEEPEST or node.op == "load":
        return None
    args = [_worth(arg, known, deep + 1) for arg in node.args]
    if node.op == "select" and args[0] is not None:
        return args[1] if args[0] else args[2]
    return None if None in args else _computed(node, [arg for arg in args if arg is not None])


def _computed(node: KernelValue, args: list[int]) -> int | None:
    match node.op, args:
        case "compare", [left, right]:
            return int(fold(node.comparison, left, right))
        case "logic", [left, right]:
            return int(bool(left) and bool(right)) if node.comparison == "and" else int(bool(left) or bool(right))
        case "not", [one]:
            return int(not one)
        case "convert", [one]:
            return wrapped(one, node.bits, node.signed)
        case "negate", [one]:
            return -one
        case "abs", [one]:
            return abs(one)
        case ("add" | "sub" | "mul" | "and" | "or" | "xor" | "shl" | "shr"), [left, right]:
            if node.op in ("shl", "shr") and right < 0:
                return None
            return wrapped(int(fold(node.op, left, right)), node.bits, node.signed)
        case ("div" | "rem"), [left, right]:
            return int(fold(node.op, left, right)) if right else None
        case _:
            return None
