"""A division of tasks among the dies found by moving them, one or a few at a time: for a search, in a few hundredths of
a second where there is room, in a second where there is hardly any, with the wires of links and what large memories are
built of.

What it finds is a division. Where it finds none there may be one all the same, which the exact partition would find.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp
from random import Random

from penstock.compiler.platforms import total
from penstock.compiler.schedule import MemoryUse
from penstock.dse.partition.graph import LargeMemories, PlacementGraph
from penstock.dse.partition.quick import Amounts, amounts_of
from penstock.dse.partition.site import Site

_MOST_TOGETHER = 24
"""Tasks that are moved as one: what is joined by the widest channels."""
_PIECES = 4
"""In so many parts memories that are alike are built of something else."""
_ALIKE = 3
"""Tasks that one other is joined to by channels of one width, and that are moved as one: the ports of a load."""
_COOLED, _STEPS, _FAR = 2, 30_000, 1.0
"""So often, and in so many steps, is it annealed; not where limits are exceeded by more than that part."""
_HOT, _COLD = 0.5, 0.001
"""By how much a step may make limits be exceeded more, with a chance of 1 in e: at first, and at last."""
_REBUILT = 0.1
"""What part of the steps build memories of something else."""
_A_WIRE = 0.01
"""What all wires of a link cost beside limits that are exceeded by their whole amount: of divisions that are as good in
these, the one with fewer wires is left first."""
_LACKING = 1e3


@dataclass(frozen=True)
class Division:
    """A die for everything, and what each of some memories is built of."""

    dies: Mapping[str, str]
    uses: Mapping[str, MemoryUse]
    excess: float
    """By which part the limits of dies and links are exceeded, all added up."""


def divide(graph: PlacementGraph, site: Site, memories: Sequence[LargeMemories] = ()) -> Division:
    """The best division that is found: it may exceed limits."""
    return _Divider(graph, site, memories).run()


class _Divider:
    def __init__(self, graph: PlacementGraph, site: Site, memories: Sequence[LargeMemories]) -> None:
        self.names, self.site, self.memories = [thing.name for thing in graph.things], site, memories
        number = {name: n for n, name in enumerate(self.names)}
        self.dies, self.limits = len(site.dies), [amounts_of(limits) for limits in site.limits.values()]
        self.pinned = {n: site.dies.index(t.die) for n, t in enumerate(graph.things) if t.die is not None}
        self.needs = [list(amounts_of(thing.resources)) for thing in graph.things]
        self.links = [boundary.wires for boundary in site.boundaries]
        self.crossed = [
            [
                [n for n, b in enumerate(site.boundaries) if (one in b.beyond) != (other in b.beyond)]
                for other in site.dies
            ]
            for one in site.dies
        ]
        joined: dict[tuple[int, int], int] = {}
        for wires in graph.connections:
            ends = sorted((number[wires.source], number[wires.target]))
            if wires.bits and ends[0] != ends[1]:
                joined[ends[0], ends[1]] = joined.get((ends[0], ends[1]), 0) + wires.bits
        self.joined: list[list[tuple[int, int]]] = [[] for _ in self.names]
        for (one, other), bits in joined.items():
            self.joined[one].append((other, bits))
            self.joined[other].append((one, bits))
        self.together = self._units(sorted(joined, key=lambda ends: (-joined[ends], ends)))
        self.pieces: list[tuple[int, list[Amounts]]] = []
        for one in memories:
            for part in _parts(one):
                self.pieces.append((number[one.thing], [amounts_of(total([area] * len(part))) for area in one.areas]))
        self.built = [0] * len(self.pieces)
        for thing, ways in self.pieces:
            self._add(self.needs[thing], ways[0], 1)

    def _units(self, widest_first: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
        """Each task, and all sets of them that come about when tasks are joined by their widest channels first."""
        of: dict[int, tuple[int, ...]] = {n: (n,) for n in range(len(self.needs)) if n not in self.pinned}
        units = list(of.values())
        for one, other in widest_first:
            if one in of and other in of and of[one] is not of[other] and len(of[one] + of[other]) <= _MOST_TOGETHER:
                unit = of[one] + of[other]
                units.append(unit)
                of |= dict.fromkeys(unit, unit)
        for one in range(len(self.needs)):
            for around in self._around(one):
                units += [around] if one in self.pinned else [around, (*around, one)]
        return list({frozenset(unit): unit for unit in units}.values())

    def _around(self, one: int) -> list[tuple[int, ...]]:
        """What a task is joined to by channels of one width, which often serves others in the same way."""
        alike: dict[int, list[int]] = {}
        for other, bits in self.joined[one]:
            if other not in self.pinned:
                alike.setdefault(bits, []).append(other)
        return [tuple(some) for some in alike.values() if len(some) >= _ALIKE]

    def run(self) -> Division:
        """From tasks in order and from all on one die; then annealed from the best of these."""
        draw, best = Random(0), float("inf")
        kept, built = list[int](), list[int]()
        together = ([self.pinned.get(thing, die) for thing in range(len(self.needs))] for die in range(self.dies))
        for start in (*self._in_order(), *together, *[None] * _COOLED):
            if start is None and best > _FAR:
                break
            on = list(start or kept)
            if start is None:
                self._build(built)
                self._anneal(on, draw)
            over = self._improved(on)
            if over <= best:
                best, kept, built = over, on, list(self.built)
            if over <= 0:
                break
        dies = {name: self.site.dies[die] for name, die in zip(self.names, kept, strict=True)}
        parts = [part for one in self.memories for part in _parts(one)]
        uses = [ways[way] for part, way in zip(parts, built, strict=True) for ways in part]
        return Division(dies, {use.name: use for use in uses}, best)

    def _build(self, built: Sequence[int]) -> None:
        for piece, way in enumerate(built):
            thing, ways = self.pieces[piece]
            self._add(self.needs[thing], ways[self.built[piece]], -1)
            self._add(self.needs[thing], ways[way], 1)
            self.built[piece] = way

    def _anneal(self, on: list[int], draw: Random) -> None:
        """Moves by chance, of which those for the worse are taken back more and more often.

        On full dies a task can mostly go only where another one leaves, and a load where its ports go too.
        """
        self._count(on)
        cost, heat, cooling = self._cost(), _HOT, (_COLD / _HOT) ** (1 / _STEPS)
        for _ in range(_STEPS):
            heat *= cooling
            if self.pieces and draw.random() < _REBUILT:
                cost = self._rebuilt(on, int(draw.random() * len(self.pieces)), cost)
                continue
            unit, die = self.together[int(draw.random() * len(self.together))], int(draw.random() * self.dies)
            left = [(thing, on[thing]) for thing in unit if on[thing] != die]
            self._move(on, [(thing, die) for thing, _ in left])
            if (after := self._cost()) <= cost or draw.random() < exp((cost - after) / heat):
                cost = after
            else:
                self._move(on, left)

    def _in_order(self) -> Iterator[list[int]]:
        """Tasks stand in the order of the data: one after the other until a die has its part of them."""
        whole = [sum(have) for have in zip(*self.limits, strict=True)]
        sizes = [max((n / w for n, w in zip(need, whole, strict=True) if w), default=0.0) for need in self.needs]
        for backwards in (False, True):
            on, passed = [0] * len(sizes), 0.0
            for thing, size in enumerate(sizes):
                die = min(int(self.dies * (passed + size / 2) / (sum(sizes) or 1.0)), self.dies - 1)
                on[thing] = self.pinned.get(thing, self.dies - 1 - die if backwards else die)
                passed += size
            yield on

    def _improved(self, on: list[int]) -> float:
        self._count(on)
        cost = self._cost()
        while self._over() > 0:
            before = cost
            for unit, die in product(self.together, range(self.dies)):
                if any(on[thing] != die for thing in unit):
                    cost = self._moved(on, unit, die, cost)
            for piece in range(len(self.pieces)):
                cost = self._rebuilt(on, piece, cost)
            if cost >= before - 1e-9:
                break
        return self._over()

    def _count(self, on: Sequence[int]) -> None:
        self.used = [[0.0] * len(limits) for limits in self.limits]
        self.wires = [0] * len(self.links)
        for thing, die in enumerate(on):
            self._add(self.used[die], self.needs[thing], 1)
            for other, bits in self.joined[thing]:
                if other > thing:
                    for link in self.crossed[die][on[other]]:
                        self.wires[link] += bits

    def _over(self) -> float:
        over = sum(
            max(0.0, w / most - 1) if most else _LACKING * w for w, most in zip(self.wires, self.links, strict=True)
        )
        for used, limits in zip(self.used, self.limits, strict=True):
            for amount, limit in zip(used, limits, strict=True):
                if amount > limit:
                    over += amount / limit - 1 if limit else _LACKING
        return over

    def _cost(self) -> float:
        return self._over() + _A_WIRE * sum(w / max(most, 1) for w, most in zip(self.wires, self.links, strict=True))

    def _moved(self, on: list[int], unit: tuple[int, ...], die: int, cost: float) -> float:
        """With these on another die, if that is better."""
        left = [(thing, on[thing]) for thing in unit if on[thing] != die]
        self._move(on, [(thing, die) for thing, _ in left])
        after = self._cost()
        if after < cost - 1e-12:
            return after
        self._move(on, left)
        return cost

    def _move(self, on: list[int], moves: Sequence[tuple[int, int]]) -> None:
        for thing, die in moves:
            here, need = on[thing], self.needs[thing]
            self._add(self.used[here], need, -1)
            self._add(self.used[die], need, 1)
            for other, bits in self.joined[thing]:
                for link in self.crossed[here][on[other]]:
                    self.wires[link] -= bits
                for link in self.crossed[die][on[other]]:
                    self.wires[link] += bits
            on[thing] = die

    def _rebuilt(self, on: Sequence[int], piece: int, cost: float) -> float:
        """With memories built of something else, if that is better."""
        thing, ways = self.pieces[piece]
        used, need = self.used[on[thing]], self.needs[thing]
        for way in range(len(ways)):
            if way == (before := self.built[piece]):
                continue
            for amounts in (used, need):
                self._add(amounts, ways[before], -1)
                self._add(amounts, ways[way], 1)
            if (after := self._cost()) < cost - 1e-12:
                self.built[piece], cost = way, after
                continue
            for amounts in (used, need):
                self._add(amounts, ways[way], -1)
                self._add(amounts, ways[before], 1)
        return cost

    @staticmethod
    def _add(amounts: list[float], more: Sequence[float], times: int) -> None:
        for place, amount in enumerate(more):
            amounts[place] += times * amount


def _parts(one: LargeMemories) -> list[tuple[tuple[MemoryUse, ...], ...]]:
    """Memories that are alike, in a few parts."""
    parts = min(_PIECES, len(one.ways))
    return [one.ways[part::parts] for part in range(parts)]
