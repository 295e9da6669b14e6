"""What the interpreter knows of a nest before it runs: accesses as cells, and which operations form a cycle."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import networkx as nx
import numpy as np
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from penstock.compiler.dialects import nest
from penstock.compiler.dialects.stream import BlocksType
from penstock.compiler.dialects.types import memref_type, vector_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.cells import CellAccess, Cells, Window
from penstock.compiler.interpreter.lane_values import LANE_VALUES
from penstock.compiler.interpreter.memory import word_shape
from penstock.compiler.scalars.number_types import numpy_dtype

STRETCH_BYTES = 1 << 26
"""About what the values of one stretch of iterations may take."""
INDEX_BYTES = 64
"""What it costs to know one cell of one access: numbers, versions and the sort that finds them."""


@dataclass(frozen=True)
class Component:
    """Operations that need each other through a memory (`cyclic`), or just one that does not."""

    ops: tuple[Operation, ...]
    cyclic: bool


class NestPlan:
    """The static side of one nest."""

    def __init__(self, op: nest.NestOp, task: str) -> None:
        self.op = op
        self.where = f"{task}.{op.sym_name.data}"
        self.ops = list(op.body.block.ops)
        self.position = {o: i for i, o in enumerate(self.ops)}
        self.inner = math.prod(op.trips[op.block_loops.data :])
        """Iterations a block."""
        self.loads: dict[SSAValue, list[nest.LoadOp]] = {}
        self.stores: dict[SSAValue, list[nest.StoreOp]] = {}
        self.reads: dict[SSAValue, list[nest.ReadOp]] = {}
        self.writes: dict[SSAValue, list[nest.WriteOp]] = {}
        for o in self.ops:
            match o:
                case nest.LoadOp():
                    self.loads.setdefault(o.memory, []).append(o)
                case nest.StoreOp():
                    self.stores.setdefault(o.memory, []).append(o)
                case nest.ReadOp():
                    self.reads.setdefault(o.stream, []).append(o)
                case nest.WriteOp():
                    self.writes.setdefault(o.stream, []).append(o)
                case nest.SelectOp():
                    pass
                case _ if type(o) not in LANE_VALUES:
                    raise PenstockError(code="broken-ir", what=f"{o.name} inside a nest", where=self.where)
                case _:
                    pass
        if both := self.reads.keys() & self.writes.keys():
            names = sorted(channel.name_hint or str(channel) for channel in both)
            raise PenstockError(
                code="broken-ir", what=f"a nest both writes and reads {', '.join(names)}", where=self.where
            )
        self.cells: dict[SSAValue, Cells] = {}
        self.access: dict[nest.LoadOp | nest.StoreOp, CellAccess] = {}
        for memory in [*self.loads, *(m for m in self.stores if m not in self.loads)]:
            self._cut(memory)

    def _cut(self, memory: SSAValue) -> None:
        accesses = [*self.loads.get(memory, []), *self.stores.get(memory, [])]
        kind = memref_type(memory.type.block if isinstance(memory.type, BlocksType) else memory)
        word, shape = word_shape(kind), (*kind.get_shape(), *word_shape(kind))
        loops = len(self.op.trips)
        windows = [Window.of(a.address.data, loops, _lanes(a), word) for a in accesses]
        if isinstance(memory.type, BlocksType):
            shape = (1, *shape)
            windows = [window.in_block(self._block_factors()) for window in windows]
        cells = self.cells[memory] = Cells.of(shape, windows)
        for access, window in zip(accesses, windows, strict=True):
            self.access[access] = CellAccess(cells, window, _lanes(access))

    def _block_factors(self) -> tuple[int, ...]:
        """The number of the block as a sum over the loop counters."""
        lead, trips = self.op.block_loops.data, self.op.trips
        return tuple(math.prod(trips[i + 1 : lead]) if i < lead else 0 for i in range(len(trips)))

    def block_cells(self, channel: SSAValue) -> int:
        """How many cells a block has."""
        return math.prod(self.cells[channel].counts[1:])

    @property
    def block_channels(self) -> list[tuple[SSAValue, bool]]:
        """The block channels, and whether the nest fills them (or empties)."""
        used = [*self.stores, *(m for m in self.loads if m not in self.stores)]
        return [(m, m in self.stores) for m in used if isinstance(m.type, BlocksType)]

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """The operations in an order in which values are there before they are used."""
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(range(len(self.ops)))
        for at, o in enumerate(self.ops):
            owners = (v.owner for v in o.operands if isinstance(v, OpResult))
            graph.add_edges_from((self.position[owner], at) for owner in owners if owner in self.position)
        for memory, loads in self.loads.items():
            for store in self.stores.get(memory, []):
                graph.add_edges_from((self.position[store], self.position[load]) for load in loads)
        whole = nx.condensation(graph)
        found: list[Component] = []
        for number in nx.topological_sort(whole):
            members = sorted(cast("set[int]", whole.nodes[number]["members"]))
            found.append(Component(tuple(self.ops[i] for i in members), len(members) > 1))
        return tuple(found)

    @cached_property
    def cut_loop(self) -> tuple[int, int, int]:
        """How the iterations are run in stretches whose values stay within bounds.

        A stretch is some trips of one loop with all that is inside it: that loop, the trips, the iterations a trip.
        """
        most = max(1, STRETCH_BYTES // max(1, sum(self._bytes(o) for o in self.ops)))
        inside, loop = 1, len(self.op.trips)
        while loop > 0 and inside * self.op.trips[loop - 1] <= most:
            loop -= 1
            inside *= self.op.trips[loop]
        if loop == 0:
            return 0, 1, inside
        trip = self.op.trips[loop - 1]
        pieces = -(-trip // max(1, most // inside))
        return loop - 1, -(-trip // pieces), inside

    def stop(self, start: int) -> int:
        """Where the stretch ends that begins at an iteration, which lies at most in the midst of a trip."""
        loop, trips, inside = self.cut_loop
        if inside == self.op.iterations:
            return inside
        trip = self.op.trips[loop]
        return start - start % inside + min(trips, trip - start // inside % trip) * inside

    def is_whole(self, start: int, stop: int) -> bool:
        """Whether a stretch is one of those that the nest is cut into."""
        return start % self.cut_loop[2] == 0 and stop == self.stop(start)

    def counters(self, iteration: int) -> tuple[int, ...]:
        trips = self.op.trips
        return tuple(iteration // math.prod(trips[i + 1 :]) % trip for i, trip in enumerate(trips))

    def likeness(self, start: int, stop: int) -> Hashable:
        """Stretches with equal likeness have equal control, but for where in each memory they are.

        They are as long as each other, their guards hold in the same places, all accesses to a memory moved by
        the same distance, and what is compared with padding is the same.
        """
        loop, _, inside = self.cut_loop
        first = self.counters(start)
        if inside == self.op.iterations:
            return None
        trips = np.arange(first[loop], first[loop] + (stop - start) // inside)
        guards: list[bytes | bool] = []
        for term in self.terms:
            if term.loop < loop:
                guards.append(term.holds(first))
            elif term.loop == loop:
                guards.append(bytes(term.of(trips)))
        moved = [a.number(first) - self.base(o.memory, first) for o, a in self.access.items()]
        places = [o.place.data.eval(first, []) for o in self.ops if isinstance(o, nest.WithinOp)]
        return stop - start, tuple(guards), tuple(moved), tuple(places)

    @cached_property
    def terms(self) -> list[nest.Term]:
        guards = (o.properties.get("when") for o in self.ops)
        return list(dict.fromkeys(term for g in guards if isinstance(g, nest.GuardAttr) for term in g.terms))

    def base(self, memory: SSAValue, counters: Sequence[int]) -> int:
        """The cell from which those of a stretch are counted that begins with these counters."""
        accesses = self.loads.get(memory) or self.stores[memory]
        return self.access[accesses[0]].number(counters)

    def _bytes(self, op: Operation) -> int:
        total = sum(_size(v.type) for v in op.results)
        match op:
            case nest.LoadOp() | nest.StoreOp():
                return 2 * total + INDEX_BYTES * self.access[op].count
            case nest.MapOp():
                lanes = math.prod(vector_type(op.result).get_shape())
                return 2 * total + 8 * lanes * len(list(op.body.block.ops))
            case _:
                return 2 * total


def _lanes(op: nest.LoadOp | nest.StoreOp) -> tuple[int, ...]:
    return tuple(vector_type(op.result if isinstance(op, nest.LoadOp) else op.value).get_shape())


def _size(kind: Attribute) -> int:
    vector = vector_type(kind)
    return math.prod(vector.get_shape()) * numpy_dtype(vector.element_type).itemsize
