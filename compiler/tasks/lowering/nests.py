"""A flat nest as facts: variables that outlive a round are kept in registers, all else is wires."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from penstock.compiler.analysis.nests import (
    Constant,
    Load,
    Map,
    NestFacts,
    NestValue,
    Other,
    Place,
    Read,
    Reduce,
    Select,
    Statement,
    StoreFact,
    Write,
)
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr, Loop, Term
from penstock.compiler.dialects.nest_stack import Stacking
from penstock.compiler.names import c_name
from penstock.compiler.tasks import tree
from penstock.compiler.tasks.affine import Affine, Test, Tests
from penstock.compiler.tasks.kinds import TileKind
from penstock.compiler.tasks.lowering.first_values import check_first_loads, without_unseen
from penstock.compiler.tasks.lowering.kept_apart import with_variables
from penstock.compiler.tasks.lowering.perfect import FlatNest, Flattened, flatten
from penstock.compiler.tasks.lowering.scalars import attribute, body_of, combining, shape_of, type_of
from penstock.compiler.tasks.lowering.unused import drop_unused, operands
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.tree import Memory, StreamEnd, TaskBody


@dataclass(eq=False)
class TaskNests:
    """What a body becomes. `ports` and `tensors` are the places outside it, by what they are in the body."""

    nests: list[NestFacts]
    ports: dict[StreamEnd, Place]
    tensors: dict[str, Place]


BlockShapes = Mapping[str, tuple[int, ...]]
"""For each tensor that is moved in blocks, their shape."""


def build_nests(
    source: ProgramText,
    body: TaskBody,
    words: BlockShapes,
    kinds: Mapping[str, TileKind],
    tensor_kinds: Mapping[str, TileKind],
    *,
    arrays: bool,
    circle: Collection[StreamEnd] = (),
) -> TaskNests:
    """The nests of a body. `kinds` are of the streams, by name; with `arrays`, tensors lie on the chip.

    The ports in `circle` are those through which its tokens may come back to it.
    """
    flattened = flatten(source, body, circle)
    check_first_loads(source, body, flattened)
    if (less := without_unseen(body, flattened)) is not None:
        body, flattened = less, flatten(source, less, circle)
    if (apart := with_variables(body)) is not None:
        body, flattened = apart, flatten(source, apart, circle)
    first = _Builder(body, flattened, words, kinds, tensor_kinds, arrays, circle)
    first.build(set())
    builder = _Builder(body, flattened, words, kinds, tensor_kinds, arrays, circle)
    return TaskNests(builder.build(first.carried), builder.ports, builder.tensors)


@dataclass
class _Builder:
    body: TaskBody
    flattened: Flattened
    words: BlockShapes
    kinds: Mapping[str, TileKind]
    tensor_kinds: Mapping[str, TileKind]
    arrays: bool
    circle: Collection[StreamEnd]
    ports: dict[StreamEnd, Place] = field(default_factory=dict[StreamEnd, Place])
    tensors: dict[str, Place] = field(default_factory=dict[str, Place])
    own: dict[Memory, Place] = field(default_factory=dict[Memory, Place])
    kept: dict[str, Place] = field(default_factory=dict[str, Place])
    carried: set[str] = field(default_factory=set[str])
    """Variables that some round takes from a round before."""

    def build(self, carried: set[str]) -> list[NestFacts]:
        found: list[NestFacts] = []
        for number, flat in enumerate(self.flattened.nests):
            one = _NestBuilder(self, flat, carried)
            found.append(one.facts(f"run{number}" if len(self.flattened.nests) > 1 else "run"))
        drop_unused(found)
        return found

    def port(self, port: StreamEnd) -> Place:
        if port not in self.ports:
            kind = self.kinds[port.stream]
            self.ports[port] = Place(port.name, "stream", shape_of(kind), type_of(kind.dtype))
        return self.ports[port]

    def memory(self, memory: Memory) -> Place:
        if not memory.is_tensor:
            if memory not in self.own:
                kind = "buffer" if memory.table is None else "rom"
                self.own[memory] = Place(
                    c_name(memory.name), kind, memory.shape, type_of(memory.dtype), memory.parameter
                )
            return self.own[memory]
        if memory.name not in self.tensors:
            self.tensors[memory.name] = tensor_place(
                memory.name, self.tensor_kinds[memory.name], self.words.get(memory.name), arrays=self.arrays
            )
        return self.tensors[memory.name]

    def variable(self, name: str, kind: TileKind) -> Place:
        if name not in self.kept:
            label = "held" + name.replace(".", "_") if name.startswith(".") else name
            self.kept[name] = Place(f"keep_{c_name(label)}", "buffer", shape_of(kind), type_of(kind.dtype))
        return self.kept[name]


def tensor_place(name: str, kind: TileKind, word: tuple[int, ...] | None, *, arrays: bool) -> Place:
    """Where a tensor lies: in elements, or in words that are moved as one."""
    element = type_of(kind.dtype)
    if word is None or arrays:
        return Place(name, "array" if arrays else "external", kind.shape, element)
    grid = (1,) * len(word) + tuple(n // w for n, w in zip(kind.shape, word, strict=True))
    return Place(name, "external", grid, VectorType(element, list(word)))


@dataclass
class _NestBuilder:
    task: _Builder
    flat: FlatNest
    carried: set[str]
    statements: list[Statement] = field(default_factory=list[Statement])
    values: dict[str, list[tuple[Tests, NestValue]]] = field(default_factory=dict[str, list[tuple[Tests, NestValue]]])
    variables: dict[str, TileKind] = field(default_factory=dict[str, TileKind])
    loaded: dict[str, NestValue] = field(default_factory=dict[str, NestValue])
    chosen: dict[tuple[str, Tests, int], NestValue] = field(default_factory=dict[tuple[str, Tests, int], NestValue])
    """What variables were found to be: by name, tests, and how many definitions came before."""

    def __post_init__(self) -> None:
        self.places = {loop: position for position, loop in enumerate(self.flat.loops)}

    def facts(self, name: str) -> NestFacts:
        for tests, one in self.flat.items:
            self._statement(tests, one)
        for var in self.carried & set(self.values):
            self._keep(var)
        trips, names = self.task.flattened.trips, self.task.flattened.names
        loops = [Loop(f"r{i}_{c_name(names[loop])}", trips[loop]) for i, loop in enumerate(self.flat.loops)] or [
            Loop("once", 1)
        ]
        in_circle = any(
            isinstance(one, tree.Get | tree.Put) and one.port in self.task.circle for _, one in self.flat.items
        )
        return NestFacts(name, tuple(loops), self.statements, in_circle=in_circle)

    # -- statements

    def _statement(self, tests: Tests, one: tree.Simple) -> None:
        match one:
            case tree.Get(var=var, port=port, kind=kind):
                result = NestValue(shape_of(kind), type_of(kind.dtype))
                self.statements.append(Read(self.task.port(port), self._guard(tests), result))
                self._define(var, kind, tests, result)
            case tree.Put(port=port, value=value):
                self.statements.append(Write(self._value(value, tests), self.task.port(port), self._guard(tests)))
            case tree.Assign(var=var, value=value):
                self._define(var, value.kind, tests, self._value(value, tests))
            case tree.Store(memory=memory, index=index, block=block, value=value):
                given = self._reshaped(self._value(value, tests), block)
                place = self.task.memory(memory)
                self.statements.append(StoreFact(given, place, self._address(memory, index, block), self._guard(tests)))

    def _define(self, var: str, kind: TileKind, tests: Tests, value: NestValue) -> None:
        self.variables[var] = kind
        self.values.setdefault(var, []).append((tests, value))

    def _keep(self, var: str) -> None:
        """A variable's last value of the round, for later rounds and nests."""
        kind, definitions = self.variables[var], self.values[var]
        place = self.task.variable(var, kind)
        here = AffineMap(len(self.flat.loops) or 1, 0, (AffineConstantExpr(0),) * len(place.shape))
        guards = {tests for tests, _ in definitions}
        if len(guards) == 1:
            tests, value = definitions[-1]
            self.statements.append(StoreFact(self._after(value, var), place, here, self._guard(tests)))
        else:
            value = self._after(self._variable(var, kind, ()), var)
            self.statements.append(StoreFact(value, place, here, ALWAYS))

    def _after(self, value: NestValue, var: str) -> NestValue:
        """A value to be stored, no earlier than the one before it is loaded: it waits for that, if it is not of it."""
        before = self.loaded.get(var)
        if before is None or before in self._sources(value):
            return value
        chosen = NestValue(value.shape, value.dtype)
        always = GuardAttr((Term(0, "ge", 0),))
        self.statements.append(Select(value, before, always, chosen))
        return chosen

    def _sources(self, value: NestValue) -> set[NestValue]:
        """All values that one is made of."""
        made = {one.result: operands(one) for one in self.statements if not isinstance(one, Write | StoreFact)}
        found, left = set[NestValue](), [value]
        while left:
            one = left.pop()
            if one not in found:
                found.add(one)
                left += made.get(one, ())
        return found

    # -- values

    def _value(self, value: tree.Expr, tests: Tests) -> NestValue:
        if isinstance(value, tree.Var):
            return self._variable(value.name, value.kind, tests)
        shape, dtype = shape_of(value.kind), type_of(value.kind.dtype)
        match value:
            case tree.Const(value=number):
                result = NestValue(shape, dtype)
                self.statements.append(Constant(attribute(number, value.kind.dtype), result))
                return result
            case tree.Fetch(memory=memory, index=index, block=block):
                result = NestValue(block, dtype)
                address = self._address(memory, index, block)
                self.statements.append(Load(self.task.memory(memory), address, self._guard(tests), result))
                return self._reshaped(result, shape)
            case tree.Apply():
                region, given = body_of(value)
                result = NestValue(shape, dtype)
                inputs = tuple(self._value(one, tests) for one in given)
                whole = AffineMap.identity(len(shape))
                self.statements.append(Map(inputs, (whole,) * len(inputs), result, region))
                return result
            case tree.Shuffle(arg=arg, lanes=lanes):
                return self._picked(self._value(arg, tests), lanes, shape)
            case tree.Join(args=args):
                whole = [self._value(one, tests) for one in args]
                size = whole[0].lanes
                parts = [self._reshaped(one, (size,)) for one in whole]
                row = NestValue((size * len(parts),), dtype)
                operands = Block(arg_types=[VectorType(v.dtype, v.shape) for v in parts]).args
                by = Stacking(along=0, first=0, count=row.lanes, size=1)
                self.statements.append(Other(nest.StackOp(operands, by), tuple(parts), row))
                return self._reshaped(row, shape)
            case tree.Fold(op=op, arg=arg, axis=axis):
                given = self._value(arg, tests)
                folded = NestValue(tuple(1 if d == axis else s for d, s in enumerate(given.shape)), dtype)
                self.statements.append(Reduce(given, (axis,), folded, combining(op, value.kind.dtype)))
                return self._reshaped(folded, shape)

    def _variable(self, var: str, kind: TileKind, tests: Tests) -> NestValue:
        """What a variable is in the rounds that pass the tests: its latest value there."""
        definitions = self.values.get(var, [])
        key = (var, tests, len(definitions))
        if key not in self.chosen:
            self.chosen[key] = self._latest(var, kind, tests, definitions)
        return self.chosen[key]

    def _latest(
        self, var: str, kind: TileKind, tests: Tests, definitions: Sequence[tuple[Tests, NestValue]]
    ) -> NestValue:
        pending: list[tuple[Tests, NestValue]] = []
        found: NestValue | None = None
        known, trips = tests, self.task.flattened.trips
        for guard, value in reversed(definitions):
            left = tuple(test for test in guard if not _implied(test, known, trips))
            if not left:
                found = value
                break
            if any(_excluded(test, known, trips) for test in guard):
                continue
            pending.append((left, value))
            if len(left) == 1:
                known = (*known, left[0].opposite)
        if found is None:
            found = self._before(var, kind)
        for guard, value in reversed(pending):
            chosen = NestValue(value.shape, value.dtype)
            self.statements.append(Select(value, found, self._guard(guard), chosen))
            found = chosen
        return found

    def _before(self, var: str, kind: TileKind) -> NestValue:
        """What a variable was when the round began."""
        if var not in self.loaded:
            self.task.carried.add(var)
            place = self.task.variable(var, kind)
            here = AffineMap(len(self.flat.loops) or 1, 0, (AffineConstantExpr(0),) * len(place.shape))
            value = self.loaded[var] = NestValue(place.shape, place.dtype)
            self.statements.append(Load(place, here, ALWAYS, value))
        return self.loaded[var]

    def _reshaped(self, value: NestValue, shape: Sequence[int]) -> NestValue:
        return self._picked(value, tuple(range(prod(shape))), tuple(shape))

    def _picked(self, value: NestValue, lanes: tuple[int, ...], shape: tuple[int, ...]) -> NestValue:
        if lanes == tuple(range(value.lanes)) and shape == value.shape:
            return value
        start, factors = affine_lanes(lanes, shape)
        terms: AffineExpr = AffineConstantExpr(start)
        for dim, factor in enumerate(factors):
            if factor:
                terms = terms + AffineDimExpr(dim) * factor
        place = AffineMap(len(shape), 0, (terms,))
        operand = Block(arg_types=[VectorType(value.dtype, value.shape)]).args[0]
        result = NestValue(shape, value.dtype)
        self.statements.append(Other(nest.PickOp(operand, place, shape), (value,), result))
        return result

    # -- places and rounds

    def _guard(self, tests: Tests) -> GuardAttr:
        if not tests:
            return ALWAYS
        return GuardAttr(tuple(Term(self.places[t.loop], t.comparison, t.value, t.every) for t in tests))

    def _address(self, memory: Memory, index: Sequence[Affine], block: Sequence[int]) -> AffineMap:
        word = self.task.words.get(memory.name) if memory.is_tensor and not self.task.arrays else None
        results: list[AffineExpr] = [AffineConstantExpr(0)] * len(index) if word else []
        for dim, one in enumerate(index):
            place = one if word is None else one.divided(word[dim])
            assert place is not None
            total: AffineExpr = AffineConstantExpr(place.const)
            for loop, factor in place.terms:
                total = total + AffineDimExpr(self.places[loop]) * factor
            results.append(total)
        return AffineMap(len(self.flat.loops) or 1, 0, tuple(results))


