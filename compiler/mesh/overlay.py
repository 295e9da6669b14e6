"""A plan as hardware: a task program (`penstock.tasks`) with a task a core, links as streams, scratchpads as memories.

What is built so far are products of matrices whose blocks a core multiplies at once, on two dims of cores: one operand
is broadcast along rows, the other along columns, handed on from core to core. What a plan hoists stays in the core's
memory. Sums leave down the columns and are gathered into rows. From the program on, everything is what task programs
get: check, interpreter, cycles, C++, SystemVerilog.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.facts import LoadFacts
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.mapping import INSIDE, MeshPlan
from penstock.compiler.mesh.program import MATRIX, MeshCompute, MeshLoop, MeshStore, walk

_BY_THE_WAY = ("full", "cast", "add", MATRIX)
_TEMPLATE = '''"""{title}. Made by penstock mesh: a task a core."""

# pyright: reportInvalidTypeForm=false

from penstock.tasks import Stream, grid, {imports}, matmul, program, stack, task

P, Q = {p}, {q}
BM, BN, BK = {bm}, {bn}, {bk}
M, N, K = {m}, {n}, {k}


@program
def mesh({a}: {ta}[M, K], {b}: {tb}[K, N], {c}: {tc}[M, N]):
    words_a, words_b = Stream[{ta}, (P * BM, BK)][P], Stream[{tb}, (BK, Q * BN)][Q]
    x_tiles, y_tiles = Stream[{ta}, (BM, BK)][P, Q], Stream[{tb}, (BK, BN)][P, Q]
    sums, down = Stream[{tc}, (BM, BN)][P, Q], Stream[{tc}, (BM, BN)][P, Q]
    rows = Stream[{tc}, Q * BN][Q]

    @task
    def load_a():
        for {loops}, k in grid({trips_a}, K // BK):
            words_a[0].put({a}[{row} * P * BM : {row} * P * BM + P * BM, k * BK : k * BK + BK])

    @task
    def load_b():
        for {loops}, k in grid({trips_b}, K // BK):
            words_b[0].put({b}[k * BK : k * BK + BK, {column} * Q * BN : {column} * Q * BN + Q * BN])

    @task(grid=(P,))
    def edge_a(x):
        for _ in range({times_a} * (K // BK)):
            word = words_a[x].get()
            x_tiles[x, 0].put(word[x * BM : x * BM + BM, 0:BK])
            if x + 1 < P:
                words_a[x + 1].put(word)

    @task(grid=(Q,))
    def edge_b(y):
        for _ in range({times_b} * (K // BK)):
            word = words_b[y].get()
            y_tiles[0, y].put(word[0:BK, y * BN : y * BN + BN])
            if y + 1 < Q:
                words_b[y + 1].put(word)

    @task(grid=(P, Q))
    def core(x, y):
{memories}        for {loops} in grid({trips}):
            total: {tc}[BM, BN] = 0
            for k in range(K // BK):
{fetch_a}
{fetch_b}
                total += matmul(a_tile, b_tile)
            sums[x, y].put(total)

    @task(grid=(P, Q))
    def drain(x, y):
        for _ in range({waves}):
            for r in range(x + 1):
                if r == 0:
                    down[x, y].put(sums[x, y].get())
                else:
                    down[x, y].put(down[x - 1, y].get())

    @task(grid=(Q,))
    def gather(y):
        own: {tc}[BM, BN] = 0
        for _, n in grid({waves} * P, BM):
            if n == 0:
                own = down[P - 1, y].get()
            part = {part}
            row: {tc}[Q * BN] = 0
            if y > 0:
                row = rows[y - 1].get()
            rows[y].put(stack([part[q % BN] if q // BN == y else row[q] for q in range(Q * BN)]))

    @task
    def store():
        for {loops}, r, n in grid({trips}, P, BM):
            {c}[({row} * P + P - 1 - r) * BM + n, {column} * Q * BN : {column} * Q * BN + Q * BN] = rows[Q - 1].get()
'''


@dataclass(frozen=True)
class _Operand:
    """A load: the dim of the cores that its tiles depend on, and the levels of loops through which a tile is kept."""

    fact: LoadFacts
    along: int
    kept: tuple[int, ...]


@dataclass(frozen=True)
class OverlayProgram:
    plan: MeshPlan
    machine: Machine

    def text(self) -> str:
        """The program; an error says what of a plan is not built yet."""
        facts, mapping = self.plan.facts, self.plan.mapping
        rounds, store = self._only_a_product()
        a, b = (self._operand(at) for at in range(2))
        if (a.along, b.along) != (0, 1) and (a.along, b.along) != (1, 0):
            raise self._not_built("both operands depend on one dim of the cores", "let rows and columns take one each")
        (bm, bk), (_, bn) = a.fact.load.access.shape, b.fact.load.access.shape
        p, q = mapping.cores[a.along], mapping.cores[b.along]
        row, column = mapping.spatial[a.along], mapping.spatial[b.along]
        assert row is not None
        assert column is not None
        for dim, wide in ((row, p), (column, q)):
            if mapping.extents[dim] % wide:
                raise self._not_built(
                    f"{mapping.extents[dim]} blocks on {wide} cores leave an edge",
                    "let sizes be multiples of all cores' blocks",
                )  # fmt: skip
        names = [one.load.access.tensor for one in facts.loads] + [store.access.tensor]
        ta, tb, tc = (facts.program.tensors[name].dtype for name in names)
        if (ta, tb, tc) != ("int8", "int8", "int32"):
            raise self._not_built(f"the tensors are {ta}, {tb} and {tc}", "give int8, int8 and int32 by --set")
        level = {dim: f"i{at}" for at, dim in enumerate(mapping.order)}
        loops = ", ".join(level.values())
        self._check_places(a, b, store, row, column, (bm, bn, bk), mapping.extents[column] * bn, rounds * bk)
        return _TEMPLATE.format(
            title=f"{facts.program.name} on {self.machine.title}", imports="int8, int32", p=p, q=q, bm=bm, bn=bn, bk=bk,
            m=mapping.extents[row] * bm, n=mapping.extents[column] * bn, k=rounds * bk,
            a=names[0], b=names[1], c=names[2], ta=ta, tb=tb, tc=tc, loops=loops, row=level[row], column=level[column],
            trips=", ".join(map(str, mapping.trips)), waves=mapping.waves,
            trips_a=", ".join(map(str, self._fetched(a))), trips_b=", ".join(map(str, self._fetched(b))),
            times_a=math.prod(self._fetched(a)), times_b=math.prod(self._fetched(b)),
            memories=self._memory(a, "a", ta, "BM, BK") + self._memory(b, "b", tb, "BK, BN"),
            fetch_a=self._fetch(a, "a", "x_tiles[x, y]", "y + 1 < Q", "x_tiles[x, y + 1]", "BM, BK", ta),
            fetch_b=self._fetch(b, "b", "y_tiles[x, y]", "x + 1 < P", "y_tiles[x + 1, y]", "BK, BN", tb),
            part=" else ".join([*(f"own[{n}, :] if n == {n}" for n in range(bm - 1)), f"own[{bm - 1}, :]"]),
        )  # fmt: skip

    def _only_a_product(self) -> tuple[int, MeshStore]:
        program = self.plan.facts.program
        statements = list(walk(program.body))
        stores = [s for s in statements if isinstance(s, MeshStore)]
        loops = [s for s in statements if isinstance(s, MeshLoop)]
        other = next((s.kind for s in statements if isinstance(s, MeshCompute) and s.kind not in _BY_THE_WAY), None)
        if other or len(stores) != 1 or len(loops) != 1 or len(self.plan.facts.loads) != 2 or loops[0].extent.terms:
            what = f"the kernel computes {other}" if other else "the kernel is no product of two matrices"
            raise self._not_built(what, "one loop with two loads and a dot, then a store")
        mat = self.machine.unit("mat")
        dot = next(s for s in statements if isinstance(s, MeshCompute) and s.kind == MATRIX)
        sizes = (*dot.shape, dot.inner)
        if mat is None or len(self.machine.extents) != 2 or sizes != mat.shape:
            unit = "x".join(map(str, mat.shape)) if mat else "nothing"
            raise self._not_built(
                f"blocks are {'x'.join(map(str, sizes))}, and a core multiplies {unit} at once",
                "give such blocks by --set",
            )  # fmt: skip
        return loops[0].extent.const, stores[0]

    def _operand(self, at: int) -> _Operand:
        fact, load, mapping = self.plan.facts.loads[at], self.plan.loads[at], self.plan.mapping
        along = [d for d, dim in enumerate(mapping.spatial) if dim in fact.depends]
        if len(along) != 1 or load.share != (1 - along[0],) or not fact.rounds:
            raise self._not_built(f"{fact.load.access.tensor} is not broadcast along one dim of the cores", "", fact)
        first = len(mapping.order) if load.level == INSIDE else load.level
        kept = tuple(
            level
            for level in range(first, len(mapping.order))
            if mapping.order[level] not in fact.depends and mapping.trips[level] > 1
        )
        return _Operand(fact, along[0], kept)

    def _check_places(
        self, a: _Operand, b: _Operand, store: MeshStore, row: int, column: int, block: tuple[int, int, int], n: int,
        k: int,
    ) -> None:  # fmt: skip
        """Whole matrices, row by row: what the program's slices say is what the kernel's places say."""
        grid, program = self.plan.facts.program.grid, self.plan.facts.program
        counters = {grid[row].counter: 0, grid[column].counter: 1}
        loop = next(s.counter for s in walk(program.body) if isinstance(s, MeshLoop))
        counters[loop] = 2
        bm, bn, bk = block
        wanted = (
            (a.fact.load.access, (bm * k, 0, bk), (k, 1)),
            (b.fact.load.access, (0, bn, bk * n), (n, 1)),
            (store.access, (bm * n, bn, 0), (n, 1)),
        )
        for access, steps, strides in wanted:
            found = [0, 0, 0]
            for counter, step in access.base.terms:
                if counter in counters:
                    found[counters[counter]] = step
            sized = tuple(s for s, size in zip(access.strides, access.shape, strict=True) if size > 1)
            expected = tuple(s for s, size in zip(strides, access.shape, strict=True) if size > 1)
            if access.mask or access.base.const or tuple(found) != steps or sized != expected:
                raise self._not_built(f"{access.tensor} is not read as a whole matrix, row by row", "leave out masks")

    def _fetched(self, one: _Operand) -> list[int]:
        """How often each loop goes round for what a load fetches."""
        return [1 if level in one.kept else trip for level, trip in enumerate(self.plan.mapping.trips)]

    def _held(self, one: _Operand) -> tuple[int, list[tuple[int, int]]]:
        """How many strips of K a core keeps, and by which loops, with their strides, they are counted."""
        size, found = 1, list[tuple[int, int]]()
        if one.kept:
            for level in range(len(self.plan.mapping.order) - 1, min(one.kept), -1):
                if level not in one.kept and self.plan.mapping.trips[level] > 1:
                    found.append((level, size))
                    size *= self.plan.mapping.trips[level]
        return size, found

    def _memory(self, one: _Operand, name: str, dtype: str, shape: str) -> str:
        strips = self._held(one)[0]
        return f"        kept_{name}: {dtype}[{strips} * (K // BK), {shape}] = 0\n" if one.kept else ""

    def _fetch(self, one: _Operand, name: str, came: str, more: str, to: str, shape: str, dtype: str) -> str:
        lines = [f"{name}_tile = {came}.get()", f"if {more}:", f"    {to}.put({name}_tile)"]
        if one.kept:
            new = " and ".join(f"i{level} == 0" for level in one.kept)
            place = " + ".join([*(f"i{level} * {step} * (K // BK)" for level, step in self._held(one)[1]), "k"])
            lines = [
                f"{name}_tile: {dtype}[{shape}] = 0",
                f"if {new}:",
                f"    {name}_tile = {came}.get()",
                f"    kept_{name}[{place}, :, :] = {name}_tile",
                f"    if {more}:",
                f"        {to}.put({name}_tile)",
                "else:",
                f"    {name}_tile = kept_{name}[{place}, :, :]",
            ]
        return "\n".join(" " * 16 + line for line in lines)

    def _not_built(self, what: str, hint: str, fact: LoadFacts | None = None) -> PenstockError:
        return PenstockError(
            code="mesh-not-built", what=what, where=fact.load.where if fact else f"mesh {self.machine.name}",
            limit="hardware is made of products of matrices in blocks of a core's multipliers",
            hint=hint or "take another of the plans",
        )  # fmt: skip
