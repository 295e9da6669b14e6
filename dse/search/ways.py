"""What may be changed of kernels beside the channels that hold much: one of them, those that are alike, both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from penstock.compiler.analysis.graph import TensorOp
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.waiting import converters_of
from penstock.dse.lanes.neighbours import alike, follow, leader_of
from penstock.dse.search.worth import State
from penstock.dse.space.fitted import BURST, COMPACT, FAVOUR, IN_PARTS, WALK, cap_of, outer_of
from penstock.dse.space.tiling import Choices, Params, TilingSpace, Value
from penstock.profiling.network import TaskNetwork
from penstock.profiling.prefetch import computes

_LARGEST, _WAYS = 8, 8
"""Channels that have their kernels changed; ways of each parameter of such a kernel."""
_MUCH, _ANY = 0.25, 1 / 32
"""Of all bits, what FIFOs hold together, and one channel, for which kernels beside them are changed: windows of frames
hold far more, and a look at a chip full of them takes half a second."""


@dataclass(frozen=True)
class Way:
    """What is changed of one kernel, and whether all around it are to walk in step, or those that are alike change as
    it does."""

    name: str
    value: Value
    in_step: bool = False
    with_alike: bool = False
    others: tuple[tuple[str, Value], ...] = ()
    """What is changed of kernels on the other side, too."""


WaysAround = Callable[[Evaluator, Choices, Evaluation, Mapping[str, int]], Iterator[tuple[Way, State]]]
"""Of the best so far, and what its channels hold."""


def other_ways(
    evaluator: Evaluator, choices: Choices, best: Evaluation, held: Mapping[str, int]
) -> Iterator[tuple[Way, State]]:
    """Another walk, another burst, more or fewer lanes for one kernel beside a channel that has much of what is `held`:
    one for each of them, then the next ones.

    First the walks with which it goes along with the kernel on the other side, with few lanes or many, and the next
    steps of the others. A kernel of many dims has so many walks that all looks would go to it.
    """
    network, ways = evaluator.assembler.network(best.design), dict[str, dict[Way, None]]()
    likes = _alike(evaluator)
    for channel, kinds in _largest(held, network):
        beside = kernels_beside(evaluator, channel, network)
        in_step = [_in_step(evaluator, best, layer) for layer in beside]
        for kind, layer in ((kind, layer) for kind in kinds for layer in beside):
            if (name := f"{kind}.{layer}") not in choices or name not in best.params:
                continue
            here = ways.setdefault(name, {})
            if kind == WALK:
                outer = [one[name] for one in in_step if name in one]
                values = _walks_first(choices[name], best.params[name], outer)
            else:
                values = [v for v in _nearest_first(choices[name], best.params[name]) if v != best.params[name]]
            hows = ((False, False), *[(True, False)] * (kind == WALK), *[(False, True)] * (layer in likes))
            here.update(dict.fromkeys(Way(name, value, *how) for value in values for how in hows))
    rows = [list(all_of)[: _WAYS * len({(one.in_step, one.with_alike) for one in all_of})] for all_of in ways.values()]
    for way in _one_of_each(rows):
        kind, _, layer = way.name.partition(".")
        state: State = {**best.params, way.name: way.value}
        if way.in_step:
            state = followed(evaluator.space, evaluator.space.graph.by_layer[layer], state)
        if way.with_alike:
            state |= {f"{kind}.{one}": way.value for one in likes[layer] if f"{kind}.{one}" in best.params}
        if all(value in choices[name] for name, value in state.items()):
            yield way, state


def alike_ways(
    evaluator: Evaluator, choices: Choices, best: Evaluation, held: Mapping[str, int]
) -> Iterator[tuple[Way, State]]:
    """Only kernels that are alike walk otherwise, together."""
    for way, state in other_ways(evaluator, choices, best, held):
        if way.with_alike and way.name.startswith(WALK):
            yield way, state


def ways_of_both_sides(
    evaluator: Evaluator, choices: Choices, best: Evaluation, held: Mapping[str, int]
) -> Iterator[tuple[Way, State]]:
    """Another walk for a kernel before a converter that has much of what is `held`, and walks that go along with it for
    all behind: neither alone makes the converter smaller where each goes its own way.

    Those behind walk their first dim with its lanes, or with as many as they like, and any dim after it.
    """
    network = evaluator.assembler.network(best.design)
    converters, least = converters_of(network), sum(held.values()) * _ANY
    rows: list[list[Way]] = []
    for channel in (name for name in converters if held.get(name, 0) >= least):
        readers = [f"{WALK}.{layer}" for layer in _beside(evaluator, channel, network, 1)]
        for layer in _beside(evaluator, channel, network, 0):
            name = f"{WALK}.{layer}"
            others = [one for one in readers if one != name and one in best.params and one in choices]
            if name not in best.params or name not in choices or not others:
                continue
            plain = [walk for walk in choices[name] if len(outer_of(walk)) == 1 and IN_PARTS not in str(walk)]
            rows += [_both_sides(evaluator, choices, {**best.params, name: walk}, layer, others) for walk in plain]
    for way in _one_of_each(rows):
        state: State = {**best.params, way.name: way.value, **dict(way.others)}
        if all(value in choices[name] for name, value in state.items()):
            yield way, state


def _one_of_each(rows: Sequence[Sequence[Way]]) -> Iterator[Way]:
    """The first of all, then the second of those that have one, and so on."""
    return (way for ways in zip_longest(*rows) for way in ways if way is not None)


def _both_sides(evaluator: Evaluator, choices: Choices, state: Params, layer: str, others: Sequence[str]) -> list[Way]:
    """What all behind may do where a kernel walks as a state says; nothing where it gives its results in no order."""
    space, name = evaluator.space, f"{WALK}.{layer}"
    op, walk = space.graph.by_layer[layer], space.fitting.walks(space.settings(state))[layer]
    if set(walk.outer) & set(op.reductions):
        return []
    there = followed(space, op, state)
    along = [
        [there[one], *(v for v in choices[one] if outer_of(v).startswith(outer_of(there[one])) and not cap_of(v))]
        for one in others
    ]
    return [Way(name, state[name], others=tuple(zip(others, w, strict=True))) for w in zip(*along, strict=False)]


def _alike(evaluator: Evaluator) -> dict[str, list[str]]:
    """Of each kernel that has its like the layers of all of them."""
    groups = [[op.layer for op in group] for group in alike(evaluator.space.fitting.leading, evaluator.space.graph)]
    return {layer: group for group in groups for layer in group if len(group) > 1}


def _walks_first(walks: Sequence[Value], now: Value, likely: Sequence[str]) -> list[Value]:
    """Those along the likely dims, then the same with other lanes, then those with one slow dim, then all others."""
    others = [walk for walk in walks if walk != now]

    def place(walk: Value) -> int:
        outer = outer_of(walk)
        return 0 if outer in likely else 1 if outer == outer_of(now) else 2 if len(outer) == 1 else 3

    return sorted(others, key=place)


def _nearest_first(values: Sequence[Value], now: Value) -> list[Value]:
    """Of a parameter whose values are steps."""
    return sorted(values, key=lambda value: abs(values.index(value) - values.index(now)))


def _in_step(evaluator: Evaluator, best: Evaluation, layer: str) -> Mapping[str, str]:
    """The dims that the other kernels walk slowly if they go along with one of them."""
    op = evaluator.space.graph.by_layer.get(layer)
    mine = f"{WALK}.{layer}"
    if op is None or mine not in best.params:
        return {}
    found = followed(evaluator.space, op, best.params)
    return {name: outer_of(walk) for name, walk in found.items() if name.startswith(f"{WALK}.") and name != mine}


def followed(space: TilingSpace, op: TensorOp, params: Params) -> dict[str, Value]:
    """With all around a kernel in step with it."""
    walks = space.fitting.walks(space.settings(params))
    return {**params, **space.fitting.named(follow(walks, op, space.graph))}


def _largest(held: Mapping[str, int], network: TaskNetwork) -> list[tuple[str, Sequence[str]]]:
    """The channels that hold most, and which parameters of the kernels beside them change that: what a converter holds
    follows from walks alone, what a FIFO does from the pace of both sides too."""
    converters = converters_of(network)
    turned, waiting = (WALK,), (WALK, FAVOUR, BURST, COMPACT)
    total = sum(held.values())
    much = sum(bits for name, bits in held.items() if name not in converters) >= total * _MUCH
    most = [name for name in sorted(held, key=lambda name: -held[name]) if much or name in converters][:_LARGEST]
    return [(name, turned if name in converters else waiting) for name in most if held[name] >= total * _ANY]


def kernels_beside(evaluator: Evaluator, channel: str, network: TaskNetwork) -> list[str]:
    """Those with walks of their own that take what a converter gives, or make what it takes, or go along with these."""
    return list(dict.fromkeys(one for end in (1, 0) for one in _beside(evaluator, channel, network, end)))


def _beside(evaluator: Evaluator, channel: str, network: TaskNetwork, end: int) -> list[str]:
    return list(dict.fromkeys(_walking(evaluator, layer) for layer in _near(channel, network, end)))


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
    op = graph.by_layer.get(layer)
    while op is not None and f"{WALK}.{op.layer}" not in evaluator.space.choices:
        op = leader_of(op, graph)
    return layer if op is None else op.layer
