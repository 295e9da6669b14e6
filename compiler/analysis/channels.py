"""Which FIFOs a stream needs, and what they are called: one a reader, however many forks and casts lie between.

A fork is no task: what makes a stream pushes each token into all of its FIFOs at once. A cast is none either: tokens
are flat, and have the shape that their reader wants.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from penstock.compiler.dialects import itensor
from penstock.compiler.dialects.itensor_types import ITensorType

FREE = (itensor.ForkOp, itensor.CastOp, itensor.ReassociateOp)
"""Operations that cost no hardware."""


def destinations(value: SSAValue) -> list[SSAValue]:
    """What a stream is called where it is read: one value a reader."""
    reader = next(iter(value.uses)).operation
    if isinstance(reader, itensor.ForkOp):
        return [last for copy in reader.copies for last in destinations(copy)]
    if isinstance(reader, itensor.CastOp | itensor.ReassociateOp):
        return destinations(reader.result)
    return [value]


def producer(value: SSAValue) -> Operation:
    """The task that makes a stream, behind forks and casts."""
    owner = value.owner
    assert isinstance(owner, Operation)
    return producer(owner.operands[0]) if isinstance(owner, FREE) else owner


def channel_name(value: SSAValue, name_of: Callable[[Operation], str]) -> str:
    """The FIFO that a reader pops, after its two ends, so that a person finds it in every report."""
    maker, use = producer(value), next(iter(value.uses))
    streams = [o for o in use.operation.operands if isinstance(o.type, ITensorType)]
    siblings = [o for o in streams if producer(o) is maker]
    number = f"_{siblings.index(value)}" if len(siblings) > 1 else ""
    return f"{name_of(maker)}__{name_of(use.operation)}{number}"
