"""Directives: how each memory, channel, pipeline and port of the stream level is to be built, as attributes.

They say nothing about values: interpreters do not read them, backends print them. `generate_directives` derives
them; the verifiers refuse what no tool could build.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from xdsl.dialects.builtin import ArrayAttr, IntAttr, MemRefType, StringAttr, VectorType
from xdsl.ir import Attribute, Data, Dialect, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from penstock.compiler.dialects import nest, stream
from penstock.compiler.dialects.affine import linear_form
from penstock.compiler.dialects.types import vector_type
from penstock.compiler.scalars.number_types import in_words, number_type

MemoryDeclaration = stream.BufferOp | stream.RomOp | stream.BlocksOp
"""What declares a memory on the chip."""

BANKS, STORAGE, CARRIED = "directive.banks", "directive.storage", "directive.carried"
PIPELINE, FIFO = "directive.pipeline", "directive.fifo"
INTERFACES, CONTROL, DATAFLOW = "directive.interfaces", "directive.control", "directive.dataflow"

STORAGE_KINDS = ("registers", "lutram", "bram", "uram")
STORAGE_PORTS = ("any", "ram_1wnr", "ram_s2p", "ram_t2p", "rom_1p", "rom_2p", "rom_np")
FIFO_KINDS = ("registers", "srl", "lutram", "bram", "uram")
LONGEST_BURST, BURST_BYTES = 256, 4096  # AXI's own limits: beats of a burst, and the page that it stays in


@dataclass(frozen=True)
class Cut:
    """How one dim of a memory is cut: words of `word` elements that go round in `banks` memories.

    `complete` says that all of the dim is at hand at once: each bank has one word of it.
    """

    banks: int
    word: int = 1
    complete: bool = False

    @property
    def lanes(self) -> int:
        """Elements that can be met at once."""
        return self.banks * self.word

    def __str__(self) -> str:
        if self.lanes == 1:
            return "none"
        parts = [f"{'complete' if self.complete else 'cyclic'} {self.banks}"] if self.banks > 1 else []
        word = "whole" if self.complete and self.banks == 1 else "word"
        return " ".join([*parts, *([f"{word} {self.word}"] if self.word > 1 else [])])


@irdl_attr_definition
class BanksAttr(Data[tuple[Cut, ...]]):
    """How a memory is cut, dim by dim: `#directive.banks<none, cyclic 3, word 8, complete 4 word 2>`."""

    name = "directive.banks"

    @staticmethod
    def of(cuts: Sequence[Cut]) -> BanksAttr:
        return BanksAttr(tuple(cuts))

    @property
    def cuts(self) -> tuple[Cut, ...]:
        return self.data

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Cut, ...]:
        def cut() -> Cut:
            if parser.parse_optional_keyword("none"):
                return Cut(1)
            banks = word = 1
            complete = False
            if parser.parse_optional_keyword("complete"):
                banks, complete = parser.parse_integer(), True
            elif parser.parse_optional_keyword("cyclic"):
                banks = parser.parse_integer()
            if parser.parse_optional_keyword("whole"):
                word, complete = parser.parse_integer(), True
            elif parser.parse_optional_keyword("word"):
                word = parser.parse_integer()
            if banks == word == 1 and not complete:
                parser.raise_error("a dim is cut none, cyclic n, complete n, word n, whole n, or banks and a word")
            return Cut(banks, word, complete)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, cut))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(str(cut) for cut in self.cuts))

    def verify(self) -> None:
        if any(c.banks < 1 or c.word < 1 for c in self.cuts):
            raise VerifyException(f"banks: {[(c.banks, c.word) for c in self.cuts]} must all be at least 1")


@irdl_attr_definition
class StorageAttr(ParametrizedAttribute):
    """What a memory is built of, and which ports a bank has: `#directive.storage<bram, ram_s2p>`."""

    name = "directive.storage"
    kind: StringAttr
    ports: StringAttr

    @staticmethod
    def of(kind: str, ports: str) -> StorageAttr:
        return StorageAttr(StringAttr(kind), StringAttr(ports))

    def verify(self) -> None:
        if self.kind.data not in STORAGE_KINDS:
            raise VerifyException(f"storage: {self.kind.data!r} is not one of {STORAGE_KINDS}")
        if self.ports.data not in STORAGE_PORTS:
            raise VerifyException(f"storage: ports {self.ports.data!r}; use one of {STORAGE_PORTS}")
        if (self.kind.data == "registers") != (self.ports.data == "any"):
            raise VerifyException(f"storage: {self.kind.data} with ports {self.ports.data}; only registers have any")
        if self.kind.data == "lutram" and self.ports.data == "ram_t2p":
            raise VerifyException("storage: LUTs have one write port, so a lutram cannot be ram_t2p")
        if self.kind.data == "uram" and self.ports.data.startswith("rom"):
            raise VerifyException("storage: an UltraRAM has no initial contents, so it cannot be a ROM")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.kind.data}, {self.ports.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            kind = parser.parse_identifier()
            parser.parse_punctuation(",")
            ports = parser.parse_identifier()
        return [StringAttr(kind), StringAttr(ports)]


@irdl_attr_definition
class FifoAttr(ParametrizedAttribute):
    """What a FIFO is built of: `#directive.fifo<srl>`."""

    name = "directive.fifo"
    kind: StringAttr

    @staticmethod
    def of(kind: str) -> FifoAttr:
        return FifoAttr(StringAttr(kind))

    def verify(self) -> None:
        if self.kind.data not in FIFO_KINDS:
            raise VerifyException(f"fifo: {self.kind.data!r} is not one of {FIFO_KINDS}")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.kind.data)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_identifier())]


class _Numbers(ParametrizedAttribute):
    """A directive of whole numbers, each behind its name: `<bundle: 0, bits: 512>`."""

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        values: list[Attribute] = []
        with parser.in_angle_brackets():
            for name, _ in cls.get_irdl_definition().parameters:
                if values:
                    parser.parse_punctuation(",")
                parser.parse_keyword(name)
                parser.parse_punctuation(":")
                values.append(IntAttr(parser.parse_integer()))
        return values

    def print_parameters(self, printer: Printer) -> None:
        names = [name for name, _ in self.get_irdl_definition().parameters]
        with printer.in_angle_brackets():
            printer.print_string(", ".join(f"{name}: {getattr(self, name).data}" for name in names))


@irdl_attr_definition
class PipelineAttr(_Numbers):
    """The initiation interval that a nest is to reach: `#directive.pipeline<ii: 1>`, or `<ii: 1, flushes>` where what
    has entered goes on while the next iteration waits for input."""

    name = "directive.pipeline"
    ii: IntAttr
    flushes: IntAttr

    @staticmethod
    def of(ii: int, *, flushes: bool = False) -> PipelineAttr:
        return PipelineAttr(IntAttr(ii), IntAttr(int(flushes)))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("ii")
            parser.parse_punctuation(":")
            ii, flushes = IntAttr(parser.parse_integer()), parser.parse_optional_punctuation(",") is not None
            if flushes:
                parser.parse_keyword("flushes")
        return [ii, IntAttr(int(flushes))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"ii: {self.ii.data}" + (", flushes" if self.flushes.data else ""))

    def verify(self) -> None:
        if self.ii.data < 1:
            raise VerifyException(f"pipeline: II {self.ii.data} must be at least 1")


@irdl_attr_definition
class CarriedAttr(_Numbers):
    """After how many iterations a stored word is loaded again: `#directive.carried<distance: 24>`; 0 is never."""

    name = "directive.carried"
    distance: IntAttr

    @staticmethod
    def of(distance: int) -> CarriedAttr:
        return CarriedAttr(IntAttr(distance))

    def verify(self) -> None:
        if self.distance.data < 0:
            raise VerifyException(f"carried: distance {self.distance.data} must be at least 0")


@irdl_attr_definition
class AxiAttr(_Numbers):
    """One argument's way to external memory: `#directive.m_axi<bundle: 0, bits: 512, depth: 64, burst: 16, ...>`.

    `bits` is the port's width, `depth` how many words the argument has, `burst` the longest burst in beats, and
    `outstanding` how many bursts may be under way.
    """

    name = "directive.m_axi"
    bundle: IntAttr
    bits: IntAttr
    depth: IntAttr
    burst: IntAttr
    outstanding: IntAttr

    @staticmethod
    def of(*, bundle: int, bits: int, depth: int, burst: int, outstanding: int) -> AxiAttr:
        return AxiAttr(*(IntAttr(n) for n in (bundle, bits, depth, burst, outstanding)))

    def verify(self) -> None:
        bits, burst, outstanding = self.bits.data, self.burst.data, self.outstanding.data
        if bits < 8 or bits & (bits - 1):
            raise VerifyException(f"m_axi: a port of {bits} bits; it has 8, 16, 32 ... bits")
        if not 1 <= burst <= LONGEST_BURST or burst * bits // 8 > BURST_BYTES:
            raise VerifyException(
                f"m_axi: bursts of {burst} beats of {bits} bits; AXI has {LONGEST_BURST} beats, {BURST_BYTES} bytes"
            )
        if not 1 <= outstanding <= 256 or self.depth.data < 1 or self.bundle.data < 0:
            raise VerifyException(f"m_axi: {outstanding} bursts under way to {self.depth.data} words")


def element_bits(kind: Attribute) -> int:
    """The bits of a scalar on the chip."""
    row = number_type(kind)
    if row.cpp is None:
        raise VerifyException(f"{kind} has no size in hardware; {in_words(lambda row: row.cpp is not None)} have")
    return row.bits


def word_of(memory: MemRefType[Attribute]) -> VectorType[Attribute] | None:
    """The word that an external memory is accessed in, where it is wider than one element."""
    kind = memory.element_type
    return cast("VectorType[Attribute]", kind) if isinstance(kind, VectorType) else None


def interfaces_of(top: stream.TopOp) -> tuple[AxiAttr | BanksAttr, ...]:
    """The ports of a top, one an argument: a way to external memory, or the banks of an array on the chip."""
    found = top.attributes.get(INTERFACES)
    ports = found.data if isa(found, ArrayAttr[AxiAttr | BanksAttr]) else ()
    if len(ports) != len(top.body.block.args):
        raise VerifyException(f"top {top.sym_name.data}: {len(ports)} ports for {len(top.body.block.args)} arguments")
    return ports


def banks_of(memory: Operation) -> BanksAttr:
    return _required(memory, BANKS, BanksAttr)


def storage_of(memory: Operation) -> StorageAttr:
    return _required(memory, STORAGE, StorageAttr)


def fifo_of(channel: Operation) -> FifoAttr:
    return _required(channel, FIFO, FifoAttr)


def pipeline_of(op: Operation) -> PipelineAttr:
    return _required(op, PIPELINE, PipelineAttr)


def carried_of(memory: Operation) -> CarriedAttr | None:
    """None where the tool's own analysis is as good."""
    found = memory.attributes.get(CARRIED)
    return found if isinstance(found, CarriedAttr) else None


