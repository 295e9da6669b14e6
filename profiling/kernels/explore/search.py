"""A kernel's loops split, ordered, tiled, pipelined and its arrays cut, so that it is fast within limits.

Every candidate is judged as `penstock analyse` judges it: schedules and area as predicted, cycles simulated.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from math import inf, prod, sqrt
from pathlib import Path
from typing import Any, Literal

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.area import Area, area_of
from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.fence import lay_out
from penstock.compiler.hls_in.parsing import Unit, parse
from penstock.compiler.hls_in.timed import time_kernel
from penstock.compiler.simulator import VITIS, Network, simulate
from penstock.profiling.kernels.analysis import delays_of
from penstock.profiling.kernels.explore.compare import arguments_of, compare_sources
from penstock.profiling.kernels.explore.limits import TRIALS
from penstock.profiling.kernels.explore.loop_tree import SourceNode
from penstock.profiling.kernels.explore.moves import (
    Banks,
    Nest,
    NestShape,
    banks_of,
    fused,
    gathered,
    joined,
    nests_of,
    shaped,
)
from penstock.profiling.kernels.explore.source import KernelSource, named_apart, read_source
from penstock.profiling.kernels.explore.tasks import tasks_of
from penstock.profiling.kernels.tried import NestLine, OnTried, TriedSource, nobody

_MOST_LANES = 256
_MOST_AT_ONCE = 1024
"""Points of a nest with inner loops of which all turns are done at once."""
_MOST_BANKS = 512
_AT_EACH_WIDTH = 6
_MOST_ORDERS = 6
_ROUNDS = 3
_LIGHT = 1000
"""A nest with so much less work than the largest is not looked at by itself."""
KernelObjective = Literal["latency", "throughput"]


@dataclass(frozen=True)
class ExploredKernel:
    """Cycles are simulated on predicted schedules, area is modelled. `equal` says what g++ computed of both sources."""

    kernel: str
    top: str
    part: str
    clock_mhz: float
    text: str
    latency_before: int
    latency: int
    interval_before: int
    interval: int
    tasks: int
    """Tasks that run at the same time; 1 where loops stay one after the other."""
    area_before: Mapping[str, int]
    area: Mapping[str, int]
    limits: Mapping[str, int]
    nests: tuple[NestLine, ...]
    trials: int
    chosen: int
    """Which of the sources tried; 0 is what was given."""
    compared: int
    different: int

    @property
    def equal(self) -> bool:
        return self.different == 0

    def to_json(self) -> dict[str, Any]:
        return {**{k: v for k, v in asdict(self).items() if k != "text"}, "evidence": "simulated", "equal": self.equal}


@dataclass(frozen=True)
class _Judged:
    latency: int
    interval: int
    """Cycles from one run to the next of many."""
    area: Area


@dataclass(frozen=True)
class _State:
    shapes: Mapping[tuple[int, ...], NestShape]
    judged: _Judged


def explore_kernel(
    path: Path, top: str, clock_mhz: float = 300.0, part: str = "xcu280-fsvh2892-2L-e",
    limits: Mapping[str, int] | None = None, *, objective: KernelObjective = "latency", trials: int = TRIALS,
    seed: int = 0, watch: OnTried = nobody, compare: bool = True, seconds: float = inf,
) -> ExploredKernel:  # fmt: skip
    """The fastest of the sources tried that computes the same and stays within the limits.

    The given one is the first of the `trials`; one alone tries no other.
    After so many `seconds` of computing no other source is tried, and the best so far is it.
    Without `compare` nothing of the kernel is run: whoever asked has to hold the values against each other.
    """
    delays = delays_of(part, clock_mhz)
    arguments = tuple(arguments_of(path, top))
    given = parse(path)
    with tempfile.TemporaryDirectory(prefix="penstock-explore-") as scratch:
        unit = named_apart(given, top, Path(scratch))
    whole = given.sources.texts[given.sources.main]
    parted = read_source(unit, top, whole)
    together = replace(parted, nodes=fused(parted.nodes))
    others = trials - 1
    inner = replace(together, nodes=gathered(together.nodes))
    sources = [parted]
    sources += [one for one in (together, inner) if all(one.nodes != other.nodes for other in sources)]
    sources = sources[: max(1, others)]
    begun = _computed()
    tried, ends = list[_Search](), list[tuple[_Judged, _State]]()
    made = 0
    for at, one in enumerate(sources):
        first = 1 + made
        share = others // len(sources)
        end = begun + seconds * (at + 1) / len(sources)
        search = _Search(unit, top, delays, limits or {}, share, objective, one, watch, first, end)
        try:
            ends.append(search.run())
        except PenstockError:
            if not tried:
                raise
            made += search.tried
            continue  # a way to build it that the limits are too small for
        made += search.tried
        tried.append(search)
    best = min(range(len(ends)), key=lambda at: tried[at].cost(ends[at][1]))
    search, (before, found) = tried[best], ends[best]
    text, nests, tasks = search.text(found.shapes), search.nests, max(1, len(search.groups))
    if search.cost_of(before) <= search.cost(found) and search.over(before.area) <= 1:
        text, found, nests, tasks = whole, replace(found, judged=before), [], 1  # nothing better was found
    compared, different = compare_sources(given.sources, top, text, arguments, seed) if compare else (0, 0)
    lines = tuple(_line(nest, found.shapes.get(nest.path, nest.plain)) for nest in nests)
    return ExploredKernel(
        path.name, top, part, clock_mhz, text, before.latency, found.judged.latency, before.interval,
        found.judged.interval, tasks, asdict(before.area),
        asdict(found.judged.area), dict(limits or {}), lines, 1 + made,
        search.numbers.get(text, 0), compared, different,
    )  # fmt: skip


def _computed() -> float:
    """Seconds that this process and those that it started have computed."""
    return sum(os.times()[:4])


def _line(nest: Nest, shape: NestShape) -> NestLine:
    names = tuple(span.variable for span in nest.spans)
    return NestLine(
        nest.loops[0].line, names, tuple(names[i] for i in shape.order),
        {name: tile for name, tile in zip(names, shape.tiles, strict=True) if tile > 1},
    )  # fmt: skip


class _Search:
    def __init__(
        self, unit: Unit, top: str, delays: Delays, limits: Mapping[str, int], trials: int, objective: KernelObjective,
        source: KernelSource, watch: OnTried, first: int, end: float,
    ) -> None:  # fmt: skip
        """`first` is the number of the first source that it tries; the given one is told with the first search."""
        self.watch, self.first, self.end = watch, first, end
        self.top, self.delays, self.limits, self.most, self.objective = top, delays, limits, trials, objective
        self.unit, self.source = unit, source
        self.original = self._judge(source.text)
        self.nests = nests_of(self.source.nodes)
        self.tried = 0
        self.groups: list[list[int]] = []
        self._shares: dict[tuple[int, ...], float] = {}
        self._known: dict[str, _Judged | None] = {}
        self.numbers: dict[str, int] = {}
        if first == 1:
            self._tell(0, source.given, {}, self.original, "")

    def run(self) -> tuple[_Judged, _State]:
        plain = {nest.path: nest.plain for nest in self.nests}
        if not self.most:
            if self.over(self.original.area) > 1:
                raise self._above("the kernel is above the limits as it is", "ask for more trials, or raise the limit")
            return self.original, _State(plain, self.original)
        first = self._try(plain, self.most)
        if first is None:
            if self.over(self.original.area) <= 1:
                return self.original, _State(plain, self.original)
            what = "the kernel is above the limits even with one operation of each kind at a time"
            raise self._above(what, "raise the limit")
        by_work = sorted((n for n in self.nests if not n.body.opaque), key=lambda nest: -nest.iterations)
        state = first
        for nest in by_work:
            state = self._ordered(state, nest)
        groups = tasks_of(self.source.nodes, self.source.declared, self.source.dims)
        if self.objective == "latency" or not groups:
            return self.original, self._sized(state, by_work, self.most)
        found = self._sized(state, by_work, (self.tried + self.most) // 2)
        self.groups = groups
        found = self._as_tasks(state, found, by_work)
        return self.original, found

    def _above(self, what: str, hint: str) -> PenstockError:
        limit = ", ".join(f"{key} {value}" for key, value in self.limits.items())
        where = f"{self.unit.sources.main.name}:1:1"
        return PenstockError(code="over-limit", what=what, where=where, limit=limit, hint=hint)

    def _as_tasks(self, state: _State, serial: _State, by_work: list[Nest]) -> _State:
        """The same loops as tasks that run at the same time, each as wide as its share of the work asks."""
        work = [sum(n.iterations for n in by_work if n.path[0] in group) for group in self.groups]
        for nest in by_work:
            group = next(g for g, members in enumerate(self.groups) if nest.path[0] in members)
            most = max(n.iterations for n in by_work if n.path[0] in self.groups[group])
            self._shares[nest.path] = work[group] / max(1, sum(work)) * sqrt(nest.iterations / most)
        judged = self._judged(state.shapes, self.most)
        if judged is not None:
            found = self._sized(_State(state.shapes, judged), by_work, self.most)
            if self.over(found.judged.area) <= 1 and self.cost(found) < self.cost(serial):
                return found
        self.groups = []
        return serial

    def _sized(self, state: _State, by_work: list[Nest], most: int) -> _State:
        """Lanes for all nests together, then for each that matters."""
        state = self._widened(state, by_work, most)
        heavy = [n for n in by_work if n.iterations * _LIGHT >= by_work[0].iterations]
        for left in range(_ROUNDS, 0, -1):  # what was no bottleneck may be one now
            before, until = state, most if left == 1 else (self.tried + most) // 2
            for at, nest in enumerate(heavy):
                state = self._improved(state, nest, self.tried + (until - self.tried) // (len(heavy) - at))
            if state is before:
                break
        return state

    def text(self, shapes: Mapping[tuple[int, ...], NestShape]) -> str:
        banks = self._banks(shapes)
        nodes: tuple[SourceNode, ...] = shaped(self.source.nodes, shapes, self.source.names)
        return self.source.with_nodes(nodes, banks, self.groups)

    def _banks(self, shapes: Mapping[tuple[int, ...], NestShape]) -> Banks:
        return joined([banks_of(nest, shapes[nest.path]) for nest in self.nests if nest.path in shapes])

    def _ordered(self, state: _State, nest: Nest) -> _State:
        """The fastest order. A sum that stays in one word waits for itself: orders that move on come first."""
        stores = [a for a in nest.body.touched if a.writes]
        orders = nest.orders()
        orders.sort(key=lambda order: any(_stays(a.index, nest.spans[order[-1]].variable) for a in stores))
        ways = [NestShape(order, nest.plain.tiles) for order in orders[:_MOST_ORDERS]]
        tried = [one for one in (self._with(state, nest, shape, self.most) for shape in ways) if one is not None]
        return min([state, *tried], key=self.cost)

    def _widened(self, state: _State, nests: Sequence[Nest], most: int) -> _State:
        """All nests as wide as each other, as wide as the limits allow: regions that run in turn share operators."""
        lanes = self._most_lanes()
        legal = {nest.path: nest.dependences() for nest in nests}
        while lanes > 1 and self.tried < most:
            wide = state
            for nest in nests:
                shapes = self._shapes(nest, state.shapes[nest.path].order, self._part(nest, lanes))
                allowed = [s for s in shapes if nest.allows(s, legal[nest.path])]
                for shape in self._spread(wide, nest, allowed)[:1]:
                    wide = _State({**wide.shapes, nest.path: shape}, state.judged)
            judged = self._judged(wide.shapes, most)
            over = self.over(judged.area) if judged is not None else 2.0
            if judged is not None and over <= 1:
                return min(state, _State(wide.shapes, judged), key=self.cost)
            lanes = min(lanes - 1, int(lanes * max(0.5, min(0.96, 1 / over))))
        return state

    def _part(self, nest: Nest, lanes: int) -> int:
        """What a nest has of all lanes: fewer where it has little work, or where others run at the same time."""
        most = max(n.iterations for n in self.nests)
        share = self._shares.get(nest.path, sqrt(nest.iterations / most))
        return max(1, round(lanes * share))

    def _improved(self, best: _State, nest: Nest, until: int) -> _State:
        """More lanes for one nest, or as many in another shape, while the whole kernel is faster for it."""
        found = nest.dependences()
        now = best.shapes[nest.path]
        lanes = min(self._most_lanes(), now.lanes * 2)
        seen: set[NestShape] = set()
        while nest.iterations < lanes * best.judged.interval and lanes > 1 and self.tried < until:
            shapes = self._shapes(nest, now.order, lanes)
            wide = [s for s in shapes if s not in seen and nest.allows(s, found)]
            over = 0.0
            for shape in self._spread(best, nest, wide)[:_AT_EACH_WIDTH]:
                seen.add(shape)
                judged = self._judged({**best.shapes, nest.path: shape}, until)
                over = self.over(judged.area) if judged is not None else 2.0
                if judged is None:
                    continue
                if over > 1.1:
                    break
                if over <= 1 and self.cost_of(judged) < self.cost(best):
                    best = _State({**best.shapes, nest.path: shape}, judged)
            least = min((s.lanes for s in wide), default=lanes)
            lanes = min(least - 1, int(lanes * min(0.96, 1 / over)) if over > 1 else lanes)
        return best

    def _most_lanes(self) -> int:
        dsp = self.limits.get("dsp")
        return _MOST_LANES if dsp is None else max(2, min(_MOST_LANES, dsp // 2))

    def _shapes(self, nest: Nest, order: tuple[int, ...], lanes: int) -> list[NestShape]:
        """Tiles that divide their loops, as many lanes as may be and at most a tenth fewer."""
        lanes = min(lanes, max(1, _MOST_AT_ONCE // prod(span.trip for span in nest.within)))
        ways = [[d for d in range(1, min(span.trip, lanes) + 1) if span.trip % d == 0] for span in nest.spans]
        found = [NestShape(order, tiles) for tiles in product(*ways) if prod(tiles) <= lanes]
        found = [s for s in found if any(t < span.trip for t, span in zip(s.tiles, nest.spans, strict=True))]
        most = max((s.lanes for s in found), default=1)
        return [s for s in found if s.lanes > 1 and s.lanes * 10 >= most * 9]

    def _spread(self, state: _State, nest: Nest, shapes: Sequence[NestShape]) -> list[NestShape]:
        """Those with the fewest banks of all arrays first; what other nests ask of the same arrays counts too."""

        def cost(shape: NestShape) -> int:
            banks = self._banks({**state.shapes, nest.path: shape})
            names = {name for name, _ in banks}
            return sum(prod(f for (name, _), f in banks.items() if name == one) for one in names)

        priced = sorted(((cost(s), -s.lanes, s.tiles, s) for s in shapes), key=lambda row: row[:3])
        return _apart([row[3] for row in priced if row[0] <= _MOST_BANKS])

    def _with(self, state: _State, nest: Nest, shape: NestShape, until: int) -> _State | None:
        return self._try({**state.shapes, nest.path: shape}, until)

    def _try(self, shapes: Mapping[tuple[int, ...], NestShape], until: int) -> _State | None:
        judged = self._judged(shapes, until)
        return _State(shapes, judged) if judged is not None and self.over(judged.area) <= 1 else None

    def cost(self, state: _State) -> tuple[int, int]:
        return self.cost_of(state.judged)

    def cost_of(self, judged: _Judged) -> tuple[int, int]:
        one = judged.latency, judged.interval
        return one if self.objective == "latency" else (one[1], one[0])

    def over(self, area: Area) -> float:
        used = asdict(area)
        return max((used[key] / max(1, limit) for key, limit in self.limits.items()), default=0.0)

    def _judged(self, shapes: Mapping[tuple[int, ...], NestShape], until: int) -> _Judged | None:
        text = self.text(shapes)
        if text not in self._known:
            if self.tried >= until or (self.tried and _computed() > self.end):
                return None
            self.numbers[text] = number = self.first + self.tried
            self.tried += 1
            try:
                judged = self._known[text] = self._judge(text)
            except PenstockError as error:
                judged = self._known[text] = None
                self._tell(number, text, shapes, None, error.one_line())
            else:
                self._tell(number, text, shapes, judged, "")
        return self._known[text]

    def _tell(
        self, number: int, text: str, shapes: Mapping[tuple[int, ...], NestShape], judged: _Judged | None, why: str
    ) -> None:
        lines = tuple(_line(nest, shapes[nest.path]) for nest in self.nests if nest.path in shapes)
        area = asdict(judged.area) if judged else {}
        cycles = (judged.latency, judged.interval) if judged else (None, None)
        self.watch(TriedSource(number, *cycles, area, max(1, len(self.groups)), lines, (), why, text))

    def _judge(self, text: str) -> _Judged:
        sources = self.unit.sources
        with tempfile.TemporaryDirectory(prefix="penstock-explore-") as scratch:
            kernel = read_kernel(lay_out(sources, text, Path(scratch)), self.top)
        timed = time_kernel(kernel, self.delays)
        result = simulate(timed.design, VITIS)
        if result.deadlock is not None:
            raise PenstockError(code="deadlock", what=str(result.deadlock), where=sources.main.name)
        interval = result.latency + 1
        if isinstance(timed.design, Network):
            again = simulate(timed.design, VITIS, frames=2)
            interval = interval if again.deadlock is not None else again.interval or interval
        return _Judged(result.latency, interval, area_of(timed, self.delays))


def _apart(shapes: list[NestShape]) -> list[NestShape]:
    """The first two, then some from all over the list: what shares operations best need not have the fewest banks."""
    step = max(1, len(shapes) // (_AT_EACH_WIDTH - 1))
    return list(dict.fromkeys([*shapes[:2], *shapes[step::step]]))


def _stays(index: Sequence[Any], variable: str) -> bool:
    return all(form is None or variable not in form.factors for form in index)
