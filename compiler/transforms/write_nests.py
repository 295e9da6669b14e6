"""Writes a nest's facts as operations, with the memories that the task has to itself."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DictionaryAttr, MemRefType, StringAttr, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue

from penstock.compiler.analysis import nests as fact
from penstock.compiler.dialects import nest, stream
from penstock.compiler.names import c_name, hint_of


def write_nests(nests: Sequence[fact.NestFacts], places: dict[fact.Place, SSAValue]) -> list[Operation]:
    """What a task consists of: its memories, then its nests. `places` are those outside, and get the new ones too."""
    writer = _Writer(places)
    written = [writer.nest(facts) for facts in nests]
    return [*writer.memories, *written]


class _Writer:
    def __init__(self, places: dict[fact.Place, SSAValue]) -> None:
        self.places = places
        self.values: dict[fact.NestValue, SSAValue] = {}
        self.memories: list[Operation] = []

    def nest(self, facts: fact.NestFacts) -> nest.NestOp:
        block = Block()
        for statement in facts.statements:
            block.add_op(self._statement(statement))
        chosen = DictionaryAttr({name: StringAttr(choice) for name, choice in facts.bindings.items()})
        bindings = chosen if facts.bindings else None
        return nest.NestOp(
            facts.name, facts.loops, Region(block), facts.block_loops, bindings, in_circle=facts.in_circle,
            interval=facts.interval,
        )  # fmt: skip

    def _statement(self, statement: fact.Statement) -> Operation:
        values = self.values
        match statement:
            case fact.Read(place, when, result):
                op = nest.ReadOp(self._place(place), when)
            case fact.Write(value, place, when):
                return nest.WriteOp(values[value], self._place(place), when)
            case fact.Load(place, address, when, result):
                op = nest.LoadOp(self._place(place), address, when, _vector(result))
            case fact.StoreFact(value, place, address, when):
                return nest.StoreOp(values[value], self._place(place), address, when)
            case fact.Select(inside, outside, when, result):
                op = nest.SelectOp(values[inside], values[outside], when)
            case fact.Constant(value, result):
                op = nest.ConstantOp(value, _vector(result))
            case fact.Map(inputs, lanes, result, body):
                op = nest.MapOp([values[v] for v in inputs], lanes, _vector(result), body.clone())
            case fact.Reduce(value, dims, result, body):
                op = nest.ReduceOp(values[value], dims, body.clone())
            case fact.Other(op, inputs, result):
                op = op.clone({old: values[new] for old, new in zip(op.operands, inputs, strict=True)})
        values[result] = op.results[0]
        return op

    def _place(self, place: fact.Place) -> SSAValue:
        if place not in self.places:
            kind = MemRefType(place.dtype, place.shape)
            if place.kind == "rom":
                memory, hint = stream.RomOp(place.name, place.parameter, kind), c_name(place.parameter)
            else:
                memory, hint = stream.BufferOp(place.name, kind), place.name
            memory.result.name_hint = hint_of(hint)
            self.memories.append(memory)
            self.places[place] = memory.result
        return self.places[place]


def _vector(value: fact.NestValue) -> VectorType:
    return VectorType(value.dtype, value.shape)
