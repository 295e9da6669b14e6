"""Moves of a descent that change the order in which kernels walk, and their lanes along the slowest dim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from penstock.compiler.analysis.graph import TensorOp
from penstock.dse.search.ways import followed
from penstock.dse.search.worth import State
from penstock.dse.space.fitted import BUILT, BURST, CAPPED, COMPACT, FAVOUR, WALK, cap_of, caps_like, outer_of
from penstock.dse.space.tiling import Choices, Params, TilingSpace

WalkMoves = Callable[[TilingSpace, Choices, TensorOp, Params], Iterable[State]]
"""Of one kernel, from a setting."""


def capped(choices: Choices, here: Params) -> Iterator[State]:
    """All kernels with few lanes along their outermost dims, so that each begins soon after the one before."""
    walks = {name: outer_of(value) for name, value in here.items() if name.startswith(f"{WALK}.")}
    for cap in CAPPED.values():
        named = {name: outer + cap for name, outer in walks.items()}
        yield {**here, **{name: value for name, value in named.items() if value in choices[name]}}


def anchors(space: TilingSpace, choices: Choices, op: TensorOp, here: Params) -> Iterator[State]:
    """Walks with one slow dim, for all other kernels to fall in with."""
    name = f"{WALK}.{op.layer}"
    slow = [v for v in choices[name] if len(outer_of(v)) == 1 and cap_of(v) in (CAPPED[None], CAPPED[1])]
    yield from [followed(space, op, {**here, name: value}) for value in slow]


def other_walks(space: TilingSpace, choices: Choices, op: TensorOp, here: Params) -> Iterator[State]:
    """Another order for one kernel: alone, and with all around it in step."""
    name = f"{WALK}.{op.layer}"
    cap = cap_of(here[name])
    for value in (value for value in choices[name] if cap_of(value) == cap):
        alone = {**here, name: value}
        yield alone
        yield followed(space, op, alone)


def small_moves(space: TilingSpace, choices: Choices, op: TensorOp, here: Params) -> Iterator[State]:
    """The same order with other lanes."""
    walk = f"{WALK}.{op.layer}"
    outer = outer_of(here[walk])
    for cap in caps_like(here[walk]):
        if (other := outer + cap) != here[walk] and other in choices[walk]:
            yield {**here, walk: other}
            yield followed(space, op, {**here, walk: other})
    for name in (f"{kind}.{op.layer}" for kind in (BURST, COMPACT, FAVOUR, BUILT)):
        yield from ({**here, name: v} for v in choices.get(name, ()) if v != here[name])
