"""One access to a channel a round: what two branches do is done once, and what happens twice takes turns.

A FIFO gives and takes one token a cycle, and a memory's word is stored once. So a nest whose round puts twice into one
stream gets an innermost loop over turns, with each put in a turn of its own.
"""

from __future__ import annotations

from penstock.compiler.tasks.affine import Test, Tests
from penstock.compiler.tasks.tree import Assign, Get, Memory, Put, Simple, Store, StreamEnd, Var

Items = list[tuple[Tests, Simple]]


def merged(items: Items) -> Items:
    """Puts, and gets, of one port in rounds that make up a whole are one."""
    items = list(items)
    changed = True
    while changed:
        changed = False
        for later, (tests, one) in enumerate(items):
            if not isinstance(one, Get | Put):
                continue
            for earlier in range(later):
                before, other = items[earlier]
                if not _same_access(one, other):
                    continue
                whole = _whole(before, tests)
                if whole is None:
                    continue
                items = _merge(items, earlier, later, whole)
                changed = True
                break
            if changed:
                break
    return items


def _same_access(one: Get | Put, other: Simple) -> bool:
    kind = Get if isinstance(one, Get) else Put
    return isinstance(other, kind) and other.port is one.port


def _whole(one: Tests, other: Tests) -> Tests | None:
    """The tests that are left of two which differ in one and its opposite."""
    first, second = set(one), set(other)
    own, others = first - second, second - first
    if len(own) == len(others) == 1 and next(iter(own)).opposite == next(iter(others)):
        return tuple(test for test in one if test in second)
    return None


def _merge(items: Items, earlier: int, later: int, whole: Tests) -> Items:
    (before, one), (after, other) = items[earlier], items[later]
    if isinstance(one, Put) and isinstance(other, Put):
        name = f".put{id(one)}"
        kind = other.value.kind
        return [
            *items[:earlier], (before, Assign(name, one.value)), *items[earlier + 1 : later],
            (after, Assign(name, other.value)), (whole, Put(one.port, Var(name, kind))), *items[later + 1 :],
        ]  # fmt: skip
    assert isinstance(one, Get)
    assert isinstance(other, Get)
    name = f".get{id(one)}"
    value = Var(name, one.kind)
    return [
        *items[:earlier], (whole, Get(name, one.port, one.kind)), (before, Assign(one.var, value)),
        *items[earlier + 1 : later], (after, Assign(other.var, value)), *items[later + 1 :],
    ]  # fmt: skip


def in_turns(items: Items, loop: int) -> tuple[Items, int]:
    """With every access in a turn in which it is alone, and how many turns there are; `loop` counts them."""
    turn, met, turns = 0, set[StreamEnd | Memory](), list[int]()
    for _, one in items:
        what = one.port if isinstance(one, Get | Put) else one.memory if isinstance(one, Store) else None
        if what is not None and what in met:
            turn += 1
            met = set[StreamEnd | Memory]()
        if what is not None:
            met.add(what)
        turns.append(turn)
    if turn == 0:
        return items, 1
    return [((*tests, Test(loop, "eq", at)), one) for (tests, one), at in zip(items, turns, strict=True)], turn + 1
