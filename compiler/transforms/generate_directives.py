"""Derives from nests, design and platform how everything is to be built, and writes it into the IR as attributes.

Memories are cut exactly as far as the lanes of their accesses ask, as analysis/banks.py finds for everyone, and built
of what the design says, or else of what the area model takes them to be.
Nests aim at the interval that their schedule says is reachable. Arguments that are used at the same time have ports
to external memory of their own, as far as the platform has ports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import SSAValue

from penstock.compiler.analysis.banks import Geometry, access_of, accesses_of, geometry_of, lanes_of
from penstock.compiler.analysis.extents import extents_of
from penstock.compiler.analysis.ports import AxiPort, plan_ports
from penstock.compiler.design import Design
from penstock.compiler.dialects import directives, nest, stream
from penstock.compiler.dialects.directives import (
    AxiAttr,
    BanksAttr,
    CarriedAttr,
    Cut,
    FifoAttr,
    MemoryDeclaration,
    PipelineAttr,
    StorageAttr,
)
from penstock.compiler.dialects.nest import MemoryOp
from penstock.compiler.dialects.stream import BlocksType
from penstock.compiler.dialects.types import memref_type
from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.platforms import Platform, load_platform
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.schedule import (
    MemoryShape,
    OperatorLibrary,
    fifo_choices,
    load_library,
    memory_choices,
    schedule_nest,
)
from penstock.compiler.schedule.carried import reuse_distance
from penstock.compiler.transforms.module_rewrite import ModuleRewrite
from penstock.compiler.transforms.passes import Level

_UNKNOWN = "unknown-operator"


@dataclass(frozen=True)
class GenerateDirectives(ModuleRewrite):
    """The pass. It changes attributes only: what the module computes stays."""

    name: ClassVar[str] = "generate-directives"
    takes: ClassVar[Level] = "stream"

    design: Design

    def rewrite(self, module: ModuleOp) -> ModuleOp:
        platform = load_platform(self.design.platform)
        library = load_library(platform.operators, self.design.clock_mhz)
        builder = _Builder(platform, library, dict(self.design.memories))
        for op in module.ops:
            if isinstance(op, stream.TopOp):
                builder.top(op)
                directives.verify_directives(op)
        return module


@dataclass(frozen=True)
class _Builder:
    platform: Platform
    library: OperatorLibrary
    kinds: Mapping[str, str] = field(default_factory=dict[str, str])
    """What memories and FIFOs are built of, where the design has decided."""

    def top(self, top: stream.TopOp) -> None:
        _check_known(top, self.kinds)
        for op in top.walk():
            match op:
                case stream.StreamOp():
                    op.attributes[directives.FIFO] = FifoAttr.of(self.fifo(op))
                case stream.BufferOp() | stream.RomOp() | stream.BlocksOp():
                    self.memory(op)
                case nest.NestOp():
                    op.attributes[directives.PIPELINE] = self.pipeline(op)
                case _:
                    pass
        latency = self.library.memory.external_load_latency
        ports = plan_ports(top, sum(m.ports for m in self.platform.memories), latency)
        arrays = any(stream.lies_on_chip(argument) for argument in top.body.block.args)
        top.attributes[directives.INTERFACES] = ArrayAttr(
            _array(argument) if arrays else _axi(port)
            for argument, port in zip(top.body.block.args, ports, strict=True)
        )
        top.attributes[directives.CONTROL] = StringAttr("ap_ctrl_hs" if arrays else "s_axilite")
        top.attributes[directives.DATAFLOW] = UnitAttr()

    def fifo(self, op: stream.StreamOp) -> str:
        kind, name = op.result.type, op.sym_name.data
        lanes = prod(kind.token.get_shape())
        bits = lanes * directives.element_bits(kind.token.element_type)
        choices = [use.kind for use in fifo_choices(self.library, name, kind.depth.data, bits, lanes)]
        return _decided(name, self.kinds.get(name), choices)

    def pipeline(self, op: nest.NestOp) -> PipelineAttr:
        """What the schedule finds reachable; the ideal where the library does not know an operator."""
        try:
            found = schedule_nest(op, self.library)
        except PenstockError as error:
            if error.code != _UNKNOWN:
                raise
            return PipelineAttr.of(1)
        return PipelineAttr.of(found.ii, flushes=found.flushes)

    def memory(self, op: MemoryDeclaration) -> None:
        accesses, rom = accesses_of(op.result), isinstance(op, stream.RomOp)
        element = op.result.type.block if isinstance(op.result.type, BlocksType) else memref_type(op.result)
        shape, geometry = MemoryShape.of(
            element.get_shape(), type_bits(element), [access_of(a) for a in accesses], rom=rom
        )  # fmt: skip
        name = stored_name(op)
        copies = op.result.type.count.data if isinstance(op.result.type, BlocksType) else 1
        choices = [use.kind for use in memory_choices(self.library, name, shape, copies=copies)]
        kind = _decided(name, self.kinds.get(name), choices)
        op.attributes[directives.BANKS] = _banks(geometry.in_registers if kind == "registers" else geometry)
        op.attributes[directives.STORAGE] = StorageAttr.of(kind, shape.ports_of(kind))
        if isinstance(op, stream.BufferOp) and kind != "registers":
            op.attributes.pop(directives.CARRIED, None)
            distance = _carried_distance(accesses)
            if distance != 1:
                op.attributes[directives.CARRIED] = CarriedAttr.of(distance)


def stored_name(op: MemoryDeclaration | stream.StreamOp) -> str:
    """What a design record calls a memory: a task's own memories have the task's name in front."""
    task = op.parent_op()
    return f"{task.sym_name.data}.{op.sym_name.data}" if isinstance(task, stream.TaskOp) else op.sym_name.data


def _decided(name: str, decided: str | None, choices: Sequence[str]) -> str:
    """The kind that the design says, or the usual one."""
    if decided is None:
        return choices[0]
    if decided not in choices:
        raise PenstockError(
            code="bad-design", what=f"it cannot be built of {decided}", where=f"memories.{name}",
            limit="it can be built of " + ", ".join(choices), hint="choose one of these",
        )  # fmt: skip
    return decided


def _check_known(top: stream.TopOp, kinds: Mapping[str, str]) -> None:
    """A decision about a memory that the design has not is a mistake, not a wish."""
    stored = (op for op in top.walk() if isinstance(op, MemoryDeclaration | stream.StreamOp))
    known = {stored_name(op) for op in stored}
    if unknown := sorted(set(kinds) - known):
        raise PenstockError(
            code="unknown-memory", what="there is no such buffer or FIFO in the design",
            where=f"memories.{unknown[0]}", limit=f"{len(known)} of them",
            hint=nearest(unknown[0], sorted(known), "check the names in the design record"),
        )  # fmt: skip


def _axi(port: AxiPort) -> AxiAttr:
    return AxiAttr.of(
        bundle=port.bundle, bits=port.bits, depth=port.words, burst=port.burst, outstanding=port.outstanding
    )


def _banks(geometry: Geometry) -> BanksAttr:
    return BanksAttr.of([Cut(d.banks, d.granule, complete=d.words == 1 < d.size) for d in geometry.dims])


def _array(argument: SSAValue) -> BanksAttr:
    """An argument on the chip, cut as far as its accesses ask. Each bank has a port, so lanes do not share words."""
    kind = memref_type(argument)
    accesses = [access_of(a) for a in accesses_of(argument)]
    return _banks(geometry_of(kind.get_shape(), accesses, type_bits(kind), widest=1))


def _carried_distance(accesses: Sequence[MemoryOp]) -> int:
    """The least number of iterations from a store to a load of the same word; 0 if there never is one."""
    found: list[int] = []
    for store in accesses:
        for load in accesses:
            if not isinstance(store, nest.StoreOp) or not isinstance(load, nest.LoadOp):
                continue
            parent = load.parent_op()
            if not isinstance(parent, nest.NestOp) or store.parent_op() is not parent:
                continue
            distance = reuse_distance(store.address.data, load.address.data, lanes_of(load), extents_of(parent))
            if distance is not None:
                found.append(distance)
    return min(found, default=0)
