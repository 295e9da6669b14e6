"""The body of a nest as a flat list of timed steps, with operators looked up and widths narrowed.

Widths are tracked through sign extensions, products and sums, because that is what the tools build: an
int8 product extended to 32 bits is a 16-bit product.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import arith
from xdsl.ir import Block
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis import nests as fact
from penstock.compiler.analysis.pairs import (
    CHAINED,
    FIELD,
    PAIRED,
    PAIRINGS,
    WIDEST_FACTOR,
    Cascade,
    Pairing,
    chains_of,
    narrow_product,
    pairing_of,
)
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.bindings import Allotment, shares_of
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr
from penstock.compiler.platforms import Resources
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.schedule.bodies import (
    ADDS,
    FlatBody,
    Operators,
    constant_bits,
    first_op,
    flatten_body,
    result_bits,
)
from penstock.compiler.schedule.library import Operator, OperatorLibrary


@dataclass(slots=True)
class FlatStep:
    """One operation on all lanes. `inputs` are positions of earlier steps; memories and channels by name."""

    name: str
    inputs: tuple[int, ...]
    lanes: int
    bits: int
    operator: Operator | None = None
    kind: str = "compute"
    """compute, read, write, load, store"""
    target: fact.Place | None = None
    when: GuardAttr = ALWAYS
    address: AffineMap | None = None
    shape: tuple[int, ...] = ()
    """Of an access."""
    operand_bits: int = 0
    operators: int = 0
    """How many there are where lanes share them; 0: one a lane."""

    @property
    def takes(self) -> bool:
        """Whether it takes from a channel, and waits where that has nothing."""
        return self.kind == "read" or (self.kind == "load" and self.target is not None and self.target.kind == "block")

    @property
    def area(self) -> Resources:
        """Of all its operators."""
        one = Resources() if self.operator is None else self.operator.area(self.operand_bits)
        return one * (self.operators or self.lanes)


BodyMemory = dict[Hashable, tuple[FlatBody, Block]]
"""Bodies that were flattened before, for nests that share them; each is kept, so that its identity stays its own."""


def flatten(facts: fact.NestFacts, library: OperatorLibrary, memory: BodyMemory | None = None) -> list[FlatStep]:
    """The steps of a nest's body, its operators built of what the nest says."""
    return _Flattener(facts, library, {} if memory is None else memory).run()


