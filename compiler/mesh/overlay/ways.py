"""How tiles come to the cores and results leave: tasks at the edges, as lines of a program."""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.compiler.mesh.overlay.built import PLACES, BuiltPlan, FetchedTile, StoredTile, named
from penstock.compiler.mesh.overlay.slices import (
    lanes_text,
    place_text,
    range_text,
    shape_text,
)
from penstock.compiler.mesh.overlay.values import stacked
from penstock.compiler.tasks.words import WIDEST_WORD


@dataclass(frozen=True)
class OverlayWays:
    of: BuiltPlan

    def loader(self, tensor: str, rows: list[FetchedTile]) -> list[str]:
        """One task meets a tensor: loads of it take turns in every turn of the loops."""
        levels = len(self.of.plan.mapping.order)
        waves = {tuple(self.of.trips(one)[:levels]) for one in rows}
        if len(waves) > 1:
            raise self.of.not_built(f"{tensor} is loaded twice and kept differently", "", rows[0].fact)
        lines = ["@task", f"def load_{tensor}():"]
        if len(rows) == 1:
            turns = [(f"t{d}", self.of.grid[d]) for d in self.of.turns(rows[0])]
            trips = [*self.of.trips(rows[0]), *(size for _, size in turns)]
            over = self.of.over(rows[0].loop, *(name for name, _ in turns))
            return [*lines, f"    for {over}({', '.join(map(str, trips))}):", f"        {self._asked(rows[0])}", ""]
        lines.append(f"    for {self.of.over(None)}({', '.join(map(str, waves.pop()))}):")
        for one in rows:
            names = [*([] if one.loop is None else [f"k{one.loop.counter}"]), *(f"t{d}" for d in self.of.turns(one))]
            trips = [*self.of.trips(one)[levels:], *(self.of.grid[d] for d in self.of.turns(one))]
            if names:
                lines.append(f"        for {', '.join(names)} in grid({', '.join(map(str, trips))}):")
            lines.append(f"        {'    ' if names else ''}{self._asked(one)}")
        return [*lines, ""]

    def _asked(self, one: FetchedTile) -> str:
        goal = f"{one.name}_words[0]" if self.of.served(one) else f"{one.name}[0, 0]"
        lows = [
            place_text(start, self.of.counters(one.loop), [(f"t{d}", step[d]) for d in self.of.turns(one)])
            for start, step in zip(one.tile.starts, one.tile.steps, strict=True)
        ]  # fmt: skip
        place = ", ".join(map(range_text, lows, self.of.word(one)))
        return f"{goal}.put({named(one.fact.load.access.tensor)}[{place}])"

    def edge(self, one: FetchedTile) -> list[str]:
        """A task for each core that is served: it keeps its tile and hands the word on."""
        served, turns = self.of.served(one), self.of.turns(one)
        extents = [self.of.grid[d] for d in served]
        names = [PLACES[d] for d in served]
        number = names[0] if len(names) == 1 else f"{names[0]} * {extents[1]} + {names[1]}"
        goal = ", ".join(PLACES[d] if d in served else "0" for d in range(2))
        events = math.prod(self.of.trips(one))
        over = ", ".join(["_", *(f"t{d}" for d in turns)])
        trips = ", ".join(map(str, [events, *(self.of.grid[d] for d in turns)]))
        mine = " and ".join(f"t{d} == {PLACES[d]}" for d in turns)
        part = lanes_text("word", one.tile, {d: PLACES[d] for d in self.of.side(one)})
        return [
            f"@task(grid={shape_text(extents)})",
            f"def edge_{one.name}({', '.join(names)}):",
            f"    for {over} in grid({trips}):",
            f"        word = {one.name}_words[{number}].get()",
            *([f"        if {mine}:"] if turns else []),
            f"        {'    ' if turns else ''}{one.name}[{goal}].put({part})",
            f"        if {number} + 1 < {math.prod(extents)}:",
            f"            {one.name}_words[{number} + 1].put(word)",
            "",
        ]  # fmt: skip

    def _gathered(self, one: StoredTile) -> int | None:
        """The tensor's dim along which the tiles of a row of cores lie side by side, if a word holds them."""
        moved = [d for d, step in enumerate(one.tile.steps) if len(step) > 1 and step[1]]
        if self.of.grid[1] == 1 or len(moved) != 1:
            return None
        word = one.tile.across(self.of.grid, [1])
        at = moved[0]
        bits = self.of.bits(one.store.access.tensor, word)
        return at if bits <= WIDEST_WORD and one.tile.steps[at][1] == one.tile.block[at] else None

    def way_out(self, one: StoredTile) -> list[str]:
        p, q = self.of.grid
        tensor = one.store.access.tensor
        self.of.check_word(tensor, one.tile.block)
        tile, at = self.of.kind(tensor, one.tile.block), self._gathered(one)
        word = tile if at is None else self.of.kind(tensor, one.tile.across(self.of.grid, [1]))
        return [f"{name} = Stream[{kind}][{size}]" for name, kind, size in (
            (f"out{one.at}", tile, f"{p}, {q}"), (f"down{one.at}", tile, f"{p}, {q}"), (f"row{one.at}", word, q),
        )]  # fmt: skip

    def drain(self, one: StoredTile) -> list[str]:
        """Results go down their columns, then along the last row."""
        (p, q), at, n = self.of.grid, self._gathered(one), one.at
        events = math.prod(self.of.trips(one))
        tensor = one.store.access.tensor
        lines = [
            f"@task(grid=({p}, {q}))",
            f"def drain{n}(px, py):",
            f"    for _ in range({events}):",
            "        for r in range(px + 1):",
            "            if r == 0:",
            f"                down{n}[px, py].put(out{n}[px, py].get())",
            "            else:",
            f"                down{n}[px, py].put(down{n}[px - 1, py].get())",
            "",
            f"@task(grid=({q},))",
            f"def gather{n}(py):",
            f"    for _ in range({events * p}):",
        ]
        places = {0: f"({p} - 1 - r)"}
        if at is None:
            lines += [
                "        for s in range(py + 1):",
                "            if s == 0:",
                f"                row{n}[py].put(down{n}[{p - 1}, py].get())",
                "            else:",
                f"                row{n}[py].put(row{n}[py - 1].get())",
            ]
            places[1] = f"({q} - 1 - s)"
        else:
            block, word = one.tile.block, one.tile.across(self.of.grid, [1])
            own = ", ".join(f"q{d} % {block[d]}" if d == at else f"q{d}" for d in range(len(word)))
            whole = ", ".join(f"q{d}" for d in range(len(word)))
            dtype = self.of.plan.facts.program.tensors[tensor].dtype
            picked = f"own[{own}] if q{at} // {block[at]} == py else word[{whole}]"
            lines += [
                f"        own = down{n}[{p - 1}, py].get()",
                f"        word: {dtype}[{', '.join(map(str, word))}] = 0",
                "        if py > 0:",
                f"            word = row{n}[py - 1].get()",
                f"        row{n}[py].put({stacked(word, picked)})",
            ]
        trips = [*self.of.trips(one), p, *([] if at is not None else [q])]
        lows = [
            place_text(start, self.of.counters(one.loop), [(t, step[d]) for d, t in places.items() if d < len(step)])
            for start, step in zip(one.tile.starts, one.tile.steps, strict=True)
        ]
        sizes = one.tile.block if at is None else one.tile.across(self.of.grid, [1])
        place = ", ".join(map(range_text, lows, sizes))
        more = ["r"] if at is not None else ["r", "s"]
        return [
            *lines, "", "@task", f"def store_{tensor}():",
            f"    for {self.of.over(one.loop, *more)}({', '.join(map(str, trips))}):",
            f"        {named(tensor)}[{place}] = row{n}[{q - 1}].get()", "",
        ]  # fmt: skip