def affine_lanes(lanes: Sequence[int], shape: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """Lanes as a start and a factor for each dim."""
    steps = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    factors = tuple(lanes[step] - lanes[0] if size > 1 else 0 for step, size in zip(steps, shape, strict=True))
    return lanes[0], factors


_COUNTED = 256
"""Rounds of a loop that are looked at one by one; of longer ones only what the tests say in words."""


def _implied(test: Test, known: Tests, trips: Mapping[int, int]) -> bool:
    """Whether a test holds where others do."""
    left = _left(test, known, trips)
    return test in known or (bool(left) and all(test.holds(counter) for counter in left))


def _excluded(test: Test, known: Tests, trips: Mapping[int, int]) -> bool:
    """Whether it never holds where others do."""
    left = _left(test, known, trips)
    return test.opposite in known or (bool(left) and not any(test.holds(counter) for counter in left))


def _left(test: Test, known: Tests, trips: Mapping[int, int]) -> Sequence[int]:
    """The rounds of a test's loop that others leave; none where that is not known."""
    own = [one for one in known if one.loop == test.loop]
    settled = [one.value for one in own if one.comparison == "eq" and not one.every]
    if settled:
        return settled[:1]
    if not own or trips[test.loop] > _COUNTED:
        return ()
    return [counter for counter in range(trips[test.loop]) if all(one.holds(counter) for one in own)]
