"""One piece of a kernel as an operation of the nest dialect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType, VectorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from penstock.compiler.dialects import nest
from penstock.compiler.dialects.nest import GuardAttr, Loop, PickOp, Term
from penstock.compiler.dialects.stream import StreamType
from penstock.compiler.dialects.types import lane_shape, vector_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.conditions import guard_of, is_static, never, split
from penstock.compiler.hls_in.graph import KernelValue, LinearForm
from penstock.compiler.hls_in.integers import kept_width
from penstock.compiler.hls_in.own_memories import KernelParts, OwnMemories
from penstock.compiler.hls_in.patterns import conjuncts
from penstock.compiler.hls_in.pieces import Piece, PiecePart
from penstock.compiler.hls_in.scalar_bodies import attribute_of, body_of, converted
from penstock.compiler.hls_in.storage import Counter, KernelArray
from penstock.compiler.names import Names, c_name

_BIT = IntegerType(1)


@dataclass(frozen=True)
class ArrayHome:
    """Where a task keeps an array: what is loaded from and stored to, and the channels that get each store too."""

    memory: SSAValue | None
    channels: tuple[SSAValue, ...]


def nest_of(
    kernel: KernelParts, own: OwnMemories, homes: dict[KernelArray, ArrayHome], piece: Piece, name: str
) -> nest.NestOp:
    """A piece as a nest."""
    counters = piece.loops or [Counter("once", 1)]
    block = Block()
    for number, part in enumerate(piece.parts):
        own.turn = f"_{number}" if kernel.apart and number else ""
        PartWriter(kernel, own, homes, part, counters, block).write()
    own.turn = ""
    names = Names()
    loops = [Loop(names.take(c_name(counter.name)), counter.trip) for counter in counters]
    return nest.NestOp(name, loops, Region(block))


class PartWriter:
    """Writes the operations of one part of a piece, in the order of the program."""

    def __init__(
        self, kernel: KernelParts, own: OwnMemories, homes: dict[KernelArray, ArrayHome], part: PiecePart,
        loops: list[Counter], block: Block,
    ) -> None:  # fmt: skip
        self.kernel, self.own, self.homes, self.part = kernel, own, homes, part
        self.loops, self.block = loops, block
        self.values: dict[object, SSAValue] = {}
        self.nodes = set(part.graph.nodes)
        here = guard_of((), part, loops)
        assert here is not None
        self.here = here
        """The iterations in which the part happens."""
        starts = [part.at[c] for c in part.item.counters if c.trip > 1]
        self.first = GuardAttr(tuple(Term(loops.index(loop), "eq", offset) for loop, offset in starts))
        self.carried = {one.phi: one for one in part.item.carried}

    def write(self) -> None:
        needed = self._needed()
        mixed = {n.array for n in self.part.graph.nodes if n.op == "phi" and n.array is not None} & {
            n.array for n in self.part.graph.nodes if n.op in ("load", "store")
        }
        if mixed:
            array = next(iter(mixed))
            assert array is not None
            raise self._refused(f"the array {array.name!r} of registers is met at constant and at other places")
        for node in self.part.graph.nodes:
            if node.op == "store":
                self._store(node)
            elif node.op == "put":
                self._put(node)
            elif node in needed or node.op == "take":
                self._value(node)
        for node in self.part.graph.nodes:
            if node.op == "phi" and node.follow is not None:
                self._keep(node)
        for node in self.part.graph.nodes:
            if node in self.kernel.exported and node.op not in ("input", "phi") and node in needed:
                register = self.register(node)
                self._add(nest.StoreOp(self._value(node), register, self._zero(1), self.here))

    # what is needed

    def _needed(self) -> set[KernelValue]:
        roots: list[KernelValue] = []
        for node in self.part.graph.nodes:
            if node.op in ("store", "put"):
                roots += [node.args[0], *split(node.guard, self.part.item)[1]]
            elif node.op == "take" and split(node.guard, self.part.item)[1]:
                raise self._refused("a stream is read under a condition that no single counter decides", node)
            elif node.op == "phi" and node.follow is not None:
                roots.append(node.follow)
            if node in self.kernel.exported and node.op not in ("input", "phi"):
                roots.append(node)
        found: set[KernelValue] = set()
        while roots:
            node = roots.pop()
            if node in found:
                continue
            found.add(node)
            if node in self.nodes and node.op not in ("load", "take", "phi") and node.linear is None:
                if node.op in ("compare", "logic", "not") and is_static(node):
                    continue
                roots += node.args
        return found

    # values

    def _value(self, node: KernelValue) -> SSAValue:
        found = self.values.get(node)
        if found is None:
            found = self.values[node] = self._made(node)
        return found

    def _made(self, node: KernelValue) -> SSAValue:
        if node.constant:
            return self._constant(node.value or 0, self._type(node))
        if node not in self.nodes or node in self.kernel.carried:
            return self._from_outside(node)
        if node.op in ("compare", "logic", "not") and is_static(node):
            return self._bit(node)
        if node.linear is not None and node.op != "load":
            return self._count(node.linear, node)
        match node.op:
            case "load":
                assert node.array is not None
                return self._load(node.array, self._index(node.args, node), self._guard(node))
            case "take":
                return self._take(node)
            case "phi":
                return self._phi(node)
            case "select" if any(map(is_static, conjuncts(node.args[0]))):
                return self._select(node)
            case "input" | "put" | "store" | "dead":
                raise self._refused("a variable that is read before it is written", node)
            case _:
                return self._map(node, [self._value(arg) for arg in node.args])

    def _map(self, node: KernelValue, given: list[SSAValue]) -> SSAValue:
        result = self._type(node)
        inputs = list(dict.fromkeys(given))
        kinds = [vector_type(v).element_type for v in inputs]
        region = body_of(node, [vector_type(v).element_type for v in given], result)
        if region is None:
            raise self._refused(f"there is no scalar operation for {node.op!r}", node)
        block = region.block
        for position in range(len(given) - 1, -1, -1):  # the same value twice is one operand
            place = inputs.index(given[position])
            if place != position and given.index(given[position]) != position:
                block.args[position].replace_all_uses_with(block.args[given.index(given[position])])
                block.erase_arg(block.args[position])
        assert [a.type for a in block.args] == kinds
        lanes = [AffineMap.identity(1)] * len(inputs)
        return self._add(nest.MapOp(inputs, lanes, VectorType(result, [1]), region))

    def _select(self, node: KernelValue) -> SSAValue:
        """A choice that counters decide, perhaps with data: what is not chosen may be undefined."""
        yes, no = self._alike(node)
        data = [part for part in conjuncts(node.args[0]) if not is_static(part)]
        if not data:
            return self._choose(node.args[0], yes, no, node)
        yes = self._where(data, yes, no, node)
        for part in filter(is_static, conjuncts(node.args[0])):
            yes = self._choose(part, yes, no, node)
        return yes

    def _where(self, data: list[KernelValue], yes: SSAValue, no: SSAValue, kind: KernelValue | KernelArray) -> SSAValue:
        bit = self._value(data[0])
        for more in data[1:]:
            bit = self._map(KernelValue("logic", kind="bool", bits=1, comparison="and"), [bit, self._value(more)])
        return self._map(KernelValue("select", kind=kind.kind, bits=kind.bits), [bit, yes, no])

    def _choose(self, condition: KernelValue, yes: SSAValue, no: SSAValue, node: KernelValue) -> SSAValue:
        if condition.op == "not":
            return self._choose(condition.args[0], no, yes, node)
        if condition.op == "logic" and condition.comparison == "or":
            left, right = condition.args
            return self._choose(left, yes, self._choose(right, yes, no, node), node)
        parts = conjuncts(condition)
        flat = guard_of(parts, self.part, self.loops, inside=True)
        if flat is not None:
            if never(parts, self.part):
                return no
            return yes if not flat.terms else self._add(nest.SelectOp(yes, no, flat))
        if condition.op == "logic":
            left, right = condition.args
            return self._choose(left, self._choose(right, yes, no, node), no, node)
        bit = self._map(condition, [self._value(arg) for arg in condition.args])
        chosen = KernelValue("select", kind=node.kind, bits=node.bits)
        return self._map(chosen, [bit, yes, no])

    def _alike(self, node: KernelValue) -> tuple[SSAValue, SSAValue]:
        result = self._type(node)
        values = ((arg, self._value(arg)) for arg in node.args[1:])
        yes, no = (
            v if vector_type(v).element_type == result else self._map(converted(arg, node), [v]) for arg, v in values
        )  # fmt: skip
        return yes, no

    def _bit(self, node: KernelValue) -> SSAValue:
        shell = KernelValue("select", kind="bool", bits=1)
        return self._choose(node, self._constant(1, _BIT), self._constant(0, _BIT), shell)

    def _count(self, linear: LinearForm, node: KernelValue) -> SSAValue:
        """An integer that is linear in the counters, as a number."""
        wide = IntegerType(kept_width(node))
        whole, times = (KernelValue(op, kind="int", bits=wide.width.data) for op in ("add", "mul"))
        total: SSAValue | None = None
        for counter, factor in linear.terms:
            if counter not in self.part.at:
                raise self._refused("a loop's counter outside of the loop", node)
            table = self.kernel.counts(self.own, counter.trip)
            at = self._address([LinearForm(0, ((counter, 1),))])
            term = self._add(nest.LoadOp(table, at, self.here, VectorType(IntegerType(32), [1])))
            if wide.width.data > 32:
                term = self._map(KernelValue("convert", kind="int", bits=64), [term])
            term = term if factor == 1 else self._map(times, [term, self._constant(factor, wide)])
            total = term if total is None else self._map(whole, [total, term])
        if total is None:
            return self._constant(linear.base, wide)
        return total if not linear.base else self._map(whole, [total, self._constant(linear.base, wide)])

    def _phi(self, node: KernelValue) -> SSAValue:
        if node.array is not None:
            return self._load(node.array, [LinearForm(n) for n in node.word], self.here)
        before = self.carried[node].before if node in self.carried else None
        if node.follow is None:
            return self._constant(0, self._type(node)) if before is None else self._value(before)
        register = self.register(node)
        held = self._add(nest.LoadOp(register, self._zero(1), self.here, VectorType(self._type(node), [1])))
        if before is None:
            return held
        start = self._value(before)
        if vector_type(start).element_type != self._type(node):
            start = self._map(converted(before, node), [start])
        return self._add(nest.SelectOp(start, held, self.first)) if self.first.terms else start

    def _keep(self, phi: KernelValue) -> None:
        assert phi.follow is not None
        value = self._value(phi.follow)
        wanted = self._type(phi)
        if vector_type(value).element_type != wanted:
            value = self._map(converted(phi.follow, phi), [value])
        if phi.array is not None:
            self._write_array(phi.array, value, [LinearForm(n) for n in phi.word], self.here)
            return
        self._add(nest.StoreOp(value, self.register(phi), self._zero(1), self.here))

    def register(self, node: KernelValue) -> SSAValue:
        """A memory of one word: what a variable carries, or what one piece leaves for another."""
        key = self.carried[node].after if node in self.carried else node
        return self.own.buffer(key, f"{node.op}_{len(self.own.known)}_reg", (1,), self._type(node))

    def _from_outside(self, node: KernelValue) -> SSAValue:
        one = [1]
        if node in self.kernel.arguments:
            argument = self.kernel.argument(self.own, node)
            return self._add(nest.LoadOp(argument, self._zero(1), self.here, VectorType(self._type(node), one)))
        if node in self.kernel.carried or node in self.kernel.owners:
            if node not in self.own.known:
                raise self._refused("a variable of another task, or of one that comes later", node)
            return self._add(
                nest.LoadOp(self.own.known[node], self._zero(1), self.here, VectorType(self._type(node), one))
            )
        if node.linear is not None:
            return self._count(node.linear, node)
        raise self._refused("a variable that is read before it is written", node)

    # accesses

    def _guard(self, node: KernelValue) -> GuardAttr:
        """When an access happens, as far as counters decide; what data decide does no harm to a load."""
        parts, _ = split(node.guard, self.part.item)
        found = guard_of(parts, self.part, self.loops)
        if found is None:
            raise self._refused("a condition that mixes loop counters", node)
        return found

    def _load(self, array: KernelArray, index: Sequence[LinearForm], when: GuardAttr) -> SSAValue:
        home = self.homes.get(array)
        memory = home.memory if home is not None and home.memory is not None else self.kernel.memory(self.own, array)
        kind = VectorType(self.kernel.element(array.kind, array.bits, array.where), [1] * len(array.dims))
        value = self._add(nest.LoadOp(memory, self._address(index), when, kind))
        return self._row(value)

    def _store(self, node: KernelValue) -> None:
        assert node.array is not None
        parts, data = split(node.guard, self.part.item)
        if never(parts, self.part):
            return
        index, when = self._index(node.args[1:], node), self._guard(node)
        value = self._value(node.args[0])
        element = self.kernel.element(node.array.kind, node.array.bits, node.array.where)
        if vector_type(value).element_type != element:
            value = self._map(converted(node.args[0], node.array), [value])
        if data:
            if node.array in self.homes and self.homes[node.array].memory is None:
                raise self._refused("an array for another task is filled under a condition on data", node)
            old = self._load(node.array, index, when)
            value = self._where(data, value, old, node.array)
        self._write_array(node.array, value, index, when)

    def _write_array(
        self, array: KernelArray, value: SSAValue, index: Sequence[LinearForm], when: GuardAttr
    ) -> None:  # fmt: skip
        home = self.homes.get(array)
        targets = list(home.channels) if home is not None else []
        if home is None or home.memory is not None:
            targets.append(home.memory if home is not None and home.memory else self.kernel.memory(self.own, array))
        shaped = self._shaped(value, len(array.dims))
        for target in targets:
            self._add(nest.StoreOp(shaped, target, self._address(index), when))

    def _take(self, node: KernelValue) -> SSAValue:
        return self._add(nest.ReadOp(self._stream(node, node.args), self._guard(node)))

    def _put(self, node: KernelValue) -> None:
        parts, data = split(node.guard, self.part.item)
        if data:
            raise self._refused("a stream is written under a condition that no single counter decides", node)
        if not never(parts, self.part):
            stream = self._stream(node, node.args[1:])
            value = self._value(node.args[0])
            assert isinstance(stream.type, StreamType)
            wanted = vector_type(stream.type.token).element_type
            if vector_type(value).element_type != wanted:
                assert node.streams is not None
                value = self._map(converted(node.args[0], node.streams), [value])
            self._add(nest.WriteOp(value, stream, self._guard(node)))

    def _stream(self, node: KernelValue, lane: Sequence[KernelValue]) -> SSAValue:
        assert node.streams is not None
        return self.kernel.stream(node.streams, tuple(int(arg.value or 0) for arg in lane))

    def _index(self, index: Sequence[KernelValue], node: KernelValue) -> list[LinearForm]:
        found = [arg.linear for arg in index]
        if any(one is None or any(c not in self.part.at for c, _ in one.terms) for one in found):
            raise self._refused("an address that is not linear in the loops' counters", node)
        return [one for one in found if one is not None]

    def _address(self, index: Sequence[LinearForm]) -> AffineMap:
        results: list[AffineExpr] = []
        for linear in index:
            places = [(*self.part.at[counter], factor) for counter, factor in linear.terms]
            base = linear.base - sum(factor * offset for _, offset, factor in places)
            expression: AffineExpr = AffineConstantExpr(base)
            for loop, _, factor in places:
                expression = expression + AffineDimExpr(self.loops.index(loop)) * factor
            results.append(expression)
        return AffineMap(len(self.loops), 0, tuple(results))

    # small things

    def _zero(self, rank: int) -> AffineMap:
        return AffineMap(len(self.loops), 0, (AffineConstantExpr(0),) * rank)

    def _row(self, value: SSAValue) -> SSAValue:
        """A value of one lane in one dim, as all others are."""
        rank = len(lane_shape(value))
        return value if rank == 1 else self._add(PickOp(value, AffineMap(1, 0, (AffineDimExpr(0),)), [1]))

    def _shaped(self, value: SSAValue, rank: int) -> SSAValue:
        if rank == 1:
            return value
        return self._add(PickOp(value, AffineMap(rank, 0, (AffineDimExpr(0),)), [1] * rank))

    def _constant(self, value: float, kind: Attribute) -> SSAValue:
        key = "constant", value, str(kind), str(value)
        if key not in self.values:
            self.values[key] = self._add(nest.ConstantOp(attribute_of(value, kind), VectorType(kind, [1])))
        return self.values[key]

    def _type(self, node: KernelValue) -> Attribute:
        return self.kernel.element(node.kind, kept_width(node), f"{self.part.item.where}")

    def _add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0] if op.results else op.operands[0]

    def _refused(self, what: str, node: KernelValue | None = None) -> PenstockError:
        file, _, place = self.part.item.where.partition(":")
        return PenstockError(
            code="no-nests", what=what, where=f"{file}:{node.line}:1" if node is not None and node.line else
            f"{file}:{place}", limit="nests have affine addresses and guards of single counters",
            hint="analyse the kernel for its cycles alone",
        )  # fmt: skip
