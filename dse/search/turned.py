"""The same design with less between its kernels, where that costs no time.

A converter holds what one kernel makes until another reads it in another order: whole tensors where the orders differ
in their slowest dim. A FIFO holds what its reader is too slow for, or takes in tokens that are wider than they come. A
descent through many kernels comes to those of the most work alone, so that a maximum over rows, say, walks otherwise
than what makes the rows, or has twenty times its lanes. Here kernels on both sides of the channels that hold most walk
otherwise, alone, with all around them in step, or with those that do the same to the same tensor, get fewer lanes or
more, or take in bursts sooner. Where much waits time is lost as well: often what holds less is faster, sometimes only
once two kernels are changed.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import inf

from penstock.compiler.analysis.graph import TensorOp
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.waiting import Held, converters_of, held_as_modelled, held_as_needed
from penstock.dse.lanes.neighbours import alike, follow, leader_of
from penstock.dse.search.close_looks import held_in, look_closely
from penstock.dse.search.dies import NEARLY, DiesHold
from penstock.dse.search.second import SecondProcess
from penstock.dse.search.shared import in_turn
from penstock.dse.search.worth import State
from penstock.dse.space.fitted import BURST, COMPACT, FAVOUR, WALK, outer_of
from penstock.dse.space.tiling import Choices, Params, TilingSpace, Value
from penstock.profiling.network import TaskNetwork
from penstock.profiling.prefetch import computes

_LARGEST, _WAYS, _FASTER = 8, 8, 0.998
"""Channels that have their kernels changed; ways of each parameter of such a kernel; what part of the time may be
left."""
_MUCH, _ANY = 0.25, 1 / 32
"""Of all bits, what FIFOs hold together, and one channel, for which kernels beside them are changed: windows of frames
hold far more, and a look at a chip full of them takes half a second."""


@dataclass(frozen=True)
class Counting:
    """How bits are counted, at most how many settings are looked at, and how many of them after the last gain."""

    held: Held
    most_looks: int
    most_fruitless: int
    slower: float = 1.002
    """So many times the least may be reached on the way to what is as good again."""
    fewer: float = 0.98
    """What part of the bits may be left."""
    trades: bool = False
    """What is slower by no more than that is taken as well."""
    alike: bool = False
    """Only kernels that are alike walk otherwise, together."""


AS_MODELLED = Counting(held_as_modelled, 256, 64)
FOR_LESS = Counting(held_as_needed, 24, 24, slower=1.02, fewer=0.85, trades=True, alike=True)
"""By the model: what it says of designs that wait otherwise is off by a percent or two, so a simulation decides. What
FIFOs need takes several looks to say."""
AS_NEEDED = Counting(held_as_needed, 48, 24)
TRADED = Counting(held_as_needed, 128, 80, slower=1.01, fewer=0.97, trades=True)
"""All ways around the largest channels are about eighty. Of smaller gains those that come first lead nowhere."""


@dataclass(frozen=True)
class Way:
    """What is changed of one kernel, and whether all around it are to walk in step, or those that are alike change as
    it does."""

    name: str
    value: Value
    in_step: bool = False
    with_alike: bool = False


def less_turned(
    evaluator: Evaluator,
    choices: Choices,
    best: Evaluation,
    dies: DiesHold,
    second: SecondProcess | None = None,
    counting: Counting = AS_MODELLED,
    enough: float = 0,
) -> Evaluation:
    """What holds notably less between kernels or is faster, is as good, and stands on the dies if `best` does; or else
    `best`. It ends when no more than `enough` bits are held."""
    now = settled = best
    waits, most = held_in(evaluator, best, counting.held), max(0.0, dies.excess(best))
    held, least = sum(waits.values()), best.values[0]
    if held <= enough:
        return best
    looked, last = {evaluator.means(best.params)}, 0
    tried = set[Way]()  # what is no better mostly is not with other kernels changed either
    while True:
        found = None
        look = partial(look_closely, below=(0.0, least * counting.slower, inf), most=most, held=counting.held)
        ways = (
            (state, way) for way, state in other_ways(evaluator, choices, now, waits)
            if way not in tried and (not counting.alike or (way.with_alike and way.name.startswith(WALK)))
        )  # fmt: skip
        left = min(counting.most_looks, last + counting.most_fruitless) + 1 - len(looked)
        new, here = islice(_unlike(evaluator, ways, looked), max(left, 0)), partial(look, evaluator, dies=dies)
        for (way, means), seen in in_turn(evaluator, second, new, now.params, look, here):
            looked.add(means)
            tried.add(way)
            other, excess, waiting = seen.found, seen.excess, seen.held
            if other is None or not other.feasible:
                continue
            dies.is_told(other, excess)
            if _is_faster(other, now) and most < excess <= NEARLY:
                smaller = dies.eased_of_many(other, choices)
                if smaller is not None and dies.excess(smaller) <= most:
                    other, waiting = smaller, held_in(evaluator, smaller, counting.held)
            if waiting is None:
                continue
            if _is_faster(other, now) or sum(waiting.values()) <= held * counting.fewer:
                found, waits, held = other, waiting, sum(waiting.values())
                break
        if found is None:
            return settled
        if _is_faster(found, now):
            tried.clear()
        now, least, last = found, min(least, found.values[0]), len(looked)
        if counting.trades or now.values <= settled.values:  # else the other would be chosen again
            settled = now
            if held <= enough:
                return settled


def _unlike(
    evaluator: Evaluator, ways: Iterable[tuple[State, Way]], looked: Collection[Hashable]
) -> Iterator[tuple[State, tuple[Way, Hashable]]]:
    """Those that mean something else than all that were `looked` at and before: few lanes are mostly some more."""
    before = set(looked)
    for state, way in ways:
        if (means := evaluator.means(state)) not in before:
            before.add(means)
            yield state, (way, means)


def _is_faster(one: Evaluation, now: Evaluation) -> bool:
    return one.values[0] < now.values[0] * _FASTER


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
    for place in range(max(map(len, rows), default=0)):
        for way in (row[place] for row in rows if place < len(row)):
            kind, _, layer = way.name.partition(".")
            state: State = {**best.params, way.name: way.value}
            if way.in_step:
                state = followed(evaluator.space, evaluator.space.graph.by_layer[layer], state)
            if way.with_alike:
                state |= {f"{kind}.{one}": way.value for one in likes[layer] if f"{kind}.{one}" in best.params}
            if all(value in choices[name] for name, value in state.items()):
                yield way, state


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
    op = graph.by_layer.get(layer)
    while op is not None and f"{WALK}.{op.layer}" not in evaluator.space.choices:
        op = leader_of(op, graph)
    return layer if op is None else op.layer
