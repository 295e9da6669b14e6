"""Accesses to arrays while a kernel is walked through: what is known already is not read again.

A word that was written in the same iteration is taken from there, as LLVM does before anything is scheduled: wholly
where the write is certain, through a choice where it happened under a condition; not where that waits for a token
and the memory is one piece. A second read of a word with no
write between is the first one. Arrays that are cut into single words are variables.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.compiler.hls_in.bindings import Slot
from penstock.compiler.hls_in.graph import KernelValue, LinearForm, ValueGraph
from penstock.compiler.hls_in.storage import KernelArray

Index = tuple[KernelValue, ...]
_RECENT = 64
"""Writes that are looked at for one that may be of a word: those before have long been ordered by others."""


@dataclass(frozen=True)
class _Event:
    index: Index
    path: KernelValue | None
    value: KernelValue
    """Of a write, what is written; of a read, the read."""
    access: KernelValue
    write: bool
    number: int


@dataclass
class _Log:
    """The accesses of one array in order."""

    count: int = 0
    words: dict[object, list[_Event]] = field(default_factory=dict[object, "list[_Event]"])
    writes: list[_Event] = field(default_factory=list["_Event"])
    needed: set[KernelValue] = field(default_factory=set[KernelValue])
    """Writes that a read must wait for."""

    def add(self, event: _Event) -> None:
        self.count += 1
        self.words.setdefault(_key(event.index), []).append(event)
        if event.write:
            self.writes.append(event)
        self.needed.update(event.access.after if not event.write else ())

    def relevant(self, index: Index, before: int) -> list[_Event]:
        """Earlier accesses of the word, and writes that may be of it, the latest first."""
        key = _key(index)
        own = self.words.get(key, [])
        others = [e for e in self.writes[-_RECENT:] if _key(e.index) != key]
        return sorted((e for e in (*own, *others) if e.number < before), key=lambda e: -e.number)


@dataclass
class Memories:
    """All memories as one piece of straight code meets them."""

    graph: ValueGraph
    events: dict[KernelArray, _Log] = field(default_factory=dict[KernelArray, "_Log"])
    words: dict[tuple[KernelArray, tuple[int, ...]], Slot] = field(
        default_factory=dict[tuple[KernelArray, tuple[int, ...]], Slot]
    )
    phis: dict[Slot, KernelValue] = field(default_factory=dict[Slot, KernelValue])
    whole: bool = False
    """Arrays that are cut into single words stay memories."""

    def read(self, array: KernelArray, index: Index, path: KernelValue | None, line: int) -> KernelValue:
        word = self._word(array, index)
        if word is not None:
            value = word.read(path)
            assert value is not None
            return value
        log = self.events.get(array)
        return self._before(array, index, path, line, log.count if log is not None else 0)

    def _before(
        self, array: KernelArray, index: Index, path: KernelValue | None, line: int, before: int
    ) -> KernelValue:
        """What the first `before` accesses leave in a word."""
        log = self.events.setdefault(array, _Log())
        met: list[KernelValue] = []
        for event in log.relevant(index, before):
            if _same(event.index, index):
                if event.path is None or event.path is path:
                    return event.value
                if not event.write:
                    continue
                assert event.path is not None
                if _implies(path, event.path):
                    return event.value
                if event.value.op in ("take", "load") and not array.partition:
                    met.append(event.access)
                elif not met:
                    older = self._before(array, index, path, line, event.number)
                    return self.graph.choose(event.path, event.value, older, line)
                break
            if not _apart(event.index, index):
                met.append(event.access)
                break
        node = self.graph.access(
            "load", index, array.kind, array.bits, signed=array.signed, array=array, guard=path, line=line, after=met
        )
        log.add(_Event(index, path, node, node, False, log.count))
        return node

    def write(self, array: KernelArray, index: Index, value: KernelValue, path: KernelValue | None, line: int) -> None:
        word = self._word(array, index)
        if word is not None:
            word.write(value, path, self.graph)
            return
        log = self.events.setdefault(array, _Log())
        same = log.words.get(_key(index), [])
        after = [e.access for e in same[-4:]] + [e.access for e in log.writes[-64:] if not _apart(e.index, index)][-8:]
        node = self.graph.access(
            "store", (value, *index), array.kind, array.bits, array=array, guard=path, line=line, after=after
        )
        for event in same:  # a write that surely follows makes an earlier one of the same word needless
            if event.write and (path is None or event.path is path) and event.access not in log.needed:
                event.access.op = "dead"
        log.add(_Event(index, path, value, node, True, log.count))

    def _word(self, array: KernelArray, index: Index) -> Slot | None:
        if self.whole or not array.registers or not all(node.constant for node in index):
            return None
        key = array, tuple(int(node.value or 0) for node in index)
        if key not in self.words:
            slot = Slot(f"{array.name}{list(key[1])}", array.kind, array.bits, array.signed)
            slot.value = self.phis[slot] = self.graph.fresh(
                "phi", array.kind, array.bits, array.signed, array=array, word=key[1]
            )
            self.words[key] = slot
        return self.words[key]

    def close(self) -> None:
        """The end of an iteration: what every variable carries into the next one."""
        for slot, phi in self.phis.items():
            if slot.value is not phi:
                phi.follow = slot.value


def _key(index: Index) -> object:
    return tuple(node.linear if node.linear is not None else id(node) for node in index)


def _same(left: Index, right: Index) -> bool:
    return len(left) == len(right) and all(
        a is b or (a.linear is not None and a.linear == b.linear) for a, b in zip(left, right, strict=True)
    )


def _apart(left: Index, right: Index) -> bool:
    """Whether two indices can be told to differ."""
    for a, b in zip(left, right, strict=False):
        if a.linear is None or b.linear is None:
            continue
        if a.linear.terms == b.linear.terms:
            if a.linear.base != b.linear.base:
                return True
            continue
        difference: LinearForm = a.linear.plus(b.linear, -1)
        low, high = difference.range
        if low > 0 or high < 0:
            return True
        step = _divisor(difference)
        if step and difference.base % step:
            return True
    return False


def _divisor(linear: LinearForm) -> int:
    from math import gcd

    return gcd(*(abs(factor) for _, factor in linear.terms)) if linear.terms else 0


def _implies(path: KernelValue | None, condition: KernelValue) -> bool:
    """Whether `condition` is among the conjuncts of `path`."""
    if path is None:
        return False
    if path is condition:
        return True
    return path.op == "logic" and path.comparison == "and" and any(_implies(arg, condition) for arg in path.args)
