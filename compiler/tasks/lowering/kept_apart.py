"""Arrays of a task whose every index is known, as a window or a delay line that is written out: variables.

A round that moves such an array on by one loads and stores several of its places in turn. A memory would have to keep
that order; as variables, its elements are registers, and what is moved in a round passes as wires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod

from penstock.compiler.tasks.affine import Affine
from penstock.compiler.tasks.kinds import TileKind
from penstock.compiler.tasks.tree import (
    Assign,
    Const,
    Expr,
    Fetch,
    For,
    Join,
    Memory,
    Shuffle,
    Simple,
    Stmt,
    Store,
    TaskBody,
    Var,
    When,
    expressions,
    walk,
)

MOST_VARIABLES = 64
"""Elements of such an array."""


def with_variables(body: TaskBody) -> TaskBody | None:
    """The body with variables in the place of such arrays, or None where it has none."""
    apart = {memory for memory in body.arrays.values() if _is_apart(memory, body)}
    if not apart:
        return None
    kept = {name: memory for name, memory in body.arrays.items() if memory not in apart}
    return replace(body, statements=tuple(_without(body.statements, apart)), arrays=kept)


def _is_apart(memory: Memory, body: TaskBody) -> bool:
    """Small, and all of its places are known: parts are stored, and something is loaded."""
    if memory.table is not None or prod(memory.shape) > MOST_VARIABLES:
        return False
    met = [one for statement in walk(body.statements) for one in _accesses(statement) if one.memory is memory]
    known = all(not at.terms for one in met for at in one.index)
    parts = any(isinstance(one, Store) and one.block != memory.shape for one in met)
    return known and parts and any(isinstance(one, Fetch) for one in met)


def _accesses(one: Simple) -> list[Fetch | Store]:
    found: list[Fetch | Store] = [value for value in expressions(one) if isinstance(value, Fetch)]
    return [*found, one] if isinstance(one, Store) else found


def _without(statements: Sequence[Stmt], apart: set[Memory]) -> list[Stmt]:
    found: list[Stmt] = []
    for one in statements:
        match one:
            case For() | When():
                found.append(replace(one, body=tuple(_without(one.body, apart))))
            case Store(memory=memory) if memory in apart:
                found += _assigned(one)
            case Assign(value=Fetch(memory=memory) as load) if memory in apart:
                found.append(Assign(one.var, _loaded(load)))
            case _:
                found.append(one)
    return found


def _variables(memory: Memory, index: Sequence[Affine], block: Sequence[int]) -> list[Var]:
    """Those of a block, row by row."""
    places = product(*(range(at.const, at.const + size) for at, size in zip(index, block, strict=True)))
    return [Var(".".join([memory.name, "at", *map(str, place)]), TileKind(memory.dtype)) for place in places]


def _loaded(load: Fetch) -> Expr:
    own = _variables(load.memory, load.index, load.block)
    if not load.kind.shape:
        return own[0]
    row = Join(tuple(own), TileKind(load.memory.dtype, (len(own),)))
    return row if load.kind == row.kind else Shuffle(row, tuple(range(len(own))), load.kind)


def _assigned(store: Store) -> list[Stmt]:
    """Each variable gets its lane; what they are of is worked out before any of them changes."""
    own, value = _variables(store.memory, store.index, store.block), store.value
    if not value.kind.shape:
        return [Assign(one.name, value) for one in own]
    if isinstance(value, Const):
        return [Assign(one.name, Const(value.value, one.kind)) for one in own]
    whole = Var(f"{own[0].name}.all", value.kind)
    parts = [Assign(one.name, Shuffle(whole, (lane,), one.kind)) for lane, one in enumerate(own)]
    return [Assign(whole.name, value), *parts]
