"""Streams that are arguments of a top: tasks of its nests that fill them from memories, and empty them into others.

A host sees a memory of tokens for each, so what interpreter, C++ and SystemVerilog make of a kernel with streams is
held against its source as that of any other kernel is.
"""

from __future__ import annotations

from math import prod
from typing import Protocol

from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr, Loop
from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.arguments import KernelArgument, StreamPart, bits_kept, lanes_of
from penstock.compiler.hls_in.copies import vector_element
from penstock.compiler.hls_in.storage import KernelStream, NumberKind
from penstock.compiler.names import Names, c_name
from penstock.compiler.scalars.number_types import numpy_dtype


class StreamHost(Protocol):
    """The kernel whose streams they are, once its tasks are written."""

    streams: dict[tuple[KernelStream, tuple[int, ...]], SSAValue]
    taken: Names
    names: list[str]

    def insert(self, name: str, kind: Attribute, use: str) -> SSAValue: ...

    def element(self, kind: NumberKind, bits: int, where: str) -> Attribute: ...


class StreamEnds:
    def __init__(self, host: StreamHost) -> None:
        self.host = host
        self.feeding: list[Operation] = []
        """Tasks that fill streams."""
        self.taking: list[Operation] = []

    def serve(self, name: str, streams: KernelStream) -> list[KernelArgument]:
        """The memories of a stream's lanes."""
        return [self._end(streams, lane, part) for lane, part in lanes_of(name, streams)]

    def _end(self, streams: KernelStream, lane: tuple[int, ...], part: StreamPart) -> KernelArgument:
        element = self.host.element(streams.kind, streams.bits, streams.where)
        dtype = numpy_dtype(element).name
        given = self.host.streams.get((streams, lane))
        met = {op: _tokens(op) for use in given.uses if (op := use.operation)} if given is not None else {}
        read, written = (sum(met[op] for op in met if isinstance(op, kind)) for kind in (nest.ReadOp, nest.WriteOp))
        if read and written:
            raise PenstockError(
                code="no-nests", what=f"the argument {part.of!r} is a stream that is read and written",
                where=streams.where, limit="a stream that is an argument has its other end outside",
                hint="use a local stream between tasks",
            )  # fmt: skip
        name = self._name("_".join([streams.name, *map(str, lane)]))
        if given is not None and read + written:
            memory = self.host.insert(
                name, MemRefType(element, (read + written,)), "output" if written else "input"
            )  # fmt: skip
            (self.taking if written else self.feeding).append(self._task(name, given, memory, read, written))
        return KernelArgument(
            name, (read + written,), dtype, False, bool(written), bits_kept(streams, dtype), streams.signed, part
        )

    def _name(self, wanted: str) -> str:
        name = c_name(wanted)
        while name in self.host.names:
            name += "_"
        return name

    def _task(self, name: str, given: SSAValue, memory: SSAValue, read: int, written: int) -> stream.TaskOp:
        at = AffineMap(1, 0, (AffineDimExpr(0),))
        if written:
            taken = nest.ReadOp(given, ALWAYS)
            operations: list[Operation] = [taken, nest.StoreOp(taken.result, memory, at, ALWAYS)]
        else:
            load = nest.LoadOp(memory, at, ALWAYS, VectorType(vector_element(memory), [1]))
            operations = [load, nest.WriteOp(load.result, given, ALWAYS)]
        label = self.host.taken.take(f"{'take' if written else 'feed'}_{name}")
        tokens = Loop("token", read + written)
        return stream.TaskOp(label, label, Region(Block([nest.NestOp("tokens", [tokens], Region(Block(operations)))])))


def _tokens(op: Operation) -> int:
    """How many tokens an access takes or gives in a run."""
    around = op.parent_op()
    guard = op.properties.get("when")
    assert isinstance(around, nest.NestOp)
    assert isinstance(guard, GuardAttr)
    held = ([term for term in guard.terms if term.loop == loop] for loop in range(len(around.trips)))
    return prod(
        sum(all(term.of(turn) for term in terms) for turn in range(trip)) if terms else trip
        for trip, terms in zip(around.trips, held, strict=True)
    )
