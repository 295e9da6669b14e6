"""The same design with less turned around between its kernels, where that costs no time.

A converter holds what one kernel makes until another reads it in another order: whole tensors where the orders differ
in their slowest dim. A descent through many kernels comes to those of the most work alone, so that a maximum over rows,
say, walks otherwise than what makes the rows. Here kernels on both sides of the largest converters walk otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.fifo import LEAST_DEPTH
from penstock.dse.lanes.neighbours import follow, leader_of
from penstock.dse.search.dies import DiesHold
from penstock.dse.space.fitted import WALK, outer_of
from penstock.dse.space.tiling import Choices, Params, Value
from penstock.profiling.network import TaskNetwork
from penstock.profiling.prefetch import computes

_MOST_LOOKS, _LARGEST, _FEWER = 64, 4, 0.9
"""Settings that are looked at, converters whose kernels walk otherwise, and what part of the bits may be left."""


def less_turned(evaluator: Evaluator, choices: Choices, best: Evaluation, dies: DiesHold) -> Evaluation:
    """What holds notably less between kernels, is as good, and stands on the dies if `best` does; or else `best`."""
    held, looked = _turned(evaluator, best), {evaluator.means(best.params)}
    while True:
        found = best
        for name, value in other_walks(evaluator, choices, best):
            params = {**best.params, name: value}
            if (means := evaluator.means(params)) in looked:  # walks of few lanes are mostly those of some more
                continue
            if len(looked) > _MOST_LOOKS:
                return best
            looked.add(means)
            other = _as_good(evaluator, params, best)
            if other is None or (fewer := _turned(evaluator, other)) > held * _FEWER:
                continue
            if dies.excess(other) <= max(0.0, dies.excess(best)):
                found, held = other, fewer
                break
        if found is best:
            return best
        best = found


def _as_good(evaluator: Evaluator, params: Params, best: Evaluation) -> Evaluation | None:
    try:
        if evaluator.outlook(params).values[0] > best.values[0]:
            return None
        other = evaluator.assume(params)
    except PenstockError:  # it cannot be laid out
        return None
    return other if other.feasible and other.values <= best.values else None  # else the best would be chosen again


def other_walks(evaluator: Evaluator, choices: Choices, best: Evaluation) -> Iterator[tuple[str, Value]]:
    """Another walk for one kernel beside a large converter: one for each of them, then the next ones.

    First those with which it goes along with the kernel on the other side, with few lanes or many. A kernel of many
    dims has so many walks that all looks would go to it.
    """
    network, walks = evaluator.assembler.network(best.design), dict[str, dict[Value, None]]()
    largest = sorted(_converters(network).items(), key=lambda item: -item[1])[:_LARGEST]
    for channel, _ in largest:
        beside = dict.fromkeys(_walking(evaluator, layer) for layer in _beside(channel, network))
        in_step = [_in_step(evaluator, best, layer) for layer in beside]
        for name in (f"{WALK}.{layer}" for layer in beside):
            if name in choices and name in best.params:
                outer = [one[name] for one in in_step if name in one]
                likely = [value for value in choices[name] if outer_of(value) in outer]
                walks.setdefault(name, {}).update(dict.fromkeys((*likely, *choices[name])))
    values = {name: [value for value in all_of if value != best.params[name]] for name, all_of in walks.items()}
    for place in range(max(map(len, values.values()), default=0)):
        yield from ((name, ways[place]) for name, ways in values.items() if place < len(ways))


def _in_step(evaluator: Evaluator, best: Evaluation, layer: str) -> Mapping[str, str]:
    """The dims that the other kernels walk slowly if they go along with one of them."""
    space = evaluator.space
    walks = space.fitting.walks(space.settings(best.params))
    op = next((op for op in space.graph.operations if op.layer == layer and layer in walks), None)
    if op is None:
        return {}
    others = {name: walk for name, walk in follow(walks, op, space.graph).items() if name != layer}
    return {name: outer_of(walk) for name, walk in space.fitting.named(others).items()}


def _turned(evaluator: Evaluator, one: Evaluation) -> int:
    """Bits of converters, and of the tokens that pass between kernels, of which a FIFO holds at least two."""
    streams = [c for c in one.figures.channels if c.kind == "stream" and c.prefetch is None]
    return sum(_converters(evaluator.assembler.network(one.design)).values()) + sum(
        c.bits * min(one.design.fifo_depths.get(c.name, LEAST_DEPTH), LEAST_DEPTH) for c in streams
    )


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
