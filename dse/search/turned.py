"""The same design with less turned around between its kernels, where that costs no time.

A converter holds what one kernel makes until another reads it in another order: whole tensors where the orders differ
in their slowest dim. A descent through many kernels comes to those of the most work alone, so that a maximum over rows,
say, walks otherwise than what makes the rows. Here kernels on both sides of the largest converters walk otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.lanes.neighbours import leader_of
from penstock.dse.search.dies import DiesHold
from penstock.dse.space.fitted import WALK
from penstock.dse.space.tiling import Choices, Params
from penstock.profiling.network import TaskNetwork
from penstock.profiling.prefetch import computes

_MOST_LOOKS, _LARGEST, _FEWER = 24, 4, 0.9
"""Settings that are looked at, converters whose kernels walk otherwise, and what part of the bits may be left."""


def less_turned(evaluator: Evaluator, choices: Choices, best: Evaluation, dies: DiesHold) -> Evaluation:
    """What holds notably less in converters, is as fast, and stands on the dies if `best` does; or else `best`."""
    held, looks = _turned(evaluator, best), 0
    while True:
        found = best
        for params in _otherwise(evaluator, choices, best):
            looks += 1
            if looks > _MOST_LOOKS:
                return best
            other = _as_fast(evaluator, params, best)
            if other is None or (fewer := _turned(evaluator, other)) > held * _FEWER:
                continue
            if dies.excess(other) <= max(0.0, dies.excess(best)):
                found, held = other, fewer
                break
        if found is best:
            return best
        best = found


def _as_fast(evaluator: Evaluator, params: Params, best: Evaluation) -> Evaluation | None:
    try:
        if evaluator.outlook(params).values[0] > best.values[0]:
            return None
        other = evaluator.assume(params)
    except PenstockError:  # it cannot be laid out
        return None
    return other if other.feasible and other.values[0] <= best.values[0] else None


def _otherwise(evaluator: Evaluator, choices: Choices, best: Evaluation) -> Iterator[Params]:
    """One kernel beside a converter with another walk, the largest converters first."""
    network, known = evaluator.assembler.network(best.design), set[str]()
    largest = sorted(_converters(network).items(), key=lambda item: -item[1])[:_LARGEST]
    for channel, _ in largest:
        for layer in _beside(channel, network):
            name = f"{WALK}.{_walking(evaluator, layer)}"
            if name in choices and name in best.params and name not in known:
                known.add(name)
                yield from ({**best.params, name: value} for value in choices[name] if value != best.params[name])


def _turned(evaluator: Evaluator, one: Evaluation) -> int:
    return sum(_converters(evaluator.assembler.network(one.design)).values())


def _converters(network: TaskNetwork) -> dict[str, int]:
    return {n: c.bits * c.words * c.depth for n, c in network.channels.items() if c.kind == "block"}


def _beside(channel: str, network: TaskNetwork) -> list[str]:
    """The layers of the nearest kernels that compute with what a converter gives them, or make what it takes."""
    readers, writers = _near(channel, network, 1), _near(channel, network, 0)
    return [*readers, *writers]


def _near(channel: str, network: TaskNetwork, end: int) -> list[str]:
    ends, tasks = network.ends(), {task.name: task for task in network.tasks}
    found, waiting = dict[str, None](), [channel]
    while waiting:
        task = tasks[ends[waiting.pop()][end]]
        if any(computes(nest) for nest in task.nests):
            found[task.layer] = None
        else:
            waiting += [name for name, both in ends.items() if both[1 - end] == task.name]
    return list(found)


def _walking(evaluator: Evaluator, layer: str) -> str:
    """The kernel whose walk a layer goes along with: itself, or what makes the operand that it takes as it comes."""
    graph = evaluator.space.graph
    operations: dict[str, TensorOp] = {op.layer: op for op in graph.operations}
    op = operations.get(layer)
    while op is not None and f"{WALK}.{op.layer}" not in evaluator.space.choices:
        op = leader_of(op, graph)
    return layer if op is None else op.layer