_Directive = TypeVar("_Directive", bound=Attribute)


def _required(op: Operation, key: str, kind: type[_Directive]) -> _Directive:
    found = op.attributes.get(key)
    if not isinstance(found, kind):
        symbol = op.properties.get("sym_name")
        name = symbol.data if isinstance(symbol, StringAttr) else ""
        raise VerifyException(f"{op.name} {name}: no {key}; generate_directives has not seen it")
    return found


def verify_directives(top: stream.TopOp) -> None:
    """Everything has its directive, and every access finds each of its lanes in a bank of its own."""
    interfaces_of(top)
    for argument, name in zip(top.body.block.args, top.argument_names, strict=True):
        _verify_argument(argument, name.data)
    for op in top.walk():
        match op:
            case stream.StreamOp():
                fifo_of(op)
            case nest.NestOp():
                pipeline_of(op)
            case stream.BufferOp() | stream.RomOp() | stream.BlocksOp():
                _verify_memory(op)
            case _:
                pass


def _verify_argument(argument: SSAValue, name: str) -> None:
    """Tasks of a kernel run at the same time, so only one of them may touch a memory outside."""
    tasks: dict[int, set[str]] = {}
    for use in argument.uses:
        parent = use.operation.parent_op()
        task = parent.parent_op() if parent is not None else None
        if isinstance(task, stream.TaskOp):
            tasks.setdefault(task.group.data, set()).add(task.sym_name.data)
    for group, names in tasks.items():
        if len(names) > 1:
            raise VerifyException(f"argument {name}: tasks {sorted(names)} of kernel {group} use it at the same time")


