"""One access to a channel a round: what two branches do is done once, and what happens twice takes turns.

A FIFO gives and takes one token a cycle, and a memory's word is stored once. So a nest whose round puts twice into one
stream gets an innermost loop over turns, with each put in a turn of its own.

In a circle a task may wait for what comes of its own puts. A round takes all its tokens before it puts any, so there a
get after a put stands in a turn of its own too.
"""

from __future__ import annotations

from collections.abc import Collection

from penstock.compiler.tasks.affine import Test, Tests
from penstock.compiler.tasks.tree import Assign, Get, Memory, Put, Simple, Store, StreamEnd, Var

NestItem = tuple[Tests, Simple]
Items = list[NestItem]


def merged(items: Items, circle: Collection[StreamEnd] = ()) -> Items:
    """Puts, and gets, of one port in rounds that make up a whole are one; not past others of a circle."""
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
                if whole is None or (one.port in circle and _passed(items[earlier + 1 : later], circle)):
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


def _passed(between: Items, circle: Collection[StreamEnd]) -> bool:
    return any(isinstance(one, Get | Put) and one.port in circle for _, one in between)


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


def in_turns(items: Items, loop: int, circle: Collection[StreamEnd] = ()) -> tuple[Items, int]:
    """With every access in a turn in which it is alone, and how many turns there are; `loop` counts them."""
    turn, met, turns, puts = 0, set[StreamEnd | Memory](), list[int](), False
    for _, one in items:
        what = one.port if isinstance(one, Get | Put) else one.memory if isinstance(one, Store) else None
        if what is not None and (what in met or (puts and isinstance(one, Get) and one.port in circle)):
            turn += 1
            met, puts = set[StreamEnd | Memory](), False
        if what is not None:
            met.add(what)
        puts = puts or (isinstance(one, Put) and one.port in circle)
        turns.append(turn)
    if turn == 0:
        return items, 1
    alone = [((*tests, Test(loop, "eq", at)), one) for (tests, one), at in zip(items, turns, strict=True)]
    return _as_one(alone, turns, loop, turn + 1), turn + 1


def _as_one(items: Items, turns: list[int], loop: int, count: int) -> Items:
    """Accesses to one port in neighbouring turns as one, which happens in all of these: a port is met once a round."""
    sites: dict[tuple[StreamEnd, type[Get | Put]], list[int]] = {}
    for place, (_, one) in enumerate(items):
        if isinstance(one, Get | Put):
            sites.setdefault((one.port, type(one)), []).append(place)
    before, after, changed = dict[int, NestItem](), dict[int, NestItem](), dict[int, NestItem]()
    for places in sites.values():
        own = [turns[place] for place in places]
        outer = {items[place][0][:-1] for place in places}
        if len(places) == 1 or len(outer) > 1 or own != list(range(own[0], own[0] + len(own))):
            continue
        tests = outer.pop()
        tests += (Test(loop, "ge", own[0]),) if own[0] else ()
        tests += (Test(loop, "le", own[-1]),) if own[-1] < count - 1 else ()
        name = f".turns{places[0]}"
        for place in places:
            guard, one = items[place]
            assert isinstance(one, Get | Put)
            if isinstance(one, Get):
                changed[place] = (guard, Assign(one.var, Var(name, one.kind)))
                before[places[0]] = (tests, Get(name, one.port, one.kind))
            else:
                changed[place] = (guard, Assign(name, one.value))
                after[places[-1]] = (tests, Put(one.port, Var(name, one.value.kind)))
    made: Items = []
    for place, item in enumerate(items):
        made += [before[place]] if place in before else []
        made.append(changed.get(place, item))
        made += [after[place]] if place in after else []
    return made
