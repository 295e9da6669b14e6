"""A kernel at the stream level: its tasks, channels, memories and nests, as everything else of the compiler has them.

What a nest computes is what the source computes, in the source's order: sums are not balanced here. So interpreter,
C++ and SystemVerilog of these nests can be held against the source itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp, StringAttr, VectorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.arrays import Array
from penstock.compiler.dialects import stream
from penstock.compiler.dialects.stream import BlocksType, StreamType
from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.arguments import KernelArgument, bits_kept
from penstock.compiler.hls_in.conditions import split
from penstock.compiler.hls_in.copies import copy_nest
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.integers import wrapped
from penstock.compiler.hls_in.own_memories import KernelParts, OwnMemories
from penstock.compiler.hls_in.piece_nest import ArrayHome, nest_of
from penstock.compiler.hls_in.pieces import Piece, owners_of, tasks_of
from penstock.compiler.hls_in.records import ReadKernel
from penstock.compiler.hls_in.scalar_bodies import type_of
from penstock.compiler.hls_in.storage import KernelArray, KernelStream, NumberKind
from penstock.compiler.hls_in.stream_ends import StreamEnds
from penstock.compiler.names import Names, c_name, hint_of
from penstock.compiler.scalars.number_types import numpy_dtype

_WIDEST = 64


@dataclass(frozen=True)
class KernelNests:
    """A kernel's module of the stream level, its constant tables by name, and its arguments in order.

    An argument that several tasks read at the same time is an argument for each of them: `copies` says of which.
    """

    module: ModuleOp
    parameters: Mapping[str, Array]
    arguments: tuple[KernelArgument, ...]
    copies: Mapping[str, str]

    def memories(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """What lies in the module's arguments before a run."""
        tokens = {one.name for one in self.arguments if one.part is not None and 0 in one.shape}
        own = {name: values for name, values in given.items() if name not in tokens}
        return {**own, **{copy: given[name] for copy, name in self.copies.items()}}


def nests_of_kernel(kernel: ReadKernel, *, apart: bool = False) -> KernelNests:
    """Refuses by name what nests do not have; cycles are found without them.

    `apart`: an argument that is read and written is copied into a memory first, and into an argument of its own last;
    one of which an iteration loads several words is copied into a memory.
    """
    for place, what in kernel.beyond:
        raise PenstockError(
            code="no-nests", what=what, where=place if ":" in place else f"line {place}",
            limit="one run, and values that the source decides", hint="analyse it for its cycles alone",
        )  # fmt: skip
    try:
        return KernelWriter(kernel, apart).write()
    except VerifyException as error:
        raise PenstockError(
            code="no-nests", what=f"its nests are not sound: {_last_line(error)}", where=kernel.body_at or kernel.name,
            limit="every access lies inside its array wherever its condition holds",
            hint="keep indices within the array's lengths, or let single counters decide the condition around",
        ) from error  # fmt: skip


