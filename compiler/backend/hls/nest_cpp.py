"""One nest as C++: perfect loops, a pipelined body, lanes as unrolled loops.

The text keeps the names of the IR (loops t0, p1; memories keep_0, acc; parameters by their own names), so that a
person can follow a layer from the model to this file. What leaves or enters as one token or one word of external
memory is an hls::vector from its first lane to its last; other values are arrays of lanes.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from penstock.compiler.backend.hls import nest_values, pragmas
from penstock.compiler.backend.hls.arrays_cpp import ArrayLayout, divided
from penstock.compiler.backend.hls.bind_cpp import runs_of
from penstock.compiler.backend.hls.lines import CppLines, extents, subscripts, word_type
from penstock.compiler.backend.hls.loops_cpp import open_loops
from penstock.compiler.backend.hls.nest_values import is_reduced, is_single_slot, is_start, twin
from penstock.compiler.backend.hls.pairs_cpp import PairsCpp, arguments_at
from penstock.compiler.backend.hls.ports import TopPort
from penstock.compiler.backend.hls.scalar_cpp import TableKey, constant_of, cpp_type, emit_body, emit_constants
from penstock.compiler.backend.hls.token_cpp import pieces, read_pieces, whole_declaration, write_pieces
from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.bindings import Allotment, bindings_of
from penstock.compiler.dialects.directives import MemoryDeclaration
from penstock.compiler.dialects.nest import GuardAttr
from penstock.compiler.dialects.stream import BlocksType
from penstock.compiler.dialects.types import lane_shape, memref_type, vector_type
from penstock.compiler.scalars.index_text import flat, linear, times, total, unflat


@dataclass
class NestCpp:
    """Writes one nest. `names` maps channels, memories and ROMs to their C++ names."""

    op: nest.NestOp
    layer: str
    label: str
    names: dict[SSAValue, str]
    external: Mapping[SSAValue, TopPort]
    out: CppLines
    lengths: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the lengths of a call are called."""
    tables: Mapping[TableKey, str] = field(default_factory=dict[TableKey, str])
    """What the task's tables are called."""
    used: dict[str, int] = field(default_factory=dict[str, int])
    guarded: tuple[str, int] | None = None
    """The condition of the block that was closed last, and after how many lines."""
    in_place: dict[SSAValue, nest.LoadOp] = field(default_factory=dict[SSAValue, nest.LoadOp])
    sums: dict[SSAValue, tuple[str, list[int]]] = field(default_factory=dict[SSAValue, tuple[str, list[int]]])
    """Of products that are summed as they are made: the sums' name and lanes."""

    def __post_init__(self) -> None:
        self.allotment = Allotment(bindings_of(self.op))

    @property
    def loop_names(self) -> list[str]:
        return [loop.name for loop in self.op.loops.data]

    def emit(self) -> None:
        loops, split = self.op.loops.data, self.op.block_loops.data
        close = open_loops(self.out, loops, split, self.label, self.lengths, self._locks, self._fresh)
        if loops and not is_single_slot(self.op):  # of one slot, the function is the pipeline
            self.out.add(pragmas.pipeline(self.op), *pragmas.carried(self._local_memories()))
        for op in self.op.body.block.ops:
            self._operation(op)
        close()

    def _memories(self) -> dict[SSAValue, str]:
        """The memories that the nest meets, and the lock that a block channel needs."""
        found: dict[SSAValue, str] = {}
        for op in self.op.body.block.ops:
            if isinstance(op, nest.LoadOp | nest.StoreOp):
                found[op.memory] = "write_lock" if isinstance(op, nest.StoreOp) else "read_lock"
        return found

    def _local_memories(self) -> list[tuple[Operation, str]]:
        return [(m.owner, self.names[m]) for m in self._memories() if isinstance(m.owner, stream.BufferOp)]

    def _locks(self) -> None:
        for memory, lock in self._memories().items():
            if isinstance(memory.type, BlocksType):
                name = self.names[memory]
                self.out.add(f"hls::{lock}<{name}_t> {name}_now({name});")

    def _operation(self, op: Operation) -> None:
        match op:
            case nest.ReadOp():
                self._read(op)
            case nest.WriteOp():
                with self._guarded(op.when):
                    self._write(self.names[op.stream], op.value)
            case nest.LoadOp():
                self._load(op)
            case nest.StoreOp():
                self._store(op)
            case nest.SelectOp():
                self._select(op)
            case nest.WithinOp() | nest.PickOp():
                self._wires(op)
            case nest.StackOp():
                self._stack(op)
            case nest.MapOp():
                self._map(op)
            case nest.ReduceOp():
                self._reduce(op)
            case nest.ConstantOp():
                self.names[op.result] = constant_of(op.value)
            case _:
                raise AssertionError(op.name)  # the dialect has no other operation in a nest

    # -- streams

    def _read(self, op: nest.ReadOp) -> None:
        stream_name, kind = self.names[op.stream], op.result.type
        if op.result.first_use is None and pieces(kind).count == 1:
            with self._guarded(op.when):
                self.out.add(f"{stream_name}.read();")
            return
        if pieces(kind).count == 1:
            self._arrive(op.result, "in", f"{stream_name}.read()", op.when)
            return
        name = self._declare(op.result, "in", maybe=bool(op.when.terms))
        with self._guarded(op.when):
            read_pieces(self.out, kind, stream_name, name, self._fresh)

    def _write(self, stream_name: str, value: SSAValue) -> None:
        if pieces(value.type).count == 1:
            self.out.add(f"{stream_name}.write({self._whole(value)});")
        else:
            write_pieces(self.out, value.type, stream_name, self._whole(value), self._fresh)

    # -- memories

    def _load(self, op: nest.LoadOp) -> None:
        if self._can_stay_in_place(op):
            self.in_place[op.result] = op
            return
        if self._is_wide(op.memory):
            word = f"{self.names[op.memory]}[{self._word_address(op)}]"
            self._arrive(op.result, "value", word, op.when)
            return
        if not op.when.terms and prod(lane_shape(op.result)) == 1:
            self._single(op.result, "value", self._element(op, ["0"] * len(lane_shape(op.result))))
            return
        self._declare(op.result, "value", maybe=bool(op.when.terms))
        with self._guarded(op.when), self.out.lanes(lane_shape(op.result)) as index:
            self.out.add(f"{self._at(op.result, index)} = {self._element(op, index)};")

    def _store(self, op: nest.StoreOp) -> None:
        with self._guarded(op.when):
            if self._is_wide(op.memory):
                self.out.add(f"{self.names[op.memory]}[{self._word_address(op)}] = {self._whole(op.value)};")
                return
            with self.out.lanes(lane_shape(op.value)) as index:
                self.out.add(f"{self._element(op, index)} = {self._at(op.value, index)};")

    def _can_stay_in_place(self, op: nest.LoadOp) -> bool:
        """Parameters never change. A kept value is read inside its selection, so never before it was written."""
        if isinstance(op.memory.owner, stream.RomOp):
            return not self._is_word(op.result)
        uses = [use.operation for use in op.result.uses]
        if op.when.terms or len(uses) != 1 or not isinstance(uses[0], nest.SelectOp) or self._is_wide(op.memory):
            return False
        between = op.next_op
        while between is not None and between is not uses[0]:
            if isinstance(between, nest.StoreOp) and between.memory is op.memory:
                return False
            between = between.next_op
        return uses[0].inside is not op.result

    def _is_wide(self, memory: SSAValue) -> bool:
        return memory in self.external and isinstance(memref_type(memory).element_type, VectorType)

    def _word_address(self, op: nest.LoadOp | nest.StoreOp) -> str:
        shape = nest.memory_shape(op.memory)
        return self._linear(op.address.data.results, [prod(shape[d + 1 :]) for d in range(len(shape))])

    def _element(self, op: nest.LoadOp | nest.StoreOp, index: Sequence[str]) -> str:
        """The C++ lvalue of one element: subscripts on the chip, one flat index in external memory."""
        name, address = self.names[op.memory], op.address.data
        if op.memory in self.external and self.external[op.memory].banks is None:
            shape = nest.memory_shape(op.memory)
            strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
            lanes = [times(lane, stride) for lane, stride in zip(index, strides, strict=True)]
            return f"{name}[{total([self._linear(address.results, strides), *lanes])}]"
        suffix = "_now" if isinstance(op.memory.type, BlocksType) else ""
        owner = op.memory.owner
        layout = ArrayLayout.of(owner) if isinstance(owner, MemoryDeclaration) else None
        for dim, (expression, lane) in enumerate(zip(address.results, index, strict=True)):
            word = layout.split(dim) if layout is not None else 1
            if word == 1:
                suffix += f"[{total([self._linear((expression,), (1,)), lane])}]"
            else:  # the word, and the lane in it
                at, inside = divided(lane, word)
                suffix += f"[{total([self._linear((expression,), (1,), word), at])}][{inside}]"
        return name + suffix

    def _linear(self, expressions: Sequence[AffineExpr], strides: Sequence[int], divisor: int = 1) -> str:
        return nest_values.linear_place(self.loop_names, expressions, strides, divisor)

    # -- values

    def _arrive(self, value: SSAValue, label: str, source: str, when: GuardAttr) -> None:
        """A whole token or word, where it comes."""
        if not when.terms:
            name = self.names[value] = self._fresh(label)
            self.out.add(f"const {word_type(value.type)} {name} = {source};")
            return
        name = self.names[value] = self._fresh(label)
        self.out.add(f"{word_type(value.type)} {name} = {'{}' if prod(lane_shape(value)) > 1 else '0'};")
        with self._guarded(when):
            self.out.add(f"{name} = {source};")

    def _select(self, op: nest.SelectOp) -> None:
        label = "partial" if isinstance(op.inside.owner, nest.ConstantOp) else "x"
        condition = nest_values.condition(op.when, self.loop_names, self.lengths)
        if prod(lane_shape(op.result)) == 1:
            self._single(op.result, label, f"{condition} ? {self._whole(op.inside)} : {self._whole(op.outside)}")
            return
        name = self._declare(op.result, label)
        if all(self._is_word(v) for v in (op.inside, op.outside, op.result)) and pieces(op.result.type).count == 1:
            self.out.add(f"{name} = {condition} ? {self._whole(op.inside)} : {self._whole(op.outside)};")
            return
        with self.out.lanes(lane_shape(op.result)) as index:
            inside, outside = self._at(op.inside, index), self._at(op.outside, index)
            self.out.add(f"{self._at(op.result, index)} = {condition} ? {inside} : {outside};")

    def _wires(self, op: nest.WithinOp | nest.PickOp) -> None:
        shape, label = lane_shape(op.result), "lane" if isinstance(op, nest.PickOp) else "within"
        if prod(shape) == 1:
            self._single(op.result, label, self._lane(op, ["0"] * len(shape)))
            return
        self._declare(op.result, label)
        with self.out.lanes(shape) as index:
            self.out.add(f"{self._at(op.result, index)} = {self._lane(op, index)};")

    def _stack(self, op: nest.StackOp) -> None:
        self._declare(op.result, "window")
        with self.out.lanes(op.beside) as index:
            for made, number, taken in op.lanes(index):
                self.out.add(f"{self._at(op.result, made)} = {self._at(op.inputs[number], taken)};")

    def _lane(self, op: nest.WithinOp | nest.PickOp, index: Sequence[str]) -> str:
        if isinstance(op, nest.PickOp):
            return self._at(op.value, unflat(lane_shape(op.value), linear(*op.factors, index)))
        return f"{total([self._linear(op.place.data.results, (1,)), *index])} < {op.size.data}"

    def _map(self, op: nest.MapOp) -> None:
        label = "total" if any(is_start(v) for v in op.inputs) else "term" if is_reduced(op.result) else "y"
        pairs = PairsCpp.of(op, self.allotment)
        if pairs is not None and (chains := pairs.chains()) is not None:
            self.sums[op.result] = pairs.emit_chains(self.out, self._at, chains, self._fresh)
            return
        constants, single = self._constants(op.body.block), prod(lane_shape(op.result)) == 1
        if not single:
            self._declare(op.result, label)
        if pairs is not None:
            for lines, index, result in pairs.emit(self.out, self._at, constants, self.layer, self._fresh, self.tables):
                self.out.add(*lines, f"{self._at(op.result, index)} = {result};")
            return
        for index, choices in self._lanes(op.body.block, lane_shape(op.result)):
            given = arguments_at(op, index, self._at)
            lines, result = self._body(op.body.block, given, constants, choices)
            self.out.add(*lines)
            if single:
                self._single(op.result, label, result)
            else:
                self.out.add(f"{self._at(op.result, index)} = {result};")

    def _body(
        self, body: Block, given: Sequence[str], constants: Mapping[SSAValue, str], choices: Mapping[Operation, str]
    ) -> tuple[list[str], str]:
        return emit_body(body, given, constants, self.layer, self._fresh, choices, tables=self.tables)

    def _lanes(self, body: Block, shape: Sequence[int]) -> Generator[tuple[list[str], Mapping[Operation, str]]]:
        """Loops over the lanes of a scalar body: one, or one for each run of lanes that is built alike."""
        runs = runs_of(body, prod(shape), self.allotment)
        for run in runs:
            with self.out.lanes(shape) if len(runs) == 1 else self.out.some_lanes(shape, run.first, run.last) as index:
                yield index, run.choices

    def _single(self, value: SSAValue, label: str, expression: str) -> None:
        """A value of one lane that every iteration gives."""
        name = self.names[value] = self._fresh(label)
        self.out.add(f"const {cpp_type(vector_type(value).element_type)} {name} = {expression};")

    def _reduce(self, op: nest.ReduceOp) -> None:
        """A balanced tree of neighbours, level by level; each level is a loop over its pairs."""
        kind = vector_type(op.value)
        current: SSAValue | str
        current, shape = self.sums.get(op.value) or (op.value, list(kind.get_shape()))
        constants = self._constants(op.body.block)
        for dim in (d.data for d in op.dims):
            while shape[dim] > 1 or not isinstance(current, str):  # what is alone is copied
                pairs, odd = divmod(shape[dim], 2)
                source, target = list(shape), [pairs + odd if d == dim else s for d, s in enumerate(shape)]
                name = self._fresh("tree")
                self.out.add(f"{cpp_type(kind.element_type)} {name}{extents(target)};")
                if prod(target) > 1:
                    self.out.add(pragmas.lanes_in_parallel(name))
                halved = [pairs if d == dim else s for d, s in enumerate(shape)]
                for index, choices in self._lanes(op.body.block, halved) if pairs else ():
                    left = self._index(current, source, [times(i, 2) if d == dim else i for d, i in enumerate(index)])
                    right = self._index(current, source, [twin(i) if d == dim else i for d, i in enumerate(index)])
                    lines, result = self._body(op.body.block, [left, right], constants, choices)
                    self.out.add(*lines, f"{name}{subscripts(target, index)} = {result};")
                if odd:
                    with self.out.lanes([1 if d == dim else s for d, s in enumerate(shape)]) as index:
                        last = [str(shape[dim] - 1) if d == dim else i for d, i in enumerate(index)]
                        goal = [str(pairs) if d == dim else i for d, i in enumerate(index)]
                        self.out.add(f"{name}{subscripts(target, goal)} = {self._index(current, source, last)};")
                current, shape = name, target
        assert isinstance(current, str)
        self.names[op.result] = current

    def _constants(self, body: Block) -> dict[SSAValue, str]:
        lines, names = emit_constants(body, self._fresh)
        self.out.add(*lines)
        return names

    def _index(self, value: SSAValue | str, shape: Sequence[int], index: Sequence[str]) -> str:
        return value + subscripts(shape, index) if isinstance(value, str) else self._at(value, index)

    def _at(self, value: SSAValue, index: Sequence[str]) -> str:
        """One lane of a value; constants have no lanes."""
        if value in self.in_place:
            return self._element(self.in_place[value], index)
        name, shape = self.names[value], lane_shape(value)
        if isinstance(value.owner, nest.ConstantOp):
            return name
        return f"{name}[{flat(shape, index)}]" if self._is_word(value) else name + subscripts(shape, index)

    def _whole(self, value: SSAValue) -> str:
        """A value as one token or word."""
        shape = lane_shape(value)
        if self._is_word(value) or prod(shape) == 1:
            return self.names[value] if self._is_word(value) else self._at(value, ["0"] * len(shape))
        name = self._fresh("word")
        self.out.add(*whole_declaration(value.type, name))
        with self.out.lanes(shape) as index:
            self.out.add(f"{name}[{flat(shape, index)}] = {self._at(value, index)};")
        return name

    def _is_word(self, value: SSAValue) -> bool:
        """Whether the value is one word or token, and lies flat from its first lane to its last."""
        if prod(lane_shape(value)) == 1 or isinstance(value.owner, nest.ReduceOp | nest.ConstantOp):
            return False
        owner = value.owner
        if isinstance(owner, nest.ReadOp) or (isinstance(owner, nest.LoadOp) and self._is_wide(owner.memory)):
            return True
        users = [use.operation for use in value.uses]
        return any(
            isinstance(user, nest.WriteOp) or (isinstance(user, nest.StoreOp) and self._is_wide(user.memory))
            for user in users
        )

    def _declare(self, value: SSAValue, label: str, *, maybe: bool = False) -> str:
        """A variable for the value; `maybe` where it does not get one in every iteration."""
        shape, kind = lane_shape(value), vector_type(value)
        name = self.names[value] = self._fresh(label)
        if self._is_word(value):
            self.out.add(*whole_declaration(kind, name, " = {}" if maybe else ""))
            return name
        start = (" = {}" if prod(shape) > 1 else " = 0") if maybe else ""
        self.out.add(f"{cpp_type(kind.element_type)} {name}{extents(shape)}{start};")
        if prod(shape) > 1:
            self.out.add(pragmas.lanes_in_parallel(name))
        return name

    # -- guards

    @contextmanager
    def _guarded(self, guard: GuardAttr) -> Generator[None]:
        """Statements under a condition; one that follows another of the same condition goes into its block."""
        if not guard.terms:
            yield
            return
        condition, out = nest_values.condition(guard, self.loop_names, self.lengths), self.out
        if self.guarded == (condition, len(out.text)):
            out.text.pop()
        else:
            out.add(f"if {condition} {{")
        out.indent += 1
        yield
        out.indent -= 1
        out.add("}")
        self.guarded = (condition, len(out.text))

    def _fresh(self, label: str) -> str:
        number = self.used.get(label, 0)
        self.used[label] = number + 1
        return f"{label}{number}"
