"""A division of tasks among the dies found by moving them, one or a few at a time: for a search, in thousandths of a
second where there is room, in a tenth where there is hardly any, with the wires of links and what large memories are
built of.

What it finds is a division. Where it finds none there may be one all the same, which the exact partition would find.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np

from penstock.compiler.jit import Compiled
from penstock.compiler.platforms import total
from penstock.compiler.schedule import MemoryUse
from penstock.dse.partition.annealed import divided
from penstock.dse.partition.graph import LargeMemories, PlacementGraph
from penstock.dse.partition.quick import Amounts, amounts_of
from penstock.dse.partition.site import Site

DIVIDED = Compiled(
    "division", ("penstock.dse.partition.annealed",), "divided",
    before_loading=20_000, before_compiling=400_000,  # moves of a task
    inlined=("over", "put"),
)  # fmt: skip
_MOST_TOGETHER = 24
"""Tasks that are moved as one: what is joined by the widest channels."""
_PIECES = 4
"""In so many parts memories that are alike are built of something else."""
_ALIKE = 3
"""Tasks that one other is joined to by channels of one width, and that are moved as one: the ports of a load."""
_COOLED, _STEPS, _FAR = 3, 100_000, 1.0
"""So often, and in so many steps, is it annealed; not where limits are exceeded by more than that part."""


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
        crossed = [
            int((one in boundary.beyond) != (other in boundary.beyond))
            for one in site.dies for other in site.dies for boundary in site.boundaries
        ]  # fmt: skip
        edges = list(chain.from_iterable(self.joined))
        self.tables = (
            list(chain.from_iterable(self.limits)), [float(most) for most in self.links],
            crossed, _starts(self.joined),
            [other for other, _ in edges], [bits for _, bits in edges],
            _starts(self.together), list(chain.from_iterable(self.together)),
            [thing for thing, _ in self.pieces], _starts([ways for _, ways in self.pieces]),
            [amount for _, ways in self.pieces for way in ways for amount in way],
        )  # fmt: skip

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
        best, kept, built = float("inf"), list[int](), list[int]()
        together = ([self.pinned.get(thing, die) for thing in range(len(self.needs))] for die in range(self.dies))
        for seed, start in enumerate((*self._in_order(), *together, *[None] * _COOLED), 1):
            if start is None and best > _FAR:
                break
            on = list(start or kept)
            if start is None:
                self._build(built)
            over = self._divided(on, _STEPS if start is None and self.together else 0, seed)
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

    def _divided(self, on: list[int], steps: int, seed: int) -> float:
        """What limits are exceeded by, with `on`, what things need and what pieces are built of as they are then."""
        fixed = (*self.tables, [self.dies, len(self.links), len(self.limits[0]), steps, seed])
        used, wires = [0.0] * sum(map(len, self.limits)), [0.0] * len(self.links)
        needs, was = list(chain.from_iterable(self.needs)), [0] * max(map(len, self.together), default=0)
        moves = steps * sum(map(len, self.together)) // max(1, len(self.together))
        if not DIVIDED.pays(max(moves, len(self.together) * self.dies)):
            over = divided(on, self.built, needs, used, wires, was, *fixed)
        else:
            places, ways, own = (np.array(part, np.int64) for part in (on, self.built, was))
            amounts, there, between = (np.array(part, np.float64) for part in (needs, used, wires))
            of = (np.float64, np.float64, *[np.int64] * 8, np.float64, np.int64)
            tables = [np.array(part, kind) for part, kind in zip(fixed, of, strict=True)]
            over = DIVIDED.function()(places, ways, amounts, there, between, own, *tables)
            on[:], self.built, needs = places.tolist(), ways.tolist(), amounts.tolist()
        size = len(self.limits[0])
        self.needs = [needs[place : place + size] for place in range(0, len(needs), size)]
        return over

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

    @staticmethod
    def _add(amounts: list[float], more: Sequence[float], times: int) -> None:
        for place, amount in enumerate(more):
            amounts[place] += times * amount


def _parts(one: LargeMemories) -> list[tuple[tuple[MemoryUse, ...], ...]]:
    """Memories that are alike, in a few parts."""
    parts = min(_PIECES, len(one.ways))
    return [one.ways[part::parts] for part in range(parts)]


def _starts(parts: Sequence[Sequence[object]]) -> list[int]:
    """Where each of these begins if they lie one behind the other, and where the last one ends."""
    return list(accumulate(map(len, parts), initial=0))
