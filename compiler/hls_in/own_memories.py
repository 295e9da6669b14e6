"""What a piece of a kernel asks of the whole: the task's own memories, and what stands outside of the task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from penstock.compiler.dialects import stream
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.pieces import PiecePart
from penstock.compiler.hls_in.records import CarriedVariable
from penstock.compiler.hls_in.storage import KernelArray, KernelStream, NumberKind
from penstock.compiler.names import Names, c_name, hint_of


@dataclass
class OwnMemories:
    """What a task calls its own: memories by array, one-word registers by value."""

    task: str
    names: Names
    turn: str = ""
    """Of pieces that take turns in one nest, which of them is being written."""
    operations: list[Operation] = field(default_factory=list[Operation])
    known: dict[object, SSAValue] = field(default_factory=dict[object, SSAValue])

    def buffer(self, key: object, name: str, shape: tuple[int, ...], element: Attribute) -> SSAValue:
        if key not in self.known:
            op = stream.BufferOp(self.names.take(c_name(name)), MemRefType(element, shape))
            op.result.name_hint = hint_of(op.sym_name.data)
            self.operations.append(op)
            self.known[key] = op.result
        return self.known[key]

    def rom(self, key: object, parameter: str, shape: tuple[int, ...], element: Attribute) -> SSAValue:
        if key not in self.known:
            op = stream.RomOp(self.names.take(c_name(parameter)), parameter, MemRefType(element, shape))
            op.result.name_hint = hint_of(op.sym_name.data)
            self.operations.append(op)
            self.known[key] = op.result
        return self.known[key]


class KernelParts(ABC):
    """The kernel as its pieces see it while they are written."""

    arguments: dict[KernelArray | KernelValue, SSAValue]
    carried: Mapping[KernelValue, CarriedVariable]
    owners: Mapping[KernelValue, PiecePart]
    apart: bool
    """Whether each port is read, or written, and by one of the pieces that take turns."""
    exported: set[KernelValue]
    """Values that are made in one part and used in another."""

    @abstractmethod
    def element(self, kind: NumberKind, bits: int, where: str) -> Attribute: ...

    @abstractmethod
    def argument(self, own: OwnMemories, what: KernelArray | KernelValue) -> SSAValue: ...

    @abstractmethod
    def memory(self, own: OwnMemories, array: KernelArray) -> SSAValue: ...

    @abstractmethod
    def stream(self, streams: KernelStream, lane: tuple[int, ...]) -> SSAValue: ...

    @abstractmethod
    def counts(self, own: OwnMemories, trip: int) -> SSAValue: ...
