"""Which hardware a converter becomes: one nest over one block or over the last tokens, else two blocks in turn."""

from __future__ import annotations

from functools import lru_cache

from xdsl.ir import Operation

from penstock.compiler.analysis.converter import ConverterPlan, plan_converter
from penstock.compiler.analysis.one_pass import OnePassPlan, plan_one_pass
from penstock.compiler.analysis.regroup import RegroupPlan, plan_regroup
from penstock.compiler.analysis.walks import read_walk
from penstock.compiler.dialects import itensor
from penstock.compiler.dialects.itensor_types import ITensorType, expect_itensor
from penstock.compiler.scalars.number_types import type_bits

COUNTABLE = 1 << 18
"""In blocks of so many elements it is counted how many are alive at once; beyond, that takes seconds."""


def converted_orders(op: Operation) -> tuple[ITensorType, ITensorType] | None:
    """The orders on both sides of a converter, on its own or as part of a load or store; None for anything else."""
    match op:
        case itensor.ConverterOp():
            return expect_itensor(op.source), expect_itensor(op.result)
        case itensor.LoadOp() if op.through is not None:
            return op.through, expect_itensor(op.result)
        case itensor.StoreOp() if op.through is not None:
            return expect_itensor(op.source), op.through
        case _:
            return None


@lru_cache(maxsize=4096)
def choose_plan(source: ITensorType, target: ITensorType) -> OnePassPlan | RegroupPlan | ConverterPlan:
    """One pass unless it would make the source wait while whole blocks are sent again; no blocks to regroup slices."""
    plan = plan_one_pass(source, target)
    if plan is not None and (plan.burst == 1 or not _repeats_more(source, target)):
        return plan
    return plan_regroup(source, target) or plan_converter(source, target)


def _repeats_more(source: ITensorType, target: ITensorType) -> bool:
    sent, wanted = (sum(trip for trip, _, dim in read_walk(kind).loops if dim is None) for kind in (source, target))
    return wanted > sent


def converter_bits(source: ITensorType, target: ITensorType) -> int:
    """What the memory between two orders holds; none where they are the same."""
    if source == target:
        return 0
    plan = choose_plan(source, target)
    elements = plan.ping_pong_elements if isinstance(plan, ConverterPlan) else plan.elements
    return elements * type_bits(source.dtype)
