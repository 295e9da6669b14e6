"""Nests by hand: a top with one task, from a few words each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, MemRefType, ModuleOp, StringAttr, VectorType, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.affine import linear_sum
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr, Loop, Term

Terms = tuple[tuple[int, str, int], ...]
Address = Sequence[tuple[Sequence[int], int]]
"""For each dim: the factor of each counter, and the origin."""


def when(terms: Terms) -> GuardAttr:
    return GuardAttr(tuple(Term(*term) for term in terms)) if terms else ALWAYS


def lanes(*shape: int) -> VectorType:
    return VectorType(i32, list(shape))


@dataclass
class Body:
    """The body of one nest, an operation a call."""

    trips: tuple[int, ...]
    block_loops: int = 0
    block: Block = field(default_factory=Block)

    def read(self, channel: SSAValue, guard: Terms = ()) -> SSAValue:
        return self._add(nest.ReadOp(channel, when(guard)))

    def write(self, value: SSAValue, channel: SSAValue, guard: Terms = ()) -> None:
        self.block.add_op(nest.WriteOp(value, channel, when(guard)))

    def load(self, memory: SSAValue, address: Address, shape: Sequence[int], guard: Terms = ()) -> SSAValue:
        return self._add(nest.LoadOp(memory, self._map(address), when(guard), lanes(*shape)))

    def store(self, value: SSAValue, memory: SSAValue, address: Address, guard: Terms = ()) -> None:
        self.block.add_op(nest.StoreOp(value, memory, self._map(address), when(guard)))

    def select(self, inside: SSAValue, outside: SSAValue, guard: Terms) -> SSAValue:
        return self._add(nest.SelectOp(inside, outside, when(guard)))

    def constant(self, value: int, shape: Sequence[int]) -> SSAValue:
        return self._add(nest.ConstantOp(IntegerAttr(value, i32), lanes(*shape)))

    def mix(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """3a + b: tells the operands apart, and every step from every other."""
        return self._both(a, b, lambda x, y, three: [p := arith.MuliOp(x, three), arith.AddiOp(p, y)])

    def divide(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._both(a, b, lambda x, y, _: [arith.DivSIOp(x, y)])

    def _both(
        self, a: SSAValue, b: SSAValue, build: Callable[[SSAValue, SSAValue, SSAValue], list[Operation]]
    ) -> SSAValue:
        body = Block(arg_types=[i32, i32])
        three = arith.ConstantOp(IntegerAttr(3, i32))
        ops = build(body.args[0], body.args[1], three.result)
        body.add_ops([three, *ops, nest.YieldOp(ops[-1].results[0])])
        assert isinstance(a.type, VectorType)
        whole = AffineMap.identity(len(a.type.get_shape()))
        return self._add(nest.MapOp([a, b], [whole, whole], a.type, Region(body)))

    def done(self, name: str = "nest") -> nest.NestOp:
        loops = [Loop(f"l{i}", trip) for i, trip in enumerate(self.trips)]
        return nest.NestOp(name, loops, Region(self.block), self.block_loops)

    def _map(self, address: Address) -> AffineMap:
        sums = [linear_sum([(i, f) for i, f in enumerate(factors) if f]) + origin for factors, origin in address]
        return AffineMap(len(self.trips), 0, tuple(sums))

    def _add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]


def buffer(*shape: int, name: str = "buffer") -> stream.BufferOp:
    op = stream.BufferOp(name, MemRefType(i32, list(shape)))
    op.result.name_hint = name
    return op


def fifo(*shape: int, name: str = "fifo") -> stream.StreamOp:
    op = stream.StreamOp(name, stream.StreamType.of(lanes(*shape), 2))
    op.result.name_hint = name
    return op


def blocks(*shape: int, name: str = "blocks") -> stream.BlocksOp:
    op = stream.BlocksOp(name, stream.BlocksType.of(MemRefType(i32, list(shape)), 2))
    op.result.name_hint = name
    return op


@dataclass
class Top:
    """An accelerator with named memories; what is in them is given to the interpreter by these names."""

    block: Block = field(default_factory=Block)
    names: list[str] = field(default_factory=list[str])
    kinds: list[str] = field(default_factory=list[str])

    def memory(self, name: str, kind: str, shape: Sequence[int], word: Sequence[int] = ()) -> SSAValue:
        element = lanes(*word) if word else i32
        argument = self.block.insert_arg(MemRefType(element, list(shape)), len(self.block.args))
        argument.name_hint = name
        self.names.append(name)
        self.kinds.append(kind)
        return argument

    def channel(self, op: stream.StreamOp | stream.BlocksOp) -> SSAValue:
        self.block.add_op(op)
        return op.result

    def task(self, name: str, ops: Sequence[Operation]) -> None:
        self.block.add_op(stream.TaskOp(name, name, Region(Block(ops))))

    def done(self) -> ModuleOp:
        names, kinds = (ArrayAttr([StringAttr(s) for s in texts]) for texts in (self.names, self.kinds))
        module = ModuleOp([stream.TopOp("top", names, kinds, Region(self.block))])
        module.verify()
        return module
