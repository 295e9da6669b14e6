"""One nest on its way: takes tokens and blocks as they come, a stretch of iterations at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.stream import BlocksType
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.batch import Batch
from penstock.compiler.interpreter.control import Controls, Stretch
from penstock.compiler.interpreter.defined import Definedness
from penstock.compiler.interpreter.memory import Blocks, MemoryCells, TokenQueue
from penstock.compiler.interpreter.plan import NestPlan
from penstock.compiler.scalars.number_types import numpy_dtype

BACKLOG_BYTES = 1 << 25
"""A writer that is so far ahead of its reader lets others run first, so that memory stays within bounds."""


@dataclass
class Environment:
    """What a nest works on: the accelerator's channels and memories, and those of its task."""

    memories: dict[SSAValue, MemoryCells] = field(default_factory=dict[SSAValue, MemoryCells])
    external: set[SSAValue] = field(default_factory=set[SSAValue])
    fifos: dict[SSAValue, TokenQueue] = field(default_factory=dict[SSAValue, TokenQueue])
    blocks: dict[SSAValue, Blocks] = field(default_factory=dict[SSAValue, Blocks])
    strict: bool = True
    """Whether an undefined value that leaves a task is an error."""

    def fifo(self, channel: SSAValue) -> TokenQueue:
        return self.fifos.setdefault(channel, TokenQueue())

    def block_channel(self, channel: SSAValue) -> Blocks:
        assert isinstance(channel.type, BlocksType)
        return self.blocks.setdefault(channel, Blocks(channel.type.block))


