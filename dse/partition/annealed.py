"""The inner part of `moving.py`: tasks are moved, and memories built otherwise, one after the other. Plain Python, or
compiled.

Numbers of all tasks, dies and links lie one behind the other. `needs` and `used` have so many amounts a task and a die,
`crossed` a 1 for every link between two dies, and `ways` the amounts of every way of every piece.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence

from penstock.compiler.jit import Words, jit

FlatAmounts = MutableSequence[float]
FlatNumbers = Sequence[int]

# columns of `sizes`
DIES = 0
LINKS = 1
AMOUNTS = 2  # of a task, a die or a way
STEPS = 3  # of annealing; none before tasks are moved for the better alone
SEED = 4


@jit
def divided(on: Words, built: Words, needs: FlatAmounts, used: FlatAmounts, wires: FlatAmounts, was: Words,
            limits: Sequence[float], most: Sequence[float], crossed: FlatNumbers, joined: FlatNumbers,
            others: FlatNumbers, bits: FlatNumbers, starts: FlatNumbers, units: FlatNumbers, pieces: FlatNumbers,
            firsts: FlatNumbers, ways: Sequence[float], sizes: FlatNumbers) -> float:  # fmt: skip
    """By which part limits are exceeded when no move of a unit and no other way to build a piece is better.

    `joined` says where each task's `others` begin, `starts` where each unit does, `firsts` where each piece's ways do.
    """
    dies, links, amounts = sizes[0], sizes[1], sizes[2]
    for place in range(len(used)):
        used[place] = 0.0
    for link in range(links):
        wires[link] = 0.0
    for thing in range(len(on)):
        for n in range(amounts):
            used[on[thing] * amounts + n] += needs[thing * amounts + n]
        for edge in range(joined[thing], joined[thing + 1]):
            if others[edge] > thing:
                for link in range(links):
                    wires[link] += bits[edge] * crossed[(on[thing] * dies + on[others[edge]]) * links + link]
    if sizes[3] > 0:
        anneal(on, built, needs, used, wires, was, limits, most, crossed, joined, others, bits, starts, units, pieces,
               firsts, ways, sizes)  # fmt: skip
    now = cost(used, limits, wires, most)
    while over(used, limits, wires, most) > 0:
        before = now
        for unit in range(len(starts) - 1):
            for die in range(dies):
                if move(unit, die, on, needs, used, wires, was, crossed, joined, others, bits, starts, units, sizes):
                    after = cost(used, limits, wires, most)
                    if after < now - 1e-12:
                        now = after
                    else:
                        put_back(unit, on, needs, used, wires, was, crossed, joined, others, bits, starts, units, sizes)
        for piece in range(len(pieces)):
            now = rebuild(piece, now, on, built, needs, used, wires, limits, most, pieces, firsts, ways, amounts)
        if now >= before - 1e-9:
            break
    return over(used, limits, wires, most)


@jit
def anneal(on: Words, built: Words, needs: FlatAmounts, used: FlatAmounts, wires: FlatAmounts, was: Words,
           limits: Sequence[float], most: Sequence[float], crossed: FlatNumbers, joined: FlatNumbers,
           others: FlatNumbers, bits: FlatNumbers, starts: FlatNumbers, units: FlatNumbers, pieces: FlatNumbers,
           firsts: FlatNumbers, ways: Sequence[float], sizes: FlatNumbers) -> None:  # fmt: skip
    """Moves by chance, of which those for the worse are taken back more and more often.

    On full dies a task can mostly go only where another one leaves, and a load where its ports go too. With a chance of
    1 in e a step may make limits be exceeded by half more at first, by a thousandth at last; a tenth of the steps build
    memories of something else. It ends where nothing is exceeded.
    """
    now, heat, cooling = cost(used, limits, wires, most), 0.5, 0.002 ** (1.0 / sizes[3])
    chance, changed = sizes[4], True
    for _ in range(sizes[3]):
        if changed and over(used, limits, wires, most) <= 0:
            return
        heat *= cooling
        before, changed = now, False
        chance = chance * 48271 % 2147483647  # the minimal standard generator: the same with 64 bits and without end
        if len(pieces) > 0 and chance % 10 == 0:
            chance = chance * 48271 % 2147483647
            piece = chance % len(pieces)
            now = rebuild(piece, now, on, built, needs, used, wires, limits, most, pieces, firsts, ways, sizes[2])
            changed = now < before
            continue
        chance = chance * 48271 % 2147483647
        unit = chance % (len(starts) - 1)
        chance = chance * 48271 % 2147483647
        if not move(unit, chance % sizes[0], on, needs, used, wires, was, crossed, joined, others, bits, starts, units,
                    sizes):  # fmt: skip
            continue
        after = cost(used, limits, wires, most)
        chance = chance * 48271 % 2147483647
        if after <= now or chance / 2147483647.0 < math.exp((now - after) / heat):
            now, changed = after, True
        else:
            put_back(unit, on, needs, used, wires, was, crossed, joined, others, bits, starts, units, sizes)


@jit
def over(used: FlatAmounts, limits: Sequence[float], wires: FlatAmounts, most: Sequence[float]) -> float:
    """By which part limits of dies and links are exceeded, all added up. What there is nothing of costs far more."""
    found = 0.0
    for link in range(len(wires)):
        if wires[link] > most[link]:
            found += wires[link] / most[link] - 1.0 if most[link] > 0 else 1000.0 * wires[link]
    for place in range(len(used)):
        if used[place] > limits[place]:
            found += used[place] / limits[place] - 1.0 if limits[place] > 0 else 1000.0 * used[place]
    return found


@jit
def cost(used: FlatAmounts, limits: Sequence[float], wires: FlatAmounts, most: Sequence[float]) -> float:
    """With a hundredth for all wires of a link: of divisions that are as good, that with fewer wires is left first."""
    found = over(used, limits, wires, most)
    for link in range(len(wires)):
        found += 0.01 * wires[link] / max(most[link], 1.0)
    return found


@jit
def move(unit: int, die: int, on: Words, needs: FlatAmounts, used: FlatAmounts, wires: FlatAmounts, was: Words,
         crossed: FlatNumbers, joined: FlatNumbers, others: FlatNumbers, bits: FlatNumbers, starts: FlatNumbers,
         units: FlatNumbers, sizes: FlatNumbers) -> bool:  # fmt: skip
    """A unit to a die; false if it stands there. `was` says where its tasks stood."""
    moved = False
    for place in range(starts[unit], starts[unit + 1]):
        was[place - starts[unit]] = on[units[place]]
        if on[units[place]] != die:
            put(units[place], die, on, needs, used, wires, crossed, joined, others, bits, sizes)
            moved = True
    return moved


@jit
def put_back(unit: int, on: Words, needs: FlatAmounts, used: FlatAmounts, wires: FlatAmounts, was: Words,
             crossed: FlatNumbers, joined: FlatNumbers, others: FlatNumbers, bits: FlatNumbers, starts: FlatNumbers,
             units: FlatNumbers, sizes: FlatNumbers) -> None:  # fmt: skip
    for place in range(starts[unit], starts[unit + 1]):
        if on[units[place]] != was[place - starts[unit]]:
            put(units[place], was[place - starts[unit]], on, needs, used, wires, crossed, joined, others, bits, sizes)


@jit
def put(thing: int, die: int, on: Words, needs: FlatAmounts, used: FlatAmounts, wires: FlatAmounts,
        crossed: FlatNumbers, joined: FlatNumbers, others: FlatNumbers, bits: FlatNumbers,
        sizes: FlatNumbers) -> None:  # fmt: skip
    """One task on another die."""
    dies, links, amounts, here = sizes[0], sizes[1], sizes[2], on[thing]
    for n in range(amounts):
        used[here * amounts + n] -= needs[thing * amounts + n]
        used[die * amounts + n] += needs[thing * amounts + n]
    for edge in range(joined[thing], joined[thing + 1]):
        there = on[others[edge]]
        for link in range(links):
            before, after = (here * dies + there) * links + link, (die * dies + there) * links + link
            wires[link] += bits[edge] * (crossed[after] - crossed[before])
    on[thing] = die


@jit
def rebuild(piece: int, now: float, on: Words, built: Words, needs: FlatAmounts, used: FlatAmounts,
            wires: FlatAmounts, limits: Sequence[float], most: Sequence[float], pieces: FlatNumbers,
            firsts: FlatNumbers, ways: Sequence[float], amounts: int) -> float:  # fmt: skip
    """What the division costs with memories built of something else, if that is better."""
    thing = pieces[piece]
    for way in range(firsts[piece + 1] - firsts[piece]):
        before = built[piece]
        if way == before:
            continue
        old, new = (firsts[piece] + before) * amounts, (firsts[piece] + way) * amounts
        for n in range(amounts):
            used[on[thing] * amounts + n] += ways[new + n] - ways[old + n]
        after = cost(used, limits, wires, most)
        if after < now - 1e-12:
            built[piece], now = way, after
            for n in range(amounts):
                needs[thing * amounts + n] += ways[new + n] - ways[old + n]
        else:
            for n in range(amounts):
                used[on[thing] * amounts + n] += ways[old + n] - ways[new + n]
    return now
