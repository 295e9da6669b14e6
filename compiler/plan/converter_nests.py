"""Builds the nests of a converter: one over a line buffer or the last tokens, or a writer and a reader of blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.converter import ConverterPlan
from penstock.compiler.analysis.converting import choose_plan
from penstock.compiler.analysis.nests import (
    Load,
    NestFacts,
    NestValue,
    Place,
    Read,
    Statement,
    StoreFact,
    Write,
    accesses_in,
)
from penstock.compiler.analysis.one_pass import OnePassPlan
from penstock.compiler.analysis.regroup import RegroupPlan
from penstock.compiler.analysis.walks import LoopOf
from penstock.compiler.dialects.affine import linear_sum
from penstock.compiler.dialects.itensor_types import ITensorType
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr, Loop
from penstock.compiler.plan.names import block_name
from penstock.compiler.plan.regroup_nests import build_regroup

BLOCKS = 2
"""In a block channel, where the design does not say: one is filled while the other is read."""


@dataclass(frozen=True)
class Process:
    """A task to be: what its name ends in, and its nest. One with a `stripe` reads that bank's share of a tensor."""

    suffix: str
    nest: NestFacts
    stripe: int | None = None


@dataclass(frozen=True)
class PartNests:
    """The processes of a part, and the block channel and the FIFOs between them if it has some."""

    processes: tuple[Process, ...]
    block: Place | None = None
    fifos: tuple[Place, ...] = ()

    def __post_init__(self) -> None:
        """Both ends say how the block is cut into banks, which each end's addresses follow from."""
        if (block := self.block) is not None:
            block.elsewhere = tuple([a for process in self.processes for a in accesses_in(process.nest, block)])


def build_converter(
    name: str, kinds: tuple[ITensorType, ITensorType], source: Place, targets: Sequence[Place]
) -> PartNests:
    """From the FIFO `source` into the FIFOs `targets`."""
    plan = choose_plan(*kinds)
    if isinstance(plan, OnePassPlan):
        return PartNests((Process("", _one_pass(plan, kinds, source, targets)),))
    if isinstance(plan, RegroupPlan):
        return PartNests((Process("", build_regroup(plan, source, targets)),))
    block = block_channel(name, plan, kinds[0])
    loops, skip = [*plan.shared, *plan.source], len(plan.shared)
    writer = NestFacts("write", named(loops, skip), collect(source, block, corners(loops, kinds[0], skip)), skip)
    return PartNests((Process("_write", writer), block_reader(plan, kinds[1], block, targets)), block)


def block_channel(name: str, plan: ConverterPlan, kind: ITensorType) -> Place:
    """Where blocks are handed over."""
    return Place(block_name(name), "block", plan.block, kind.dtype)


def block_reader(plan: ConverterPlan, kind: ITensorType, block: Place, targets: Sequence[Place]) -> Process:
    """Sends each block on in the order that is wanted."""
    loops, skip = [*plan.shared, *plan.target], len(plan.shared)
    statements = send(block, corners(loops, kind, skip), kind, targets)
    return Process("_read", NestFacts("read", named(loops, skip), statements, skip))


def _one_pass(
    plan: OnePassPlan, kinds: tuple[ITensorType, ITensorType], source: Place, targets: Sequence[Place]
) -> NestFacts:
    """Each slot stores what comes in and sends what is complete; what was stored in the same slot is seen."""
    line = Place("line", "buffer", plan.memory, kinds[0].dtype)
    taken, sent = GuardAttr(plan.read), GuardAttr(plan.write)
    statements = [
        *collect(source, line, plan.store, taken),
        *send(line, plan.load, kinds[1], targets, sent),
    ]
    return NestFacts("pass", plan.loops, statements)


def collect(source: Place, memory: Place, address: AffineMap, when: GuardAttr = ALWAYS) -> list[Statement]:
    """A token from a FIFO into a memory."""
    token = NestValue(source.shape, source.dtype)
    return [Read(source, when, token), StoreFact(token, memory, address, when)]


def send(
    memory: Place, address: AffineMap, kind: ITensorType, targets: Sequence[Place], when: GuardAttr = ALWAYS
) -> list[Statement]:
    """A slice out of a memory into every FIFO that wants it."""
    token = token_of(kind)
    return [Load(memory, address, when, token), *push(token, targets, when)]


def push(value: NestValue, targets: Sequence[Place], when: GuardAttr) -> list[Statement]:
    """A token into every FIFO that wants it, in one slot."""
    return [Write(value, target, when) for target in targets]


def corners(loops: Sequence[LoopOf], kind: ITensorType, skip: int = 0) -> AffineMap:
    """Where each slice of a walk lies; the first `skip` loops do not move it (they change blocks)."""
    coordinates = [
        linear_sum([(i, step) for i, (_, step, target) in enumerate(loops) if target == dim and i >= skip])
        for dim in range(len(kind.element_shape))
    ]
    return AffineMap(max(len(loops), skip + 1), 0, tuple(coordinates))


def named(loops: Sequence[LoopOf], skip: int = 0) -> tuple[Loop, ...]:
    """Loops with names for people; a walk of one slice still has a loop."""
    trips = [trip for trip, _, _ in loops]
    if len(trips) == skip:
        trips.append(1)
    return tuple([Loop(f"s{i}" if i < skip else f"w{i}", trip) for i, trip in enumerate(trips)])


def token_of(kind: ITensorType) -> NestValue:
    return NestValue(kind.element_shape, kind.dtype)
