"""Moves of a whole design that is fed from outside: banks, loads that run ahead, and the multipliers around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from penstock.dse.lanes.binding import MULTIPLIERS
from penstock.dse.search.worth import State
from penstock.dse.space.external import PREFETCH, STRIPES
from penstock.dse.space.fitted import IN_TURN, ROWS
from penstock.dse.space.reloading import RELOAD
from penstock.dse.space.tiling import Choices, Value

_FARTHER = 3
"""Steps of how far loads run ahead: to eight times as far, where the FIFOs of ports become block RAMs."""


def shared_out(choices: Choices, params: Mapping[str, Value]) -> Iterator[State]:
    """Lanes for the sum of all times instead of a common pace, or the other way round."""
    yield from ({**params, IN_TURN: n} for n in choices.get(IN_TURN, ()) if n != params.get(IN_TURN))


def run_ahead(choices: Choices, params: Mapping[str, Value], *, far: bool = False) -> Iterator[State]:
    """Loads that run ahead by a little more or less, or `far`, by any other amount."""
    amounts = choices.get(PREFETCH, ()) if far else _around(choices, params, PREFETCH)
    yield from ({**params, PREFETCH: n} for n in amounts if n != params.get(PREFETCH))


def loaded_late(choices: Choices, states: Sequence[State]) -> list[State]:
    """The same where loads run ahead by no more than covers an access: the fewest bits before many tensors."""
    least = choices[PREFETCH][0] if PREFETCH in choices else None
    return [{**state, PREFETCH: least} for state in states if least is not None and state[PREFETCH] != least]


def striped(choices: Choices, params: Mapping[str, Value]) -> Iterator[State]:
    """Tensors over half as many banks, or twice as many: what is joined of fewer needs fewer lanes and wires."""
    yield from ({**params, STRIPES: n} for n in _around(choices, params, STRIPES) if n != params[STRIPES])


def loaded_once(choices: Choices, params: Mapping[str, Value]) -> Iterator[State]:
    """Inputs that late readers wait for on the chip, or that are loaded once more for these."""
    yield from ({**params, RELOAD: again} for again in choices.get(RELOAD, ()) if again != params.get(RELOAD))


FED = (shared_out, run_ahead, striped, loaded_once)


def in_blocks(choices: Choices, params: Mapping[str, Value]) -> Iterator[State]:
    """Rows in other blocks, or in none: what is made as the next kernel takes it need not wait between them."""
    yield from ({**params, ROWS: n} for n in choices.get(ROWS, ()) if n != params[ROWS])


def fed_otherwise(choices: Choices, params: Mapping[str, Value]) -> list[State]:
    """Other multipliers, half the banks and loads that run far ahead, all at once.

    More multipliers want more words at a time, whose FIFOs take LUTs as long as they are shallow: of what is short,
    each of these alone takes more, or leaves the others nothing to use it for.
    """
    if STRIPES not in params:
        return []
    kinds = choices.get(MULTIPLIERS) or (params.get(MULTIPLIERS, ""),)
    banks = [n for n in _around(choices, params, STRIPES) if int(n) <= int(params[STRIPES])]
    ahead = choices[PREFETCH]
    here = ahead.index(params[PREFETCH])
    amounts = [ahead[here], *ahead[here + _FARTHER : here + _FARTHER + 1]]
    states = [
        {**params, **({MULTIPLIERS: kind} if kind else {}), STRIPES: n, PREFETCH: amount}
        for kind, n, amount in product(kinds, banks, amounts)
    ]
    return [state for state in states if state != params]


def _around(choices: Choices, params: Mapping[str, Value], name: str) -> tuple[Value, ...]:
    """What a parameter is, with the next smaller and the next larger value."""
    values = choices.get(name, ())
    if (here := params.get(name)) not in values:
        return ()
    place = values.index(here)
    return values[max(0, place - 1) : place + 2]
