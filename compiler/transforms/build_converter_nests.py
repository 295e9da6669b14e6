"""Builds the nests of a converter: one over a line buffer, or a writer and a reader on a block channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from compiler.analysis.converter import ConverterPlan
from compiler.analysis.converting import choose_plan
from compiler.analysis.one_pass import OnePassPlan
from compiler.analysis.walks import LoopOf
from compiler.dialects import nest, stream
from compiler.dialects.affine import linear_sum
from compiler.dialects.itensor_types import ITensorType
from compiler.dialects.nest import ALWAYS, GuardAttr, Loop
from compiler.dialects.stream import BlocksType
from compiler.transforms.names import c_name


@dataclass(frozen=True)
class Process:
    """A task to be: what its name ends in, its memories and nests."""

    suffix: str
    ops: list[Operation]


@dataclass(frozen=True)
class Conversion:
    """The processes of a converter, and the block channel between them if it has one."""

    processes: tuple[Process, ...]
    block: stream.BlocksOp | None = None


def build_converter(
    name: str, kinds: tuple[ITensorType, ITensorType], source: SSAValue, targets: Sequence[SSAValue]
) -> Conversion:
    """From the FIFO `source` into the FIFOs `targets`."""
    plan = choose_plan(*kinds)
    if isinstance(plan, OnePassPlan):
        return Conversion((Process("", _one_pass(plan, kinds, source, targets)),))
    block = block_channel(name, plan, kinds[0])
    loops = [*plan.shared, *plan.source]
    body, value = Block(), nest.ReadOp(source, ALWAYS)
    body.add_ops([value, nest.StoreOp(value.result, block.result, corners(loops, kinds[0], len(plan.shared)), ALWAYS)])
    writer = nest.NestOp("write", named(loops, len(plan.shared)), Region(body), block_loops=len(plan.shared))
    return Conversion((Process("_write", [writer]), block_reader(plan, kinds[1], block, targets)), block)


def block_channel(name: str, plan: ConverterPlan, kind: ITensorType) -> stream.BlocksOp:
    """Two blocks in turn: one is filled while the other is read."""
    block = stream.BlocksOp(f"{name}.block", BlocksType.of(MemRefType(kind.dtype, list(plan.block)), 2))
    block.result.name_hint = c_name(block.sym_name.data)
    return block


def block_reader(
    plan: ConverterPlan, kind: ITensorType, block: stream.BlocksOp, targets: Sequence[SSAValue]
) -> Process:
    """Sends each block on in the order that is wanted."""
    loops = [*plan.shared, *plan.target]
    body = Block()
    token = nest.LoadOp(block.result, corners(loops, kind, len(plan.shared)), ALWAYS, token_of(kind))
    body.add_ops([token, *push(token.result, targets, ALWAYS)])
    nests = nest.NestOp("read", named(loops, len(plan.shared)), Region(body), block_loops=len(plan.shared))
    return Process("_read", [nests])


def _one_pass(
    plan: OnePassPlan, kinds: tuple[ITensorType, ITensorType], source: SSAValue, targets: Sequence[SSAValue]
) -> list[Operation]:
    """Each slot stores what comes in and sends what is complete; what was stored in the same slot is seen."""
    line = stream.BufferOp("line", MemRefType(kinds[0].dtype, list(plan.memory)))
    line.result.name_hint = "line"
    taken, sent = GuardAttr(plan.read), GuardAttr(plan.write)
    body, value = Block(), nest.ReadOp(source, taken)
    token = nest.LoadOp(line.result, plan.load, sent, token_of(kinds[1]))
    body.add_ops([
        value, nest.StoreOp(value.result, line.result, plan.store, taken),
        token, *push(token.result, targets, sent),
    ])  # fmt: skip
    return [line, nest.NestOp("pass", plan.loops, Region(body))]


def push(value: SSAValue, targets: Sequence[SSAValue], when: GuardAttr) -> list[Operation]:
    """A token into every FIFO that wants it, in one slot."""
    return [nest.WriteOp(value, target, when) for target in targets]


def corners(loops: Sequence[LoopOf], kind: ITensorType, skip: int = 0) -> AffineMap:
    """Where each slice of a walk lies; the first `skip` loops do not move it (they change blocks)."""
    coordinates = [
        linear_sum([(i, step) for i, (_, step, target) in enumerate(loops) if target == dim and i >= skip])
        for dim in range(len(kind.element_shape))
    ]
    return AffineMap(max(len(loops), skip + 1), 0, tuple(coordinates))


def named(loops: Sequence[LoopOf], skip: int = 0) -> list[Loop]:
    """Loops with names for people; a walk of one slice still has a loop."""
    trips = [trip for trip, _, _ in loops]
    if len(trips) == skip:
        trips.append(1)
    return [Loop(f"s{i}" if i < skip else f"w{i}", trip) for i, trip in enumerate(trips)]


def token_of(kind: ITensorType) -> VectorType:
    return VectorType(kind.dtype, kind.element_shape)