class NestRun:
    """The run of a nest. The next stretch's control is known before its tokens are there."""

    def __init__(self, environment: Environment, op: nest.NestOp, task: str) -> None:
        self.environment, self.op = environment, op
        self.plan = NestPlan(op, task)
        self.total = op.iterations
        self.controls = Controls(self.plan)
        self.start = 0
        self.most: int | None = None
        """Iterations that are tried at once, where tokens come back to the nest."""
        self.control = self.controls.of(0, self.stop)
        self.tables: dict[SSAValue, Array] = {}
        self.first_block = {
            channel: self._blocks(channel).written if fills else self._blocks(channel).read
            for channel, fills in self.plan.block_channels
        }

    @property
    def finished(self) -> bool:
        return self.start == self.total

    @property
    def stop(self) -> int:
        whole = self.plan.stop(self.start)
        return whole if self.most is None else min(whole, self.start + self.most)

    @property
    def ready(self) -> bool:
        """Whether all tokens and blocks that the next stretch takes are there."""
        return not self._missing_tokens() and not self._missing_blocks()

    @property
    def crowded(self) -> bool:
        """Whether a reader is far behind."""
        filled = [self._blocks(channel) for channel, fills in self.plan.block_channels if fills]
        fifos = [self.environment.fifo(channel) for channel in self.plan.writes]
        return any(channel.bytes > BACKLOG_BYTES for channel in [*filled, *fifos])

    def step(self) -> None:
        """Run the next stretch."""
        plan, control, start, stop = self.plan, self.control, self.start, self.stop
        memories, bases = self._memories(), self._bases()
        defined = Definedness(control, memories, bases, start)
        if self.environment.strict:
            for op in plan.ops:
                leaves = isinstance(op, nest.StoreOp) and op.memory in self.environment.external
                if isinstance(op, nest.WriteOp) or (isinstance(op, nest.StoreOp) and leaves):
                    defined.check(op)
        batch = Batch(control, defined, memories, bases, self._tokens(), self._tables(memories))
        batch.run()
        for channel, ops in plan.writes.items():
            self.environment.fifo(channel).put(batch.written(ops))
        for channel, fills in plan.block_channels:
            first, blocks = self.first_block[channel], self._blocks(channel)
            if fills:
                blocks.keep(first + start // plan.inner, memories[channel])
                blocks.written = first + stop // plan.inner
            else:
                blocks.release(first + stop // plan.inner)
        self.start = stop
        if self.most is not None:
            self.most *= 2
        self.control = self._control()

    def shorten(self) -> bool:
        """Turn to those iterations whose tokens are there, in a circle of nests. Whether there are any."""
        if self.op.in_circle is None or self._missing_blocks():
            return False
        there = min((self._reaches(channel) for channel in self._missing_tokens()), default=0)
        if there == 0:
            return False
        self.most = there
        self.control = self._control()
        return True

    def _reaches(self, channel: SSAValue) -> int:
        """How many iterations of the stretch a channel has the tokens of."""
        ops, there = self.plan.reads[channel], self.environment.fifo(channel).count
        happens = np.stack([self.control.when(op.when) for op in ops], axis=1)
        return int((happens.sum(axis=1).cumsum() <= there).argmin())

    def explain(self) -> PenstockError:
        """Why the nest cannot go on though nobody else can."""
        reads: list[int] = []
        for channel in self._missing_tokens():
            ops, there = self.plan.reads[channel], self.environment.fifo(channel).count
            numbers = self.control.tokens(ops)
            reads += [int((numbers[:, column] >= there).argmax()) for column in range(len(ops))]
        if reads:
            what = f"iteration {self.start + min(reads)} reads a token that nobody wrote"
        else:
            channel = self._missing_blocks()[0]
            lacking = self._blocks(channel).written - self.first_block[channel]
            what = f"iteration {lacking * self.plan.inner} reads a block that nobody wrote"
        return PenstockError(
            code="broken-stream", what=what, where=self.plan.where, hint="this is a defect in a pass; please report it"
        )

    def _control(self) -> Stretch:
        return self.controls.of(self.start, self.stop) if not self.finished else self.control

    def _bases(self) -> Mapping[SSAValue, int]:
        """From where the cells of this stretch count; in a block channel its first block is the first."""
        counters, block = self.plan.counters(self.start), self.start // self.plan.inner
        return {
            memory: self.plan.base(memory, counters)
            - (block * self.plan.block_cells(memory) if memory in self.first_block else 0)
            for memory in self.plan.cells
        }

    def _blocks(self, channel: SSAValue) -> Blocks:
        return self.environment.block_channel(channel)

    def _missing_tokens(self) -> list[SSAValue]:
        reads = self.plan.reads.items()
        return [c for c, ops in reads if self.control.demand(ops) > self.environment.fifo(c).count]

    def _missing_blocks(self) -> list[SSAValue]:
        last = (self.stop - 1) // self.plan.inner
        emptied = [channel for channel, fills in self.plan.block_channels if not fills]
        return [c for c in emptied if self.first_block[c] + last >= self._blocks(c).written]

    def _memories(self) -> Mapping[SSAValue, MemoryCells]:
        """The plain memories, and of every block channel the blocks of this stretch."""
        used = {m: self.environment.memories[m] for m in self.plan.cells if not isinstance(m.type, BlocksType)}
        first = self.start // self.plan.inner
        count = (self.stop - 1) // self.plan.inner - first + 1
        for channel, start in self.first_block.items():
            used[channel] = self._blocks(channel).window(start + first, count)
        return used

    def _tables(self, memories: Mapping[SSAValue, MemoryCells]) -> Mapping[SSAValue, Array]:
        """What is only loaded, as cells; a memory's are the same in all stretches."""
        for memory in self.plan.loads:
            if memory not in self.plan.stores and (memory not in self.tables or memory in self.first_block):
                self.tables[memory] = self.plan.cells[memory].table(memories[memory].data)
        return self.tables

    def _tokens(self) -> Mapping[Operation, Array]:
        """The tokens of each read, taken off the channels."""
        taken: dict[Operation, Array] = {}
        for channel, ops in self.plan.reads.items():
            demand = self.control.demand(ops)
            tokens = self.environment.fifo(channel).take(demand) if demand else _no_tokens(ops[0])
            numbers = self.control.tokens(ops) if len(ops) > 1 else None
            for column, op in enumerate(ops):
                if numbers is None:
                    taken[op] = tokens
                else:
                    taken[op] = tokens[numbers[self.control.when(op.when), column]]
        return taken


def _no_tokens(op: nest.ReadOp) -> Array:
    kind = op.result.type
    return np.zeros((0, *kind.get_shape()), numpy_dtype(kind.element_type))