class _Flattener:
    """Walks a body once. `steps_of` says which steps made a value; constants have none.

    Lanes of one operation that are built of different things are steps side by side.
    """

    def __init__(self, facts: fact.NestFacts, library: OperatorLibrary, memory: BodyMemory) -> None:
        self.facts, self.library, self.memory = facts, library, memory
        self.operators = Operators(library, Allotment(facts.bindings))
        self.bound = tuple(facts.bindings.items())
        self.alike = all(not (shares := shares_of(choice)) or not shares[0] for choice in facts.bindings.values())
        self.steps: list[FlatStep] = []
        self.steps_of: dict[fact.NestValue, tuple[int, ...]] = {}
        self.bits_of: dict[fact.NestValue, int] = {}
        self.chained: dict[fact.NestValue, Cascade] = {}
        self.added = {value for user in facts.statements for value in _added(user)}
        """Values that go straight into a sum."""

    def run(self) -> list[FlatStep]:
        for statement in self.facts.statements:
            self._visit(statement)
        return self.steps

    def _visit(self, statement: fact.Statement) -> None:
        match statement:
            case fact.Read(place, when, result):
                self._access("read", place, when, None, result, ())
            case fact.Write(value, place, when):
                self._access("write", place, when, None, value, self._inputs((value,)))
            case fact.Load(place, address, when, result):
                self._access("load", place, when, address, result, ())
            case fact.StoreFact(value, place, address, when):
                self._access("store", place, when, address, value, self._inputs((value,)))
            case fact.Select(inside, outside, _, result):
                bits = max(self._bits(inside), self._bits(outside))
                row = self.library.find("arith.select", bits)
                self._add(result, nest.SelectOp.name, (inside, outside), [(result.lanes, row)], bits, bits)
            case fact.Constant(value, result):
                self.bits_of[result] = constant_bits(value, result.dtype)
            case fact.Map():
                self._map(statement)
            case fact.Reduce():
                self._reduce(statement)
            case fact.Other(op, inputs, result):
                made = op.built_of([self._bits(v) for v in inputs])
                if made is None:
                    self.steps_of[result] = self._inputs(inputs)
                    self.bits_of[result] = max(self._bits(v) for v in inputs)
                    return
                row = self.library.find(made.operator, made.operand_bits)
                self._add(result, op.name, inputs, [(made.count, row)], made.bits, made.operand_bits)

    def _access(
        self,
        kind: str,
        place: fact.Place,
        when: GuardAttr,
        address: AffineMap | None,
        data: fact.NestValue,
        inputs: tuple[int, ...],
    ) -> None:
        bits = type_bits(data.dtype)
        step = FlatStep(f"nest.{kind}", inputs, data.lanes, bits, None, kind, place, when, address, data.shape)
        self.steps.append(step)
        if kind in ("read", "load"):
            self.steps_of[data] = (len(self.steps) - 1,)
            self.bits_of[data] = bits

    def _map(self, statement: fact.Map) -> None:
        pairing = self._pairing(statement)
        if pairing and (chains := self._chains(statement, pairing)):
            self._chain(statement, pairing, chains)
            return
        body, lanes = self._body(statement, pairing)
        base, inputs = len(self.steps), [self.steps_of.get(v, ()) for v in statement.inputs]

        def resolve(refs: tuple[int, ...]) -> Iterator[int]:
            for ref in refs:
                if ref < 0:
                    yield from inputs[~ref]
                else:
                    yield base + ref

        for s in body.steps:
            shared = pairing.operators(statement.result.shape) if pairing and s.operator.lanes > 1 else 0
            self.steps.append(
                FlatStep(
                    s.name, tuple(resolve(s.inputs)), s.count * lanes, s.bits, s.operator,
                    operand_bits=s.operand_bits, operators=shared,
                )
            )  # fmt: skip
        if made := tuple(resolve(body.made_by)):
            self.steps_of[statement.result] = made
        self.bits_of[statement.result] = body.bits

    def _pairing(self, statement: fact.Map) -> Pairing | None:
        """How lanes share the operators of their product, if it is to be built so and they can."""
        if self.facts.bindings.get(arith.MuliOp.name) not in PAIRINGS:
            return None
        return pairing_of(statement.body.block, statement.lanes, statement.result.shape)

    def _chains(self, statement: fact.Map, pairing: Pairing) -> Cascade | None:
        """How the products are added up as they are made, where nothing but a sum asks for them."""
        users = [user for user in self.facts.statements if any(v is statement.result for v in fact.inputs_of(user))]
        if self.facts.bindings[arith.MuliOp.name] != CHAINED or len(users) != 1:
            return None
        if not isinstance(sums := users[0], fact.Reduce):
            return None
        return chains_of(pairing, statement.body.block, statement.result.shape, sums.body.block, sums.dims)

    def _chain(self, statement: fact.Map, pairing: Pairing, chains: Cascade) -> None:
        """A step a link, all chains side by side; then each pair of sums is taken apart."""
        shape, name = statement.result.shape, arith.MuliOp.name
        slices = pairing.operators(shape) // chains.terms
        sums = statement.result.lanes // chains.terms
        product = self.library.find(name, WIDEST_FACTOR, PAIRED)
        link, apart = (self.library.find(row, WIDEST_FACTOR, CHAINED) for row in ("link", "unchain"))
        inputs = self._inputs(statement.inputs)
        for number in range(chains.length):
            beside = chains.longer_than(number)
            row = replace(link, latency=link.latency if number else product.latency, ff=link.ff * number)
            self.steps.append(
                FlatStep(name, inputs, sums * beside, FIELD, row, operand_bits=WIDEST_FACTOR, operators=slices * beside)
            )
            inputs = (len(self.steps) - 1,)
        count = sums * chains.count
        self.steps.append(
            FlatStep(name, inputs, count, FIELD, apart, operand_bits=FIELD, operators=slices * chains.count)
        )
        self.steps_of[statement.result] = (len(self.steps) - 1,)
        self.bits_of[statement.result] = FIELD
        self.chained[statement.result] = chains

    def _body(self, statement: fact.Map, pairing: Pairing | None) -> tuple[FlatBody, int]:
        """The flat body, and how many times each of its operators is there: once a lane, unless lanes differ."""
        block = statement.body.block
        bits = [self._bits(v) for v in statement.inputs]
        stepped = [v in self.steps_of for v in statement.inputs]
        added = statement.result in self.added
        if not self.alike:
            return flatten_body(block, bits, stepped, self.operators, statement.result.lanes, added), 1
        key = (id(block), self.bound, added, pairing is None, *bits, *stepped)
        if key not in self.memory:
            product = narrow_product(block) if pairing else None
            operators = replace(self.operators, paired=product[0]) if product else self.operators
            self.memory[key] = (flatten_body(block, bits, stepped, operators, 1, added), block)
        return self.memory[key][0], statement.result.lanes

    def _reduce(self, statement: fact.Reduce) -> None:
        """A balanced tree a dim: one step a level, each halving what is left of the dim's lanes."""
        combine, result = first_op(statement.body.block), statement.result
        width, bits = type_bits(result.dtype), self._bits(statement.value)
        value, extents = statement.value, list(statement.value.shape)
        if (chains := self.chained.get(value)) is not None:
            extents = list(chains.left(extents))
        for dim in statement.dims:
            while extents[dim] > 1:
                pairs = extents[dim] // 2
                count = pairs * (prod(extents) // extents[dim])
                widths = [bits, bits]
                grown = min(result_bits(combine, widths), width)
                rows = self.operators.of(combine, widths, count, added=False)
                self._add(result, combine.name, (value,), rows, grown, bits)
                value, bits = result, grown
                extents[dim] -= pairs
        if value is statement.value:
            if value in self.steps_of:
                self.steps_of[result] = self.steps_of[value]
            self.bits_of[result] = bits

    def _add(
        self,
        result: fact.NestValue,
        name: str,
        operands: Sequence[fact.NestValue],
        rows: Sequence[tuple[int, Operator]],
        bits: int,
        operand_bits: int,
    ) -> None:
        inputs, first = self._inputs(operands), len(self.steps)
        self.steps += [FlatStep(name, inputs, count, bits, row, operand_bits=operand_bits) for count, row in rows]
        self.steps_of[result] = tuple(range(first, len(self.steps)))
        self.bits_of[result] = bits

    def _inputs(self, values: Sequence[fact.NestValue]) -> tuple[int, ...]:
        return tuple([step for v in values for step in self.steps_of.get(v, ())])

    def _bits(self, value: fact.NestValue) -> int:
        bits = self.bits_of.get(value)
        return type_bits(value.dtype) if bits is None else bits


def _added(user: fact.Statement) -> Iterator[fact.NestValue]:
    """The values that go straight into a sum of a statement."""
    match user:
        case fact.Reduce(summed, _, _, body) if first_op(body.block).name in ADDS:
            yield summed
        case fact.Map(inputs, _, _, body):
            for argument, value in zip(body.block.args, inputs, strict=True):
                if any(use.operation.name in ADDS for use in argument.uses):
                    yield value
        case _:
            return
