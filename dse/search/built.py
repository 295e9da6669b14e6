"""A design that is short of LUTs, with memories and FIFOs built of what there is more of."""

from __future__ import annotations

from dataclasses import replace

from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluation, Evaluator
from penstock.dse.finishing.placement import NO_PLACE, place


def with_memories(evaluator: Evaluator, evaluation: Evaluation) -> Evaluation | None:
    """The same design with every memory allocated; None if even that does not fit. What its record says is kept."""
    network = evaluator.assembler.network(evaluation.design)
    try:
        placement = place(network, evaluator.platform, evaluator.assembler.library, evaluation.design)
    except PenstockError as error:
        if error.code not in NO_PLACE:
            raise
        return None
    resources, memories = placement.resources, {n: use.kind for n, use in placement.allocation.uses.items()}
    return replace(
        evaluation,
        design=evaluation.design.with_placement({}, memories),
        figures=replace(evaluation.figures, resources=resources),
        shares=resources.share_of(evaluator.platform.limits),
    )
