"""A plan as its program needs it: which cores work, where tiles lie, what one word carries, what is not built."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.facts import LoadFacts
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.mapping import INSIDE, LoadPlan, MeshPlan
from penstock.compiler.mesh.overlay.slices import (
    CounterNames,
    NotSliced,
    TensorDims,
    TileSlice,
    dims_of,
    shape_text,
    slice_of,
)
from penstock.compiler.mesh.overlay.values import WORDS
from penstock.compiler.mesh.program import MATRIX, MeshAccess, MeshCompute, MeshLoad, MeshLoop, MeshStore, walk
from penstock.compiler.tasks.kinds import bits_of
from penstock.compiler.tasks.words import WIDEST_WORD

_HELD = {"int8": "i8", "int32": "i32", "float32": "f32"}
PLACES = ("px", "py")
_OWN = re.compile(r"(i|k|v|l|out|down|row|q|drain|gather)\d+|r|s|t|word|own|px|py|core|mesh|grid|program|task|range")
"""Names of the program itself; a tensor of such a name gets another."""
_OTHER = "give another block by --set, or take another of the plans"


@dataclass(frozen=True)
class FetchedTile:
    """A load: which plan it follows, where its tiles lie, and the loops through which a tile is kept."""

    at: int
    fact: LoadFacts
    plan: LoadPlan
    tile: TileSlice
    kept: tuple[int, ...]
    loop: MeshLoop | None
    """The loop in whose rounds it is fetched anew."""

    @property
    def name(self) -> str:
        return f"l{self.at}"


@dataclass(frozen=True)
class StoredTile:
    at: int
    store: MeshStore
    tile: TileSlice
    loop: MeshLoop | None


@dataclass(frozen=True)
class BuiltPlan:
    plan: MeshPlan
    machine: Machine

    def unit_note(self) -> str:
        """What the hardware of a core multiplies at once, where that is more than its description says."""
        mat, program = self.machine.unit("mat"), self.plan.facts.program
        sizes = [(*s.shape, s.inner) for s in walk(program.body) if isinstance(s, MeshCompute) and s.kind == MATRIX]
        if mat is None or all(math.prod(one) <= math.prod(mat.shape) for one in sizes):
            return ""
        most = max(sizes, key=math.prod)
        return (
            f"a core multiplies {'x'.join(map(str, most))} at once, where {self.machine.name} has "
            f"{'x'.join(map(str, mat.shape))}"
        )

    @cached_property
    def grid(self) -> tuple[int, ...]:
        """The cores that work, as two dims."""
        sizes = [n if dim is not None else 1 for n, dim in zip(self.cores, self.spatial, strict=True)]
        return (*sizes, 1)[:2]

    @property
    def cores(self) -> tuple[int, ...]:
        return self.plan.mapping.cores

    @property
    def spatial(self) -> tuple[int | None, ...]:
        return self.plan.mapping.spatial

    @cached_property
    def levels(self) -> CounterNames:
        """The counter of every dim of the grid, as the first core of a wave has it; loops of one turn stand still."""
        mapping, grid = self.plan.mapping, self.plan.facts.program.grid
        return {
            grid[dim].counter: (f"i{level}", mapping.width(dim))
            for level, dim in enumerate(mapping.order) if mapping.trips[level] > 1
        }  # fmt: skip

    @cached_property
    def within(self) -> dict[int, MeshLoop]:
        """The loop around every load and store, by its place in the kernel."""
        return {
            id(inner): loop
            for loop in walk(self.plan.facts.program.body) if isinstance(loop, MeshLoop)
            for inner in loop.body if isinstance(inner, MeshLoad | MeshStore)
        }  # fmt: skip

    @cached_property
    def dims(self) -> dict[str, TensorDims]:
        program = self.plan.facts.program
        found: dict[str, list[MeshAccess]] = {}
        for one in walk(program.body):
            if isinstance(one, MeshLoad | MeshStore):
                found.setdefault(one.access.tensor, []).append(one.access)
        for name in found:
            if program.tensors[name].dtype not in _HELD:
                wide = " ".join(f"--set {n}=float32" for n in found if program.tensors[n].dtype not in _HELD)
                raise self.not_built(f"{name} is {program.tensors[name].dtype}", f"give {wide}")
        return {name: dims_of(program, name, rows) for name, rows in found.items()}

    def slice(self, access: MeshAccess) -> TileSlice:
        try:
            return slice_of(self.plan.facts.program, access, self.dims[access.tensor], self.plan.mapping)
        except NotSliced as error:
            raise NotSliced(f"{access.tensor}: {error}") from None

    @cached_property
    def loads(self) -> list[FetchedTile]:
        mapping, found = self.plan.mapping, list[FetchedTile]()
        for at, (fact, load) in enumerate(zip(self.plan.facts.loads, self.plan.loads, strict=True)):
            first = len(mapping.order) if load.level == INSIDE else load.level
            kept = tuple(
                level
                for level in range(first, len(mapping.order))
                if mapping.order[level] not in fact.depends and mapping.trips[level] > 1
            )
            loop = self.within.get(id(fact.load)) if fact.rounds else None
            found.append(FetchedTile(at, fact, load, self.slice(fact.load.access), kept, loop))
        return found

    @cached_property
    def stores(self) -> list[StoredTile]:
        stores = [s for s in walk(self.plan.facts.program.body) if isinstance(s, MeshStore)]
        return [StoredTile(i, s, self.slice(s.access), self.within.get(id(s))) for i, s in enumerate(stores)]

    def check(self) -> None:
        mapping, program = self.plan.mapping, self.plan.facts.program
        for dim in set(mapping.spatial) - {None}:
            assert dim is not None
            if mapping.extents[dim] % mapping.width(dim):
                raise self.not_built(
                    f"{mapping.extents[dim]} blocks on {mapping.width(dim)} cores leave an edge",
                    "let sizes be multiples of all cores' blocks",
                )  # fmt: skip
        twice = [s.store.access.tensor for s in self.stores]
        read = {one.fact.load.access.tensor for one in self.loads}
        for name in program.written:
            if twice.count(name) > 1 or name in read:
                raise self.not_built(f"{name} is met by more than one store, or read too", "use a tensor of its own")

    def kind(self, tensor: str, block: Sequence[int]) -> str:
        return f"{self.plan.facts.program.tensors[tensor].dtype}, {shape_text(block)}"

    def served(self, one: FetchedTile) -> list[int]:
        """The dims of the cores along which tiles are fetched one by one."""
        return [d for d in range(len(self.cores)) if d not in one.plan.share and self.grid[d] > 1]

    def groups(self, one: FetchedTile) -> int:
        return math.prod(self.grid[d] for d in self.served(one))

    def side(self, one: FetchedTile) -> tuple[int, ...]:
        """Those of them whose tiles one word has: as many as fit; the others take turns."""
        served = self.served(one)
        choices = [tuple(served[n:]) for n in range(len(served) + 1)]
        tensor = one.fact.load.access.tensor
        fitting = [
            dims for dims in choices
            if one.tile.dense(self.grid, dims) and self.bits(tensor, one.tile.across(self.grid, dims)) <= WIDEST_WORD
        ]  # fmt: skip
        if not fitting:
            self.check_word(tensor, one.tile.block, one.fact)
        return fitting[0]

    def turns(self, one: FetchedTile) -> list[int]:
        side = self.side(one)
        return [d for d in self.served(one) if d not in side]

    def word(self, one: FetchedTile) -> tuple[int, ...]:
        return one.tile.across(self.grid, self.side(one))

    def bits(self, tensor: str, word: Sequence[int]) -> int:
        return math.prod(word) * bits_of(_HELD[self.plan.facts.program.tensors[tensor].dtype])

    def check_word(self, tensor: str, word: Sequence[int], fact: LoadFacts | None = None) -> None:
        if self.bits(tensor, word) > WIDEST_WORD:
            raise self.not_built(
                f"a tile of {tensor} is {self.bits(tensor, word)} bits, and a word of memory at most {WIDEST_WORD}",
                "use smaller blocks", fact,
            )  # fmt: skip

    def trips(self, one: FetchedTile | StoredTile) -> list[int]:
        """How often each loop goes round for what a load fetches or a store writes."""
        kept = one.kept if isinstance(one, FetchedTile) else ()
        rounds = [] if one.loop is None else [self.rounds(one)]
        return [1 if level in kept else trip for level, trip in enumerate(self.plan.mapping.trips)] + rounds

    def rounds(self, one: FetchedTile | StoredTile) -> int:
        return 1 if one.loop is None else one.loop.extent.extremes(self.plan.facts.program.trips)[1]

    def over(self, loop: MeshLoop | None, *more: str) -> str:
        """A loop over waves, rounds and what else there is."""
        names = [f"i{level}" for level in range(len(self.plan.mapping.order))]
        names += [] if loop is None else [f"k{loop.counter}"]
        return f"{', '.join([*names, *more])} in grid"

    def counters(self, loop: MeshLoop | None) -> CounterNames:
        return {**self.levels, **({} if loop is None else {loop.counter: (f"k{loop.counter}", 1)})}

    def not_built(self, what: str, hint: str = "", fact: LoadFacts | None = None) -> PenstockError:
        return PenstockError(
            code="mesh-not-built", what=what, where=fact.load.where if fact else f"mesh {self.machine.name}",
            limit="hardware is made of plans whose cores all work, on tiles that are slices of tensors",
            hint=hint or _OTHER,
        )  # fmt: skip


def named(tensor: str) -> str:
    return f"{tensor}_" if _OWN.fullmatch(tensor) or tensor in WORDS else tensor