def _verify_memory(op: MemoryDeclaration) -> None:
    cuts, shape, name = banks_of(op).cuts, nest.memory_shape(op.result), op.sym_name.data
    if len(cuts) != len(shape):
        raise VerifyException(f"{op.name} {name}: {len(cuts)} cuts of a memory of {len(shape)} dims")
    if any(cut.complete and not 0 <= cut.lanes - size < cut.word for cut, size in zip(cuts, shape, strict=True)):
        raise VerifyException(f"{op.name} {name}: complete banks {[c.lanes for c in cuts]} of a memory {list(shape)}")
    if storage_of(op).ports.data.startswith("rom") and not isinstance(op, stream.RomOp):
        raise VerifyException(f"{op.name} {name}: is written, so its ports cannot be {storage_of(op).ports.data}")
    for use in op.result.uses:
        access = use.operation
        if isinstance(access, nest.LoadOp | nest.StoreOp):
            _verify_access(access, cuts, f"{op.name} {name}")


def _verify_access(access: nest.LoadOp | nest.StoreOp, cuts: Sequence[Cut], what: str) -> None:
    """Every lane in a bank of its own, or in the same word as its neighbour; no word is met in part."""
    lanes = vector_type(access.result if isinstance(access, nest.LoadOp) else access.value).get_shape()
    address, parent = access.address.data, access.parent_op()
    trips = parent.trips if isinstance(parent, nest.NestOp) else (2,) * address.num_dims
    for dim, (cut, count, expression) in enumerate(zip(cuts, lanes, address.results, strict=True)):
        if count > cut.lanes:
            raise VerifyException(f"{what}: {count} lanes meet {cut.lanes} banks of dim {dim}")
        factors, offset = linear_form(expression, address.num_dims)
        moves = [factor for factor, trip in zip(factors, trips, strict=True) if trip > 1]
        if any(n % cut.word for n in (count, offset, *moves)):
            raise VerifyException(f"{what}: an access of {count} lanes cuts words of {cut.word} of dim {dim}")


Directives = Dialect("directive", [], [BanksAttr, StorageAttr, FifoAttr, PipelineAttr, CarriedAttr, AxiAttr])