def _last_line(error: VerifyException) -> str:
    """What a verifier says, without the operation that xDSL prints around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if "does not verify" in line] or lines[-1:] or ["nothing is said"]
    return said[0].rpartition("does not verify: ")[2].strip(" |")[:300]


class KernelWriter(KernelParts):
    def __init__(self, kernel: ReadKernel, apart: bool = False) -> None:
        self.kernel = kernel
        self.apart = apart
        self.tasks = tasks_of(kernel)
        self.owners = owners_of(self.tasks)
        self.block = Block()
        self.channels: list[Operation] = []
        self.parameters: dict[str, Array] = {}
        self.arguments: dict[KernelArray | KernelValue, SSAValue] = {}
        self.views: dict[tuple[KernelArray | KernelValue, str], SSAValue] = {}
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.copies: dict[str, str] = {}
        self.taken = Names([c_name(kernel.name)])
        self.labels: dict[object, str] = {}
        self.label_names = Names()
        self.streams: dict[tuple[KernelStream, tuple[int, ...]], SSAValue] = {}
        self.carried = {one.after: one for _, pieces in self.tasks for piece in pieces for one in piece.carried}
        self.written = {a for _, pieces in self.tasks for piece in pieces for a in _stored(piece)}
        self.updated = {a for a in self.written if a.argument and apart and self._is_read(a)}
        self.crowded = {a for a in self._loaded_often() if apart and a.argument and a not in self.written}
        self.results: dict[KernelArray, SSAValue] = {}
        """Where what is left in updated arguments goes."""
        self.exported = self._exports()
        self.handed: dict[tuple[KernelArray, str], SSAValue] = {}
        """The block channel on which an array reaches a task."""

    def write(self) -> KernelNests:
        given = {
            name: [self._argument(name, what)] for name, what in self.kernel.arguments
            if not isinstance(what, KernelStream)
        }  # fmt: skip
        self._hand_over()
        tasks = [self._task(name, pieces) for name, pieces in self.tasks]
        ends = StreamEnds(self)
        for name, what in self.kernel.arguments:
            if isinstance(what, KernelStream):
                given[name] = ends.serve(name, what)
        described = [one for name, _ in self.kernel.arguments for one in given[name]]
        if not any(one.written for one in described):
            raise PenstockError(
                code="no-nests", what=f"{self.kernel.name!r} changes nothing that is seen outside of it",
                where=self.kernel.body_at, limit="values are of arguments that are written",
                hint="write to an argument, or analyse it for its cycles alone",
            )  # fmt: skip
        self.block.add_ops([*self.channels, *ends.feeding, *tasks, *ends.taking])
        names, kinds = (ArrayAttr([StringAttr(text) for text in texts]) for texts in (self.names, self.kinds))
        module = ModuleOp([stream.TopOp(c_name(self.kernel.name), names, kinds, Region(self.block))])
        module.verify()
        return KernelNests(module, self.parameters, tuple(described), self.copies)

    def _argument(self, name: str, what: KernelArray | KernelValue) -> KernelArgument:
        element = self.element(what.kind, what.bits, getattr(what, "where", "") or self.kernel.body_at)
        shape = what.dims if isinstance(what, KernelArray) else (1,)
        written = isinstance(what, KernelArray) and what in self.written
        kind = MemRefType(element, shape, memory_space=stream.ON_CHIP)
        self.arguments[what] = self.insert(name, kind, "output" if written and what not in self.updated else "input")
        if isinstance(what, KernelArray) and what in self.updated:
            self.copies[f"{name}__out"] = name
            self.results[what] = self.insert(f"{name}__out", kind, "output")
        dtype = numpy_dtype(element)
        scalar = not isinstance(what, KernelArray)
        returned = isinstance(what, KernelArray) and what.returned
        bits = bits_kept(what, dtype.name)
        return KernelArgument(name, shape, dtype.name, scalar, written, bits, what.signed, returned=returned)

    def insert(self, name: str, kind: Attribute, use: str) -> SSAValue:
        argument = self.block.insert_arg(kind, len(self.block.args))
        argument.name_hint = hint_of(c_name(name))
        self.names.append(name)
        self.kinds.append(use)
        return argument

    def argument(self, own: OwnMemories, what: KernelArray | KernelValue) -> SSAValue:
        """An argument as a task meets it: the first task itself, every other one by a port of its own."""
        user = own.task + (own.turn if what not in self.written and what not in self.updated else "")
        key = what, user
        if key not in self.views:
            argument = self.arguments[what]
            others = [task for one, task in self.views if one is what]
            if others:
                name = self.names[self.block.args.index(argument)]
                if isinstance(what, KernelArray) and what in self.written:
                    raise PenstockError(
                        code="no-nests", what=f"the argument {name!r} is written while the tasks {others[0]} and "
                        f"{user} use it", where=what.where, limit="one task uses an argument that is written",
                        hint="use a local array between tasks, or analyse the kernel for its cycles alone",
                    )  # fmt: skip
                copy = f"{name}__{user}"
                self.copies[copy] = name
                argument = self.insert(copy, argument.type, "input")
            self.views[key] = argument
        return self.views[key]

    def element(self, kind: NumberKind, bits: int, where: str) -> Attribute:
        found = type_of(kind, bits)
        if found is None or (kind == "int" and bits > _WIDEST):
            what = f"integers of {bits} bits" if kind == "int" else f"numbers of the kind {kind}"
            raise PenstockError(
                code="no-nests", what=what, where=where, limit=f"integers of up to {_WIDEST} bits, half, float and "
                "double", hint="analyse it for its cycles alone",
            )  # fmt: skip
        return found

    # arrays between tasks

    def _hand_over(self) -> None:
        """A block channel from the task that fills an array to each other task that reads it."""
        for array in self.kernel.arrays:
            if array.argument or array in self.kernel.tables:
                continue
            begun = array in self.kernel.initial
            writers = [name for name, pieces in self.tasks if any(array in _stored(p) for p in pieces)]
            readers = [
                name for name, pieces in self.tasks
                if name not in writers and any(array in _loaded(p) for p in pieces)
            ]  # fmt: skip
            if len(writers) > 1:
                raise PenstockError(
                    code="no-nests", what=f"the array {array.name!r} is filled by the tasks {', '.join(writers)}",
                    where=array.where, limit="one task fills an array that another reads",
                    hint="let one task fill it, or analyse the kernel for its cycles alone",
                )  # fmt: skip
            if begun and readers and writers:
                raise PenstockError(
                    code="no-nests", what=f"the array {array.name!r} with values from the start is filled by the task "
                    f"{writers[0]} and read by {readers[0]}", where=array.where, limit="one task knows such an array",
                    hint="let the task that fills it write all of it, or analyse the kernel for its cycles alone",
                )  # fmt: skip
            for reader in readers if writers else ():
                self._channel(array, reader)

    def _channel(self, array: KernelArray, reader: str) -> None:
        kind = MemRefType(self.element(array.kind, array.bits, array.where), array.dims)
        op = stream.BlocksOp(self.taken.take(f"{c_name(array.name)}__{c_name(reader)}"), BlocksType.of(kind, 2))
        op.result.name_hint = hint_of(op.sym_name.data)
        self.channels.append(op)
        self.handed[array, reader] = op.result

    def stream(self, streams: KernelStream, lane: tuple[int, ...]) -> SSAValue:
        key = streams, lane
        if key not in self.streams:
            name = self.taken.take("_".join([c_name(streams.name), *map(str, lane)]))
            token = VectorType(self.element(streams.kind, streams.bits, streams.where), [1])
            op = stream.StreamOp(name, StreamType.of(token, streams.depth))
            op.result.name_hint = hint_of(name)
            self.channels.append(op)
            self.streams[key] = op.result
        return self.streams[key]

    # tasks

    def _task(self, name: str, pieces: list[Piece]) -> stream.TaskOp:
        label = self.taken.take(c_name(name))
        own = OwnMemories(name, Names())
        nests: list[Operation] = []
        labels = Names()
        filled = {a for p in pieces for a in _stored(p)}
        taken = {a: channel for (a, reader), channel in self.handed.items() if reader == name}
        given: dict[KernelArray, list[SSAValue]] = {}
        for (array, reader), channel in self.handed.items():
            if reader != name and array in filled:
                given.setdefault(array, []).append(channel)
        homes: dict[KernelArray, ArrayHome] = {}
        for array, channel in taken.items():
            if sum(array in _loaded(p) for p in pieces) > 1:
                local = own.buffer(array, f"{array.name}_mem", array.dims, self._element(array))
                homes[array] = ArrayHome(local, ())
                nests.append(copy_nest(labels.take(f"take_{c_name(array.name)}"), array.dims, channel, [local]))
            else:
                homes[array] = ArrayHome(channel, ())
        late: list[tuple[KernelArray, SSAValue, list[SSAValue]]] = []
        for array, channels in given.items():
            once = sum(array in _stored(p) for p in pieces) == 1
            read = any(array in _loaded(p) for p in pieces)
            if once and not read and len(channels) == 1:
                homes[array] = ArrayHome(None, tuple(channels))
                continue
            local = own.buffer(array, f"{array.name}_mem", array.dims, self._element(array))
            homes[array] = ArrayHome(local, () if not once else tuple(channels))
            if not once:
                late.append((array, local, channels))
        mine = [a for a in self.updated | self.crowded if any(a in _stored(p) or a in _loaded(p) for p in pieces)]
        for array in sorted(mine, key=lambda array: array.name):
            local = own.buffer(array, f"{array.name}_mem", array.dims, self._element(array))
            homes[array] = ArrayHome(local, ())
            label_in = labels.take(f"take_{c_name(array.name)}")
            nests.append(copy_nest(label_in, array.dims, self.argument(own, array), [local]))
            if array in self.updated:
                late.append((array, local, [self.results[array]]))
        for array, values in self.kernel.initial.items():
            if any(array in _stored(p) or array in _loaded(p) for p in pieces):
                label_in = self._table(f"{array.name}_first", values, array)
                rom = own.rom(("first", array), label_in, array.dims, self._element(array))
                nests.append(
                    copy_nest(labels.take(f"begin_{c_name(array.name)}"), array.dims, rom, [self.memory(own, array)])
                )
        for piece in pieces:
            if piece.acts or self._is_asked(piece):
                nests.append(nest_of(self, own, homes, piece, labels.take(c_name(piece.name))))
        for array, local, channels in late:
            nests.append(copy_nest(labels.take(f"give_{c_name(array.name)}"), array.dims, local, channels))
        return stream.TaskOp(label, label, Region(Block([*own.operations, *nests])))

    def _loaded_often(self) -> set[KernelArray]:
        """Arrays of which one iteration loads several words."""
        found: set[KernelArray] = set()
        for part in (part for _, pieces in self.tasks for piece in pieces for part in piece.parts):
            loads = Counter(node.array for node in part.graph.nodes if node.op == "load" and node.array is not None)
            found |= {array for array, count in loads.items() if count > 1}
        return found

    def _is_read(self, array: KernelArray) -> bool:
        """Whether an array is loaded, by a load or by a store that data decide."""
        return any(
            node.array is array and (node.op in ("load", "phi") or bool(split(node.guard, part.item)[1]))
            for _, pieces in self.tasks for piece in pieces for part in piece.parts for node in part.graph.nodes
        )  # fmt: skip

    def _element(self, array: KernelArray) -> Attribute:
        return self.element(array.kind, array.bits, array.where)

    def _is_asked(self, piece: Piece) -> bool:
        """Whether another piece uses a value of this one."""
        return any(node in self.exported for node in piece.nodes)

    def _exports(self) -> set[KernelValue]:
        found: set[KernelValue] = set()
        for _, pieces in self.tasks:
            for part in (part for piece in pieces for part in piece.parts):
                own = set(part.graph.nodes)
                for node in (*own, *(one.before for one in part.item.carried if one.before is not None)):
                    for arg in (node, *node.args, *([node.guard] if node.guard is not None else [])):
                        if arg not in own and not arg.constant and self.owners.get(arg, part) is not part:
                            found.add(arg)
        return found

    def memory(self, own: OwnMemories, array: KernelArray) -> SSAValue:
        """Where a task finds an array that reaches it by no channel."""
        if array in self.arguments:
            return self.argument(own, array)
        if array in self.kernel.tables:
            label = self._table(array.name, self.kernel.tables[array], array)
            return own.rom(array, label, array.dims, self._element(array))
        return own.buffer(array, f"{array.name}_mem", array.dims, self._element(array))

    def _table(self, name: str, values: tuple[float | int, ...], array: KernelArray) -> str:
        key = name, array
        if key not in self.labels:
            self.labels[key] = self.label_names.take(c_name(name))
        label = self.labels[key]
        if array.kind == "int":
            values = tuple(wrapped(int(value), array.bits, True) for value in values)
        self.parameters[label] = np.array(values, numpy_dtype(self._element(array))).reshape(array.dims)
        return label

    def counts(self, own: OwnMemories, trip: int) -> SSAValue:
        """0, 1, 2, ... as a table: a counter as a number that is computed with."""
        label = f"count_to_{trip}"
        element = self.element("int", 32, label)
        self.parameters[label] = np.arange(trip, dtype=numpy_dtype(element))
        return own.rom(("counts", trip), label, (trip,), element)


def _stored(piece: Piece) -> set[KernelArray]:
    return {
        n.array for n in piece.nodes
        if n.array is not None and (n.op == "store" or (n.op == "phi" and n.follow is not None))
    }  # fmt: skip


def _loaded(piece: Piece) -> set[KernelArray]:
    return {n.array for n in piece.nodes if n.array is not None and n.op in ("load", "phi")}
