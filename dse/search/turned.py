"""The same design with less between its kernels, where that costs no time.

A converter holds what one kernel makes until another reads it in another order: whole tensors where the orders differ
in their slowest dim. A FIFO holds what its reader is too slow for, or takes in tokens that are wider than they come. A
descent through many kernels comes to those of the most work alone, so that a maximum over rows, say, walks otherwise
than what makes the rows, or has twenty times its lanes. Here kernels on both sides of the channels that hold most walk
otherwise, get fewer lanes or more, or take in bursts sooner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.lanes.neighbours import follow, leader_of
from penstock.dse.search.dies import DiesHold
from penstock.dse.space.fitted import BURST, COMPACT, FAVOUR, WALK, outer_of
from penstock.dse.space.tiling import Choices, Params, TilingSpace, Value
from penstock.profiling.network import TaskNetwork
from penstock.profiling.prefetch import computes

_MOST_LOOKS, _LARGEST, _WAYS, _FEWER = 64, 4, 8, 0.98
"""Settings that are looked at; of converters and of FIFOs, how many have their kernels changed; ways of each parameter
of such a kernel; and what part of the bits may be left."""
_MUCH, _ANY = 0.25, 1 / 32
"""Of all bits, what FIFOs hold together, and one of them, for which kernels beside them are changed: windows of frames
hold far more, and a look at a chip full of them takes half a second."""


def less_turned(evaluator: Evaluator, choices: Choices, best: Evaluation, dies: DiesHold) -> Evaluation:
    """What holds notably less between kernels, is as good, and stands on the dies if `best` does; or else `best`."""
    held, looked = held_between(evaluator, best), {evaluator.means(best.params)}
    tried = set[tuple[str, Value]]()  # what is no better mostly is not with other kernels changed either
    while True:
        found = best
        for name, value in other_ways(evaluator, choices, best):
            params = {**best.params, name: value}
            if (name, value) in tried or (means := evaluator.means(params)) in looked:  # few lanes are mostly some more
                continue
            if len(looked) > _MOST_LOOKS:
                return best
            looked.add(means)
            tried.add((name, value))
            other = _as_good(evaluator, params, best)
            if other is None or (fewer := held_between(evaluator, other)) > held * _FEWER:
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


def other_ways(evaluator: Evaluator, choices: Choices, best: Evaluation) -> Iterator[tuple[str, Value]]:
    """Another walk, another burst, more or fewer lanes for one kernel beside a channel that holds much: one for each of
    them, then the next ones.

    First the walks with which it goes along with the kernel on the other side, with few lanes or many, and the next
    steps of the others. A kernel of many dims has so many walks that all looks would go to it.
    """
    network, ways = evaluator.assembler.network(best.design), dict[str, dict[Value, None]]()
    for channel, kinds in _largest(evaluator, best):
        beside = kernels_beside(evaluator, channel, network)
        in_step = [_in_step(evaluator, best, layer) for layer in beside]
        for name in (f"{kind}.{layer}" for kind in kinds for layer in beside):
            if name in choices and name in best.params:
                outer = [one[name] for one in in_step if name in one]
                likely = [value for value in choices[name] if outer_of(value) in outer]
                others = _nearest_first(choices[name], best.params[name])
                ways.setdefault(name, {}).update(dict.fromkeys((*likely, *others)))
    values = {name: [value for value in all_of if value != best.params[name]][:_WAYS] for name, all_of in ways.items()}
    for place in range(max(map(len, values.values()), default=0)):
        yield from ((name, ways[place]) for name, ways in values.items() if place < len(ways))


def _nearest_first(values: Sequence[Value], now: Value) -> list[Value]:
    """Of a parameter whose values are steps; walks stay as they are."""
    return sorted(values, key=lambda value: abs(values.index(value) - values.index(now)))


def _in_step(evaluator: Evaluator, best: Evaluation, layer: str) -> Mapping[str, str]:
    """The dims that the other kernels walk slowly if they go along with one of them."""
    op = next((op for op in evaluator.space.graph.operations if op.layer == layer), None)
    mine = f"{WALK}.{layer}"
    if op is None or mine not in best.params:
        return {}
    found = followed(evaluator.space, op, best.params)
    return {name: outer_of(walk) for name, walk in found.items() if name.startswith(f"{WALK}.") and name != mine}


def followed(space: TilingSpace, op: TensorOp, params: Params) -> dict[str, Value]:
    """With all around a kernel in step with it."""
    walks = space.fitting.walks(space.settings(params))
    return {**params, **space.fitting.named(follow(walks, op, space.graph))}


def held_between(evaluator: Evaluator, one: Evaluation) -> int:
    """Bits that kernels hand over and converters and FIFOs hold meanwhile, as far as the model knows."""
    return sum(_converters(evaluator, one).values()) + sum(_fifos(one).values())


def _largest(evaluator: Evaluator, one: Evaluation) -> list[tuple[str, Sequence[str]]]:
    """The channels that hold most, and which parameters of the kernels beside them change that: what a converter holds
    follows from walks alone, what a FIFO does from the pace of both sides too."""
    converters, fifos = _converters(evaluator, one), _fifos(one)
    total = sum(converters.values()) + sum(fifos.values())
    most = [name for name in sorted(fifos, key=lambda name: -fifos[name])[:_LARGEST] if fifos[name] >= total * _ANY]
    turned = [(name, (WALK,)) for name in sorted(converters, key=lambda name: -converters[name])[:_LARGEST]]
    waiting = [(name, (WALK, FAVOUR, BURST, COMPACT)) for name in most]
    return [*turned, *(waiting if sum(fifos.values()) >= total * _MUCH else [])]


def _converters(evaluator: Evaluator, one: Evaluation) -> dict[str, int]:
    return converters_of(evaluator.assembler.network(one.design))


def converters_of(network: TaskNetwork) -> dict[str, int]:
    """How many bits each converter holds."""
    return {name: c.bits * c.words * c.depth for name, c in network.channels.items() if c.kind == "block"}


def _fifos(one: Evaluation) -> dict[str, int]:
    channels = [c for c in one.figures.channels if c.kind == "stream" and c.prefetch is None]
    return {c.name: c.bits * max(1, c.high_water) for c in channels}


def kernels_beside(evaluator: Evaluator, channel: str, network: TaskNetwork) -> list[str]:
    """Those with walks of their own that take what a converter gives, or make what it takes, or go along with these."""
    readers, writers = _near(channel, network, 1), _near(channel, network, 0)
    return list(dict.fromkeys(_walking(evaluator, layer) for layer in (*readers, *writers)))


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
