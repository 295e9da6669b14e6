"""Which hardware a converter becomes: one nest over one block where the orders allow it, else two blocks in turn."""

from __future__ import annotations

from functools import lru_cache

from compiler.analysis.converter import ConverterPlan, plan_converter
from compiler.analysis.one_pass import OnePassPlan, plan_one_pass
from compiler.analysis.walks import read_walk
from compiler.dialects.itensor_types import ITensorType


@lru_cache(maxsize=4096)
def choose_plan(source: ITensorType, target: ITensorType) -> OnePassPlan | ConverterPlan:
    """One pass unless it would make the source wait while whole blocks are sent again."""
    plan = plan_one_pass(source, target)
    if plan is not None and (plan.burst == 1 or not _repeats_more(source, target)):
        return plan
    return plan_converter(source, target)


def _repeats_more(source: ITensorType, target: ITensorType) -> bool:
    sent, wanted = (sum(trip for trip, _, dim in read_walk(kind).loops if dim is None) for kind in (source, target))
    return wanted > sent
