"""How the tasks of a dataflow region meet its arrays, streams and blocks, and which of these are one channel."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterator, Mapping

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.ordering import Lane, lane_of, tokens_of
from penstock.compiler.hls_in.patterns import pattern_of
from penstock.compiler.hls_in.records import Again, DataflowRegion, Pipeline, Region, Straight, graphs
from penstock.compiler.hls_in.storage import KernelArray
from penstock.compiler.schedule.pattern import PatternLevel, TokenPattern
from penstock.compiler.simulator import VITIS, ChannelAccess


def arrays_of(items: list[Region], op: str) -> set[KernelArray]:
    found: set[KernelArray] = set()
    for piece in graphs(items):
        for node in piece.graph.nodes:
            if node.array is not None and (
                node.op == op or (node.op == "phi" and (op == "load" or node.follow is not None))
            ):
                found.add(node.array)
    return found


def stream_ends(items: list[Region], op: str) -> set[Lane]:
    return {lane_of(node) for piece in graphs(items) for node in piece.graph.nodes if node.op == op}


def lanes_met(items: list[Region]) -> dict[Lane, list[object]]:
    """How a task meets each of its streams: in which of its phases, under which conditions."""
    found: dict[Lane, list[object]] = {}
    for i, item in enumerate(items):
        if isinstance(item, (Pipeline, Straight)):
            for node in item.graph.nodes:
                if node.op in ("take", "put"):
                    found.setdefault(lane_of(node), []).append((i, node.op, _token(node.guard)))
    return found


def tokens_met(items: list[Region], times: int = 1) -> Count[tuple[Lane, str]]:
    """How many tokens are read ("take") or written ("put") at each lane in a run, at most where data decide."""
    found: Count[tuple[Lane, str]] = Count()
    for item in items:
        if isinstance(item, (Pipeline, Straight)):
            shell = item if isinstance(item, Pipeline) else Pipeline("straight", [], item.graph, 1, False, item.where)
            for node in item.graph.nodes:
                if node.op in ("take", "put"):
                    found[lane_of(node), node.op] += times * _met(node, shell)
        elif isinstance(item, DataflowRegion):
            for task in item.tasks:
                found += tokens_met(task.body, times)
        else:
            found += tokens_met(item.body, times * (item.counter.trip if isinstance(item, Again) else 1))
    return found


def _met(node: KernelValue, item: Pipeline) -> int:
    try:
        return pattern_of(node.guard, item).count
    except PenstockError:  # data decide
        return item.iterations


def _token(guard: KernelValue | None) -> object:
    """Two conditions with the same token hold in the same iterations."""
    if guard is None:
        return None
    if guard.op == "compare" and all(arg.linear is not None for arg in guard.args):
        left, right = (arg.linear for arg in guard.args)
        assert left is not None
        assert right is not None
        return guard.comparison, left.plus(right, -1)
    if guard.op == "logic":
        return guard.comparison, frozenset(_token(arg) for arg in guard.args)
    if guard.op == "not":
        return "not", _token(guard.args[0])
    return id(guard)


def lane_groups(tasks: list[tuple[str, dict[Lane, list[object]]]], sizes: dict[str, int]) -> dict[str, Lane]:
    """Lanes of an array of streams that are met alike by both ends are one channel; its name, and one of its lanes."""
    kinds: dict[Lane, list[object]] = {}
    for name, lanes in tasks:
        for lane, met in lanes.items():
            kinds.setdefault(lane, []).append((name, tuple(met)))
    groups: dict[object, Lane] = {}
    members: dict[object, int] = {}
    for lane, met in kinds.items():
        key = lane[0], tuple(met)
        groups.setdefault(key, lane)
        members[key] = members.get(key, 0) + 1
    names: dict[str, Lane] = {}
    for key, lane in groups.items():
        name = lane[0].name
        while name in names:
            name = f"{lane[0].name}_{'_'.join(map(str, lane[1]))}" if name == lane[0].name else name + "x"
        names[name] = lane
        sizes[name] = members[key]
    return names


def accesses_of(
    item: Pipeline | Straight, groups: dict[str, Lane], starts: Mapping[KernelValue, int], depth: int
) -> Iterator[ChannelAccess]:
    """By its schedule: of several tokens that an iteration takes from one stream each has a cycle of its own, and so
    have those that it puts into one."""
    stages = dict(_stages_in_turn(item, starts, depth))
    names = {lane: name for name, lane in groups.items()}
    shell = item if isinstance(item, Pipeline) else Pipeline("straight", [], item.graph, 1, False, item.where)
    for node in item.graph.nodes:
        if node.op in ("take", "put") and (name := names.get(lane_of(node))) is not None:
            pattern = pattern_of(node.guard, shell)
            if pattern.count:
                yield ChannelAccess(name, "read" if node.op == "take" else "write", pattern, stages.get(node))
    for array in sorted({n.array for n in item.graph.nodes if n.array is not None and n.array.blocks}, key=_name):
        once = TokenPattern(tuple(PatternLevel(((0, 1),), 1) for _ in shell.counters or (None,)))
        writes = any(n.array is array and n.op == "store" for n in item.graph.nodes)
        yield ChannelAccess(array.channel, "write" if writes else "read", once, hold=shell.iterations - 1)


def _stages_in_turn(
    item: Pipeline | Straight, starts: Mapping[KernelValue, int], depth: int
) -> Iterator[tuple[KernelValue, int]]:
    """Stages of tokens of which an iteration has several in one stream: the first is read where every first one is,
    the last is written where every last one is."""
    for (_, op), met in tokens_of(item.graph.nodes).items():
        at = [starts.get(node, 0) for node in met]
        for node, start in zip(met, at, strict=True) if len(met) > 1 else ():
            stage = VITIS.read_stage + start - at[0] if op == "take" else depth - 1 - (at[-1] - start)
            yield node, max(0, min(stage, depth - 1))


def _name(array: KernelArray) -> str:
    return array.name
