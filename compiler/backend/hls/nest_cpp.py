"""One nest as C++: perfect loops, a pipelined body, lanes as unrolled loops.

The text keeps the names of the IR (loops t0, p1; memories keep_0, acc; parameters by their own names), so that a
person can follow a layer from the model to this file.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from compiler.backend.hls.scalar_cpp import constant_of, cpp_type, emit_body
from compiler.dialects import nest
from compiler.dialects.affine import coefficients
from compiler.dialects.nest import GuardAttr
from compiler.dialects.stream import BlocksType
from compiler.dialects.types import vector_type

_SIGNS = {"eq": "==", "ne": "!=", "ge": ">=", "le": "<="}


@dataclass
class Lines:
    """Text that knows its indentation. Pragmas stand at the margin, as people write them."""

    indent: int = 0
    text: list[str] = field(default_factory=list[str])

    def add(self, line: str) -> None:
        self.text.append(line if line.startswith("#") else "    " * self.indent + line)

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        self.add(head + " {")
        self.indent += 1
        yield
        self.indent -= 1
        self.add("}")


@dataclass
class NestEmitter:
    """Writes one nest. `names` maps channels, memories and ROMs to their C++ names."""

    op: nest.NestOp
    layer: str
    label: str
    names: dict[SSAValue, str]
    external: frozenset[SSAValue]
    out: Lines
    used: dict[str, int] = field(default_factory=dict[str, int])
    lazy: dict[SSAValue, nest.LoadOp] = field(default_factory=dict[SSAValue, nest.LoadOp])

    @property
    def loop_names(self) -> list[str]:
        return [loop.name for loop in self.op.loops.data]

    def emit(self) -> None:
        loops, split = self.op.loops.data, self.op.block_loops.data
        blocks = self._block_channels()
        depth = 0
        for position, loop in enumerate(loops):
            if position == split:
                self._locks(blocks)
            label = f"{self.label}_{loop.name}: " if position == len(loops) - 1 else ""
            self.out.add(f"{label}for (int {loop.name} = 0; {loop.name} < {loop.trip}; ++{loop.name}) {{")
            self.out.indent += 1
            depth += 1
        if split == len(loops):
            self._locks(blocks)
        if loops:
            self.out.add("#pragma HLS PIPELINE II=1")
        for op in self.op.body.block.ops:
            self._operation(op)
        for _ in range(depth):
            self.out.indent -= 1
            self.out.add("}")

    def _block_channels(self) -> list[tuple[SSAValue, str]]:
        found: dict[SSAValue, str] = {}
        for op in self.op.body.block.ops:
            if isinstance(op, nest.LoadOp | nest.StoreOp) and isinstance(op.memory.type, BlocksType):
                found[op.memory] = "write_lock" if isinstance(op, nest.StoreOp) else "read_lock"
        return list(found.items())

    def _locks(self, blocks: list[tuple[SSAValue, str]]) -> None:
        for channel, lock in blocks:
            name = self.names[channel]
            self.out.add(f"hls::{lock}<{name}_t> {name}_now({name});")

    def _operation(self, op: Operation) -> None:
        match op:
            case nest.ReadOp():
                self._read(op)
            case nest.WriteOp():
                self._write(op)
            case nest.LoadOp():
                self._load(op)
            case nest.StoreOp():
                self._store(op)
            case nest.SelectOp():
                self._select(op)
            case nest.MapOp():
                self._map(op)
            case nest.ReduceOp():
                self._reduce(op)
            case nest.ConstantOp():
                self.names[op.result] = constant_of(op.value)
            case _:
                raise AssertionError(op.name)  # the dialect has no other operation in a nest

    def _read(self, op: nest.ReadOp) -> None:
        shape, stream = _shape(op.result), self.names[op.stream]
        name = self._declare(op.result, "in", zero=bool(op.when.terms))
        with self._guarded(op.when, scope=_size(shape) > 1):
            if _size(shape) == 1:
                self.out.add(f"{name} = {stream}.read();")
                return
            self.out.add(f"const {token_type(op.result.type)} token = {stream}.read();")
            with self._lanes(shape) as index:
                self.out.add(f"{self._at(op.result, index)} = token[{_flat(shape, index)}];")

    def _write(self, op: nest.WriteOp) -> None:
        shape, stream = _shape(op.value), self.names[op.stream]
        with self._guarded(op.when, scope=_size(shape) > 1):
            if _size(shape) == 1:
                self.out.add(f"{stream}.write({self._at(op.value, ['0'] * len(shape))});")
                return
            self.out.add(f"{token_type(op.value.type)} token;")
            with self._lanes(shape) as index:
                self.out.add(f"token[{_flat(shape, index)}] = {self._at(op.value, index)};")
            self.out.add(f"{stream}.write(token);")

    def _load(self, op: nest.LoadOp) -> None:
        uses = [use.operation for use in op.result.uses]
        if len(uses) == 1 and isinstance(uses[0], nest.SelectOp) and uses[0].inside is not op.result:
            self.lazy[op.result] = op  # read inside the selection: never before it was written
            return
        self._declare(op.result, "value")
        with self._lanes(_shape(op.result)) as index:
            self.out.add(f"{self._at(op.result, index)} = {self._element(op.memory, op.address.data, index)};")

    def _store(self, op: nest.StoreOp) -> None:
        with self._guarded(op.when, scope=False), self._lanes(_shape(op.value)) as index:
            self.out.add(f"{self._element(op.memory, op.address.data, index)} = {self._at(op.value, index)};")

    def _select(self, op: nest.SelectOp) -> None:
        self._declare(op.result, "x")
        with self._lanes(_shape(op.result)) as index:
            inside, outside = self._at(op.inside, index), self._at(op.outside, index)
            self.out.add(f"{self._at(op.result, index)} = {self._condition(op.when)} ? {inside} : {outside};")

    def _map(self, op: nest.MapOp) -> None:
        self._declare(op.result, "y")
        with self._lanes(_shape(op.result)) as index:
            arguments = [
                self._at(value, [_project(e, index) for e in lanes.data.results])
                for value, lanes in zip(op.inputs, op.lanes, strict=True)
            ]
            lines, result = emit_body(op.body.block, arguments, self.layer, self._fresh)
            for line in lines:
                self.out.add(line)
            self.out.add(f"{self._at(op.result, index)} = {result};")

    def _reduce(self, op: nest.ReduceOp) -> None:
        """A balanced tree of neighbours, level by level; each level is a loop over its pairs."""
        current = op.value
        kind = vector_type(op.value)
        shape = list(kind.get_shape())
        for dim in (d.data for d in op.dims):
            while shape[dim] > 1:
                pairs, odd = divmod(shape[dim], 2)
                source, target = list(shape), [pairs + odd if d == dim else s for d, s in enumerate(shape)]
                name = self._fresh("tree")
                self.out.add(f"{cpp_type(kind.element_type)} {name}{_extents(target)};")
                if _size(target) > 1:
                    self.out.add(f"#pragma HLS ARRAY_PARTITION variable={name} complete dim=0")
                with self._lanes([pairs if d == dim else s for d, s in enumerate(shape)]) as index:
                    left = self._index(current, source, [_even_twin(i) if d == dim else i for d, i in enumerate(index)])
                    right = self._index(current, source, [_odd_twin(i) if d == dim else i for d, i in enumerate(index)])
                    lines, result = emit_body(op.body.block, [left, right], self.layer, self._fresh)
                    for line in lines:
                        self.out.add(line)
                    self.out.add(f"{name}{_subscripts(target, index)} = {result};")
                if odd:
                    with self._lanes([1 if d == dim else s for d, s in enumerate(shape)]) as index:
                        last = [str(shape[dim] - 1) if d == dim else i for d, i in enumerate(index)]
                        goal = [str(pairs) if d == dim else i for d, i in enumerate(index)]
                        self.out.add(f"{name}{_subscripts(target, goal)} = {self._index(current, source, last)};")
                current, shape = name, target
        assert isinstance(current, str)
        self.names[op.result] = current

    def _index(self, value: SSAValue | str, shape: Sequence[int], index: Sequence[str]) -> str:
        name = value if isinstance(value, str) else self.names[value]
        return name + _subscripts(shape, index)

    def _at(self, value: SSAValue, index: Sequence[str]) -> str:
        """One lane of a value; constants have no lanes."""
        if value in self.lazy:
            return self._element(self.lazy[value].memory, self.lazy[value].address.data, index)
        name = self.names[value]
        if isinstance(value.owner, nest.ConstantOp):
            return name
        return name + _subscripts(_shape(value), index)

    def _element(self, memory: SSAValue, address: AffineMap, index: Sequence[str]) -> str:
        """The C++ lvalue of one element: subscripts on the chip, one flat index in external memory."""
        terms = [
            _sum([*self._address(e), *([] if lane == "0" else [lane])])
            for e, lane in zip(address.results, index, strict=True)
        ]
        if memory in self.external:
            shape = nest.memory_shape(memory)
            flat = terms[0]
            for extent, term in zip(shape[1:], terms[1:], strict=True):
                flat = term if flat == "0" else f"({flat}) * {extent}" + ("" if term == "0" else f" + {term}")
            return f"{self.names[memory]}[{flat}]"
        suffix = "_now" if isinstance(memory.type, BlocksType) else ""
        return self.names[memory] + suffix + "".join(f"[{t}]" for t in terms)

    def _address(self, expression: AffineExpr) -> list[str]:
        names = self.loop_names
        factors = coefficients(expression, len(names))
        return [n if f == 1 else f"{n} * {f}" for n, f in zip(names, factors, strict=True) if f]

    def _condition(self, guard: GuardAttr) -> str:
        names = self.loop_names
        terms = [f"{names[t.loop]} {_SIGNS[t.comparison]} {t.value}" for t in guard.terms]
        return "(" + " && ".join(terms) + ")" if terms else "true"

    @contextmanager
    def _guarded(self, guard: GuardAttr, *, scope: bool = True) -> Generator[None]:
        if guard.terms:
            with self.out.block(f"if {self._condition(guard)}"):
                yield
        elif scope:
            with self._scope():
                yield
        else:
            yield

    @contextmanager
    def _scope(self) -> Generator[None]:
        self.out.add("{")
        self.out.indent += 1
        yield
        self.out.indent -= 1
        self.out.add("}")

    @contextmanager
    def _lanes(self, shape: Sequence[int]) -> Generator[list[str]]:
        """Unrolled loops over the lanes; yields an index expression for every dim."""
        index: list[str] = []
        depth = 0
        for dim, extent in enumerate(shape):
            if extent == 1:
                index.append("0")
                continue
            self.out.add(f"for (int l{dim} = 0; l{dim} < {extent}; ++l{dim}) {{")
            self.out.add("#pragma HLS UNROLL")
            self.out.indent += 1
            depth += 1
            index.append(f"l{dim}")
        yield index
        for _ in range(depth):
            self.out.indent -= 1
            self.out.add("}")

    def _declare(self, value: SSAValue, label: str, *, zero: bool = False) -> str:
        shape, kind = _shape(value), vector_type(value)
        name = self._fresh(label)
        start = " = {}" if zero and _size(shape) > 1 else " = 0" if zero else ""
        self.out.add(f"{cpp_type(kind.element_type)} {name}{_extents(shape)}{start};")
        if _size(shape) > 1:
            self.out.add(f"#pragma HLS ARRAY_PARTITION variable={name} complete dim=0")
        self.names[value] = name
        return name

    def _fresh(self, label: str) -> str:
        number = self.used.get(label, 0)
        self.used[label] = number + 1
        return f"{label}{number}"


def token_type(kind: Attribute) -> str:
    """What one token is in C++: a scalar for one lane, hls::vector for more."""
    vector = vector_type(kind)
    lanes = _size(vector.get_shape())
    scalar = cpp_type(vector.element_type)
    return scalar if lanes == 1 else f"hls::vector<{scalar}, {lanes}>"


def partition_pragmas(memory: SSAValue, name: str) -> list[str]:
    """How a memory must be cut so that all lanes of every access are served at once."""
    shape = nest.memory_shape(memory)
    lanes = [1] * len(shape)
    for use in memory.uses:
        op = use.operation
        if isinstance(op, nest.LoadOp | nest.StoreOp):
            value = op.result if isinstance(op, nest.LoadOp) else op.value
            lanes = [max(a, b) for a, b in zip(lanes, _shape(value), strict=True)]
    pragmas: list[str] = []
    for dim, (extent, count) in enumerate(zip(shape, lanes, strict=True), start=1):
        if count > 1:
            how = "complete" if count == extent else f"cyclic factor={count}"
            pragmas.append(f"#pragma HLS ARRAY_PARTITION variable={name} {how} dim={dim}")
    return pragmas


def array_declaration(kind: MemRefType[Attribute], name: str) -> str:
    return f"{cpp_type(kind.element_type)} {name}" + "".join(f"[{d}]" for d in kind.get_shape())


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tuple(vector_type(value).get_shape())


def _size(shape: Sequence[int]) -> int:
    size = 1
    for extent in shape:
        size *= extent
    return size


def _extents(shape: Sequence[int]) -> str:
    """Array extents of a lane vector; unit dims vanish, so that a single lane is a plain scalar."""
    return "".join(f"[{s}]" for s in shape if s > 1)


def _subscripts(shape: Sequence[int], index: Sequence[str]) -> str:
    return "".join(f"[{i}]" for s, i in zip(shape, index, strict=True) if s > 1)


def _flat(shape: Sequence[int], index: Sequence[str]) -> str:
    """The row-major position of a lane in a token."""
    flat = "0"
    for extent, i in zip(shape, index, strict=True):
        if extent == 1:
            continue
        flat = i if flat == "0" else f"({flat}) * {extent} + {i}"
    return flat


def _even_twin(index: str) -> str:
    return "0" if index == "0" else f"2 * {index}"


def _odd_twin(index: str) -> str:
    return "1" if index == "0" else f"2 * {index} + 1"


def _project(expression: AffineExpr, index: Sequence[str]) -> str:
    if isinstance(expression, AffineDimExpr):
        return index[expression.position]
    assert isinstance(expression, AffineConstantExpr)
    return str(expression.value)


def _sum(terms: Sequence[str]) -> str:
    return " + ".join(terms) if terms else "0"
