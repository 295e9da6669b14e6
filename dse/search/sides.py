"""All kernels before a place of the model, or all behind it, or of a group, made faster or slower together.

Where a kernel needs all that comes before it, such as a softmax its whole row, what is before and what is behind run
one after the other, each with its part of the operators: the shorter a part takes, the longer the other. No kernel
alone gains by giving up lanes, since the others beside it stay as slow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from xdsl.ir import OpResult

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.space.fitted import FAVOUR
from penstock.dse.space.grouping import BUDGET
from penstock.dse.space.tiling import Choices, Params, Value


def sides_of(graph: Graph, places: Sequence[TensorOp]) -> list[frozenset[str]]:
    """The kernels up to each of these, and those from it on: each set of more than one once, and never all of them."""
    up, down = _before(graph), dict[str, set[str]]()
    for layer, before in up.items():
        for one in before:
            down.setdefault(one, set()).add(layer)
    found = [frozenset({op.layer, *side.get(op.layer, ())}) for op in places for side in (up, down)]
    return list(dict.fromkeys(side for side in found if 1 < len(side) < len(up)))


def favoured(choices: Choices, params: Params, sides: Iterable[frozenset[str]]) -> Iterator[dict[str, Value]]:
    """Each side a step faster, and a step slower."""
    for side in sides:
        names = [f"{FAVOUR}.{layer}" for layer in sorted(side)]
        for step in (-1, 1):
            if changed := stepped(choices, params, names, step):
                yield {**params, **changed}


def regrouped(choices: Choices, best: Evaluation) -> Iterator[dict[str, Value]]:
    """With more or less memory between the kernels of a group; all kernels of a group made faster or slower.

    Groups run one after the other, so the time of each counts, not just that of the slowest kernel.
    """
    budget, groups = best.params.get(BUDGET), best.design.groups
    if not groups:
        return
    yield from ({**best.params, BUDGET: other} for other in choices[BUDGET] if other != budget)
    for group in sorted(set(groups.values())):
        names = [f"{FAVOUR}.{layer}" for layer in groups if groups[layer] == group]
        for step in (-1, 1):
            yield {**best.params, **stepped(choices, best.params, names, step)}


def stepped(choices: Choices, params: Mapping[str, Value], names: Iterable[str], step: int) -> dict[str, Value]:
    """The values next to those of these parameters, where there are any."""
    found: dict[str, Value] = {}
    for name in names:
        values = choices.get(name, ())
        if name in params and 0 <= (place := values.index(params[name]) + step) < len(values):
            found[name] = values[place]
    return found


def _before(graph: Graph) -> dict[str, set[str]]:
    """For each kernel all whose results it needs, whatever is between."""
    makers = graph.makers
    found: dict[str, set[str]] = {}
    for op in graph.operations:  # in an order in which each is after what it needs
        before, values = set[str](), list(op.inputs)
        while values:
            value = values.pop()
            if (maker := makers.get(value)) is not None:
                before |= {maker.layer} | found[maker.layer]
            elif isinstance(value, OpResult):
                values.extend(value.op.operands)
        found[op.layer] = before
    return found
