"""The task of a core, as lines of a program: it fetches, hands on, keeps, computes and sends its results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compiler.mesh.overlay.built import PLACES, BuiltPlan, FetchedTile, StoredTile
from penstock.compiler.mesh.overlay.slices import (
    TileSlice,
    shape_text,
)
from penstock.compiler.mesh.overlay.values import CoreLines, reshaped, stacked
from penstock.compiler.mesh.program import MeshLoad, MeshLoop, MeshStore


@dataclass(frozen=True)
class CoreTask:
    of: BuiltPlan

    def lines(self) -> list[str]:
        mapping, facts = self.of.plan.mapping, self.of.plan.facts
        by_load = {id(one.fact.load): one for one in self.of.loads}
        by_store = {id(one.store): one for one in self.of.stores}
        waiting: dict[int, list[FetchedTile]] = {}
        for one in self.of.loads:  # what stands in a loop but does not change with it comes before it
            around = self.of.within.get(id(one.fact.load))
            if around is not None and one.loop is None:
                waiting.setdefault(around.counter, []).append(one)

        def loads(load: MeshLoad) -> list[str]:
            one = by_load[id(load)]
            return self._fetch(one) if one.loop is not None or id(load) not in self.of.within else []

        def stores(store: MeshStore, value: str) -> list[str]:
            one = by_store[id(store)]
            return [f"out{one.at}[px, py].put({self._laid_out(one, value)})"]

        def ahead(loop: MeshLoop) -> list[str]:
            return [line for one in waiting.get(loop.counter, []) for line in self._fetch(one)]

        body = CoreLines(facts.program, loads, stores, ahead, self._place_of)
        lines = body.lines(facts.program.body)
        counts, counting = self._counting(body.counted)
        lines = [*lines, *counting]
        memories = [
            f"kept_{one.name}: {facts.program.tensors[one.fact.load.access.tensor].dtype}"
            f"[{', '.join(map(str, (self._room(one), *one.tile.block)))}] = 0"
            for one in self.of.loads if one.kept
        ]  # fmt: skip
        loops = f"for {self.of.over(None)}({', '.join(map(str, mapping.trips))}):"
        return [
            f"@task(grid=({self.of.grid[0]}, {self.of.grid[1]}))",
            "def core(px, py):",
            *(f"    {line}" for line in [*memories, *counts, loops]),
            *(f"        {line}" for line in lines),
            "",
        ]

    def _place_of(self, counter: int) -> tuple[str, str] | None:
        """A dim of the grid: the variable that counts its turns, and how far on the core is."""
        mapping, grid = self.of.plan.mapping, self.of.plan.facts.program.grid
        dim = next((i for i, one in enumerate(grid) if one.counter == counter), None)
        if dim is None:
            return None
        parts = [
            f"{PLACES[d]} * {mapping.width_behind(d)}" for d, there in enumerate(mapping.spatial) if there == dim
        ]  # fmt: skip
        level = mapping.order.index(dim)
        turns = f"n{counter} * {mapping.width(dim)}" if mapping.trips[level] > 1 else ""
        return turns, " + ".join(parts) or "0"

    def _counting(self, counted: set[int]) -> tuple[list[str], list[str]]:
        """Variables that count turns of loops whose counters are values, and what is done at the end of a turn."""
        mapping, grid = self.of.plan.mapping, self.of.plan.facts.program.grid
        counts: list[str] = []
        lines: list[str] = []
        behind: list[str] = []
        for level in reversed(range(len(mapping.order))):
            counter, trip = grid[mapping.order[level]].counter, mapping.trips[level]
            if trip == 1:
                continue
            last = f"i{level} == {trip - 1}"
            if counter in counted:
                counts.append(f"n{counter}: int32 = 0")
                lines += [f"if {' and '.join(behind)}:"] if behind else []
                indent = "    " if behind else ""
                lines += [f"{indent}if {last}:", f"{indent}    n{counter} = 0", f"{indent}else:",
                          f"{indent}    n{counter} = n{counter} + 1"]  # fmt: skip
            behind.append(last)
        return counts, lines

    def _fetch(self, one: FetchedTile) -> list[str]:
        came, tile = f"{one.name}[px, py].get()", f"tile_{one.name}"
        handed = self._handed_on(one, tile)
        if one.kept:
            new = " and ".join(f"i{level} == 0" for level in one.kept)
            place = ", ".join([self._strip(one), *[":"] * len(one.tile.block)])
            dtype = self.of.plan.facts.program.tensors[one.fact.load.access.tensor].dtype
            lines = [
                f"{tile}: {dtype}[{', '.join(map(str, one.tile.block))}] = 0",
                f"if {new}:",
                f"    {tile} = {came}",
                f"    kept_{one.name}[{place}] = {tile}",
                *(f"    {line}" for line in handed),
                "else:",
                f"    {tile} = kept_{one.name}[{place}]",
            ]
        else:
            lines = [f"{tile} = {came}", *handed]
        load = one.fact.load
        return [*lines, f"v{load.result} = {_tile_text(tile, one.tile, load.access.shape)}"]

    def _handed_on(self, one: FetchedTile, tile: str) -> list[str]:
        """Along the last dim that is shared; along the one before it only at the beginning of the last."""
        share = [d for d in one.plan.share if self.of.grid[d] > 1]
        found: list[str] = []
        for at, d in enumerate(share):
            first = "".join(f"{PLACES[later]} == 0 and " for later in share[at + 1 :])
            there = ", ".join(f"{PLACES[e]} + 1" if e == d else PLACES[e] for e in range(2))
            found += [f"if {first}{PLACES[d]} + 1 < {self.of.grid[d]}:", f"    {one.name}[{there}].put({tile})"]
        return found

    def _held(self, one: FetchedTile) -> list[tuple[int, int]]:
        """The loops, with their strides, by which what a core keeps is counted."""
        size, found = 1, list[tuple[int, int]]()
        for level in range(len(self.of.plan.mapping.order) - 1, min(one.kept), -1):
            if level not in one.kept and self.of.plan.mapping.trips[level] > 1:
                found.append((level, size))
                size *= self.of.plan.mapping.trips[level]
        return found

    def _room(self, one: FetchedTile) -> int:
        strips = math.prod(self.of.plan.mapping.trips[level] for level, _ in self._held(one))
        return strips * self.of.rounds(one)

    def _strip(self, one: FetchedTile) -> str:
        rounds = self.of.rounds(one)
        terms = [f"i{level} * {step * rounds}" for level, step in self._held(one)]
        return " + ".join([*terms, *([] if one.loop is None else [f"k{one.loop.counter}"])]) or "0"

    def _laid_out(self, one: StoredTile, value: str) -> str:
        """A result in the order of its tensor's dims."""
        shape, block = one.store.access.shape, one.tile.block
        made = self.of.plan.facts.program.shapes[one.store.value][0]
        if made != shape:
            value = f"broadcast({value}, {shape_text(shape)})"
        if tuple(one.tile.order) == tuple(range(len(block))):
            return value
        index = ", ".join("0" if d is None else f"q{d}" for d in one.tile.order)
        return stacked(block, f"{value}[{index}]")


def _tile_text(name: str, tile: TileSlice, shape: Sequence[int]) -> str:
    """A slice of the tensor as the kernel's tile: dims in the kernel's order."""
    along = [at for at in tile.order if at is not None]
    if tuple(tile.order) == tuple(range(len(tile.block))):
        return name
    if along == sorted(along):
        return reshaped(name, tile.block, shape)
    if tuple(tile.order) == (1, 0) and len(tile.block) == 2:
        return f"transpose({name})"
    spots = {at: f"q{d}" for d, at in enumerate(tile.order) if at is not None}
    return stacked(shape, f"{name}[{', '.join(spots.get(at, '0') for at in range(len(tile.block)))}]")
