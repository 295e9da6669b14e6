"""The lower bound of a search: what the first objective of no design of the space can be below, and why.

Every term holds for every design that the model can judge, so the largest of them does. None is a forecast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import ceil, inf

import numpy as np

from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import RESOURCE_NAMES
from penstock.dse.bounds.chains import Chains, after_value, chains_of
from penstock.dse.bounds.lanes import FewestLanes, fewest_lanes, sizes_of
from penstock.dse.bounds.loads import Loads
from penstock.dse.bounds.needs import IndexCounts, Needs, needs_of, share_of
from penstock.dse.bounds.operators import LeastBody, Needed, body_of, weighed
from penstock.dse.bounds.overlap import Overlap, Working
from penstock.dse.bounds.tokens import TakenStraight
from penstock.dse.bounds.ways import LONG, PARTS, told_lanes, ways_of
from penstock.dse.bounds.whole import FAR, NOT_FAR, ReadOperand, Unrolled, WholeLanes
from penstock.dse.evaluation.energy import static_w
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.traffic import external_tensors, least_traffic_bits
from penstock.dse.space.external import STRIPES
from penstock.dse.space.grouping import FUSED

OPERATORS, OVERLAP, CHAIN, PORTS, MEMORY = "operators", "waiting", "dependences", "ports", "bandwidth"
_MOST_OVERLAPPING = 64
"""Kernels up to which what they wait for is worked out: each may wait for all others."""
MOST_TOLD_APART = 16
"""Kernels up to which their ways to unroll are told apart."""
_MOST_THOROUGH, _MOST_TOGETHER = 4, 3
"""And up to which more ways are kept to be told apart, and results that are done together are waited for together."""
_SHORT = 500
"""Cycles up to which widths of tokens are told, and one kernel more is not too many: what that adds is a few cycles."""
_SLACK = 1e-9
"""Sums of shares are floats: a design that takes all of a resource keeps to it."""


FAR_ABOVE = 0.25
"""From where on a gap is more likely the bound's than the design's."""
_LEFT_OUT = {
    OPERATORS: "control, converters and deeper pipelines, of which small designs mostly consist",
    OVERLAP: "that tokens pass in bursts, that some pipelines wait as a whole for input, and their further stages",
    CHAIN: "every kernel's iterations, and operators that are slower than the fastest",
    PORTS: "what is computed before and after a tensor passes",
    MEMORY: "what is computed before and after tensors pass",
    "inputs and results": "what kernels keep outside",
    "arithmetic and leakage": "what moves between operators",
    "one lane a kernel": "control, FIFOs and memories",
}
"""By term: what a design takes time or room for that the bound does not count."""


@dataclass(frozen=True)
class LowerBound:
    """Of one figure. `terms` has every term that was worked out, `reason` says which is the largest."""

    figure: str
    value: float
    reason: str
    terms: Mapping[str, float]

    def gap(self, reached: float) -> float:
        """How much more a design has than the bound, as a part of the bound."""
        return reached / self.value - 1 if self.value else (inf if reached else 0.0)

    def reason_beside(self, reached: float) -> str:
        """The reason; where a design is far above, also what the bound does not know, so that it may be the bound."""
        term = max(self.terms, key=lambda one: self.terms[one])
        if not FAR_ABOVE < self.gap(reached) < inf or term not in _LEFT_OUT:
            return self.reason
        return f"{self.reason} (a loose bound: it leaves out {_LEFT_OUT[term]})"


@dataclass(frozen=True)
class _Kernel:
    """A kernel as its lanes see it."""

    layer: str
    lanes: FewestLanes
    needed: tuple[Needed, ...]
    around: int
    """Cycles of a run in which it cannot be at work: before its operands are there, after its last iteration."""
    counted: bool
    """Among the lanes that an option limits."""


class GoalBounds:
    """The bounds of one evaluator's space and goal; a few milliseconds for a dozen kernels."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.evaluator = evaluator
        self.graph, self.library = evaluator.space.graph, evaluator.assembler.library
        self.limits = evaluator.may_use.as_dict()
        operations, library = self.graph.operations, self.library
        self.bodies: dict[str, LeastBody] = {op.layer: body_of(op, library, self.graph) for op in operations}
        arrays = evaluator.platform.has_array_arguments
        self.loads = Loads(self.graph, self.bodies, library, arrays, self.limits)
        self.chains: Chains = chains_of(self.graph, self.bodies, self.loads)
        self.sizes = sizes_of(evaluator.space)
        self.room = self._room()
        self.kernels = [*self._kernels()]
        self.prices = [*self._prices()]

    def _room(self) -> Mapping[str, int]:
        """For operators: each kernel, and what loads an input or stores a result, has a nest of loops with its control.

        Not where kernels stand in groups, which may use each other's.
        """
        if set(self.evaluator.space.choices.get("fusion", ())) - {FUSED}:
            return self.limits
        kept = {*self.graph.fed, *self.graph.fed.values()}
        given = {one for one in self.graph.arguments if one in self.graph.readers and not self.graph.is_param(one)}
        nests = len(self.graph.operations) + len(given - kept) + len({*self.graph.returned} - kept)
        luts = self.limits["lut"]
        return {**self.limits, "lut": max(luts - nests * self.library.control.lut, luts // 2)}

    def _kernels(self) -> Iterator[_Kernel]:
        space = self.evaluator.space
        counted = {op.layer for op in space.heavy}
        for op in self.graph.operations:
            around = self.chains.before[op.layer] + self.chains.after[op.layer]
            body, given = self.bodies[op.layer], space.options.kernels.get(op.layer)
            lanes = fewest_lanes(op.trips, self.sizes[op.layer])
            if given is not None:  # somebody decided it
                lanes = FewestLanes((op.work // given.lanes,), (given.lanes,))
            yield _Kernel(op.layer, lanes, body.needed, around, op.layer in counted)

    def _prices(self) -> Iterator[dict[str, float]]:
        """Prices of DSPs and LUTs at which all that there is of both costs 1.

        The least that operators can cost, over the prices, is linear between those at which two ways to build one
        cost the same, so the most that it can be is at one of these.
        """
        dsp, lut = max(self.room["dsp"], 1e-9), max(self.room["lut"], 1e-9)
        weights = {0.0, 1.0}
        for kernel in self.kernels:
            for one in kernel.needed:
                for a, b in combinations(one.ways, 2):
                    slope = (a.dsp - b.dsp) / dsp - (a.lut - b.lut) / lut
                    if slope and 0 < (weight := (b.lut - a.lut) / lut / slope) < 1:
                        weights.add(weight)
        for weight in sorted(weights):
            yield {"dsp": weight / dsp, "lut": (1 - weight) / lut}

    # -- what operators take

    def _cost(self, cycles: float, *, around: bool) -> tuple[float, Mapping[str, float]]:
        """The least part of all that may be used that any design of so many cycles takes, at the worst prices."""
        lanes = [one.lanes.within(cycles - (one.around if around else 0)) for one in self.kernels]
        if any(count is None for count in lanes):
            return inf, self.prices[0]
        costs = self._of_lanes
        sums = [sum(cost * (n or 0) for cost, n in zip(costs[p], lanes, strict=True)) for p in range(len(costs))]
        place = max(range(len(sums)), key=lambda p: sums[p])
        return sums[place], self.prices[place]

    @cached_property
    def _of_lanes(self) -> Sequence[Sequence[float]]:
        """At each of the prices, what a lane of each kernel costs."""
        return [[weighed(one.needed, prices) for one in self.kernels] for prices in self.prices]

    def _fits(self, cycles: float, *, around: bool) -> bool:
        return self._cost(cycles, around=around)[0] <= 1 + _SLACK and self._lanes(cycles, around=around)

    def _lanes(self, cycles: float, *, around: bool) -> bool:
        """Whether an option's limit on lanes allows it. Ways to hand lanes out may round up, a kernel a lane."""
        space = self.evaluator.space
        if space.options.max_lanes is None:
            return True
        counted = [one for one in self.kernels if one.counted]
        most = max(int(space.choices["overall_unroll_size"][-1]), space.options.max_lanes) + len(counted) - 1
        lanes = [one.lanes.within(cycles - (one.around if around else 0)) for one in counted]
        return all(n is not None for n in lanes) and sum(n or 0 for n in lanes) <= max(most, len(counted))

    def _operators(self, *, around: bool) -> int:
        """The fewest cycles in which the model's arithmetic is done by what may be used, by bisection."""
        high = max((one.lanes.iterations[-1] + (one.around if around else 0) for one in self.kernels), default=0)
        low = 0
        while low < high:
            middle = (low + high) // 2
            if self._fits(middle, around=around):
                high = middle
            else:
                low = middle + 1
        return high

    def binding(self, cycles: float, *, around: bool) -> tuple[str, ...]:
        """The resources that are too few for so many cycles; none where it is lanes that are, or time itself."""
        share, prices = self._cost(cycles, around=around)
        return tuple(name for name in ("dsp", "lut") if prices[name]) if 1 + _SLACK < share < inf else ()

    def check_possible(self) -> None:
        """An error where not even one lane a kernel keeps to the limits: no design does."""
        share, prices = self._cost(inf, around=False)
        if share <= 1 + _SLACK:
            return
        names = [name for name in ("dsp", "lut") if prices[name]]
        amounts = " and ".join(f"{self.limits[name]:,} {name}" for name in names)
        raise PenstockError(
            code="nothing-fits", what="no design of this model keeps to the limits", where=self.evaluator.program.name,
            limit=f"of {amounts} that may be used, one lane a kernel takes at least {share:.2f} times as much",
            hint="relax the limit, quantise, or take a larger platform",
        )  # fmt: skip

    # -- the terms of each figure

    def latency(self) -> LowerBound:
        return self._latency

    @cached_property
    def _latency(self) -> LowerBound:
        operators = self._operators(around=True)
        terms = {OPERATORS: operators, OVERLAP: self._overlap(operators), CHAIN: self.chains.longest}
        return self._of("latency_cycles", terms | self._moved(around=True))

    def _overlap(self, least: int) -> int:
        """Where there are kernels to wait for; else operators alone say as much."""
        if len(self.kernels) < 2 or len(self.kernels) > _MOST_OVERLAPPING:
            return 0
        working = [Working(one.layer, one.lanes, one.needed) for one in self.kernels]
        needs = needs_of(self.graph, self.bodies)
        overlap = Overlap(working, self.chains, needs, self.room, float(least))
        found = overlap.shortest()
        if len(self.kernels) <= MOST_TOLD_APART:
            found = max(found, self._whole(needs, max(found, float(least)), overlap))
        return ceil(found)

    def _whole(self, needs: Needs, least: float, overlap: Overlap) -> float:
        """The same where kernels have whole lanes in every dim; of a few, results that are done together are waited for
        together as well, which leaves more ways to tell apart."""

        def shortest(least: float, far: float, *, together: bool) -> float:
            unrolled = self._unrolled(needs, least * far, together=together)
            regrouping = 1 if self.library.chains else 0
            return WholeLanes(
                unrolled, self.chains, needs, self.room, overlap, least, least * far, regrouping
            ).shortest()

        found = shortest(least, FAR, together=False)
        if len(self.kernels) > (_MOST_TOGETHER if found > _SHORT else _MOST_TOGETHER + 1):
            return found
        return max(found, shortest(max(found, least), NOT_FAR, together=True))

    def _unrolled(self, needs: Needs, longest: float, *, together: bool) -> list[Unrolled]:
        given, memory = self.evaluator.space.options.kernels, self.library.memory
        keeping = memory.load_latency + memory.store_latency
        parts: dict[str, list[IndexCounts]] = {one.layer: [] for one in self.kernels}
        for of_one in (*needs.before.values(), *needs.after.values()):
            for other, part in of_one.items():
                if part.loops not in parts[other]:
                    parts[other].append(part.loops)
        passed = TakenStraight.of(self.graph, told=longest <= _SHORT) if together else TakenStraight.untold(self.graph)
        unrolled: list[Unrolled] = []
        columns: dict[str, Mapping[int, int]] = {}
        for op, one in zip(self.graph.operations, self.kernels, strict=True):
            wanted, body, read = parts[op.layer], self.bodies[op.layer], passed.straight[op.layer]
            told = passed.told[op.layer]
            if op.layer in given:
                done = [int(one.lanes.iterations[0] * share_of(counts, op.trips)) for counts in wanted]
                lanes = [n for d in told for n in told_lanes(given[op.layer].unroll[d])]
                row = [one.lanes.lanes[0], one.lanes.iterations[0], 0, *done, *(0 for _ in read), *lanes, 1, LONG]
                ways = np.array([row], np.int64)
            else:
                ways = ways_of(
                    op, self.sizes[op.layer], wanted, self._most_lanes(one), longest - one.around, body.again, keeping,
                    [*read.values()] if together else None, told, thorough=len(self.kernels) <= _MOST_THOROUGH,
                )  # fmt: skip
            first = PARTS + len(wanted)
            operands = {maker: ReadOperand(len(dims), first + n) for n, (maker, dims) in enumerate(read.items())}
            columns[op.layer] = passed.columns(op.layer, first + len(read))
            unrolled.append(
                Unrolled(
                    op.layer, ways, {counts: PARTS + n for n, counts in enumerate(wanted)}, operands,
                    one.needed, body.added, body.one_term,
                    {maker: passed.between(maker, op.layer, columns) for maker in read},
                )
            )  # fmt: skip
        return unrolled

    def _most_lanes(self, kernel: _Kernel) -> float:
        """That it could have by itself."""
        costs = max(weighed(kernel.needed, prices) for prices in self.prices)
        return (1 + _SLACK) / costs if costs else inf

    def interval(self) -> LowerBound:
        return self._of("interval_cycles", {OPERATORS: self._operators(around=False), **self._moved(around=False)})

    def _moved(self, *, around: bool) -> dict[str, float]:
        """What passes to and from external memory, through ports of so many bits and at what memory sustains."""
        platform, space = self.evaluator.platform, self.evaluator.space
        if platform.has_array_arguments or not platform.memories:
            return {}
        ports, most = 0, max(space.choices.get(STRIPES, (1,)), key=int)
        tensors = [*external_tensors(self.graph, with_weights=space.weights == "stream")]
        later = {value: after_value(value, self.graph, self.chains.after) for value, comes_in in tensors if comes_in}
        for value, comes_in in tensors:
            words = ceil(tensor_bits(value) / (space.port_bits * (int(most) if comes_in else 1)))
            if around and comes_in:
                words += self.loads(value) + later[value]
            elif around and (maker := self.graph.makers.get(value)) is not None:
                words += self.chains.first[maker.layer] + 1
            ports = max(ports, words)
        found: dict[str, float] = {PORTS: ports}
        memory = platform.fastest_memory
        if memory is not None:
            cycles_a_bit = self.evaluator.clock_mhz / (8e3 * memory.sustained_gb_s)
            found[MEMORY] = ceil(sum(tensor_bits(value) for value, _ in tensors) * cycles_a_bit)
            if around and later:  # whichever comes last, something is done with it
                passing = ceil(sum(map(tensor_bits, later)) * cycles_a_bit)
                coming = min(map(self.loads, later)) + passing + min(later.values())
                found[MEMORY] = max(found[MEMORY], coming)
        return found

    def traffic(self) -> LowerBound:
        platform = self.evaluator.platform
        outside = not platform.has_array_arguments
        return self._of("traffic_bytes", {"inputs and results": least_traffic_bits(self.graph) / 8 if outside else 0.0})

    def energy(self) -> LowerBound:
        leaking = self.leaking_w * self.latency().value / self.evaluator.clock_mhz
        return self._of("energy_uj", {"arithmetic and leakage": self.evaluator.arithmetic_uj + leaking})

    @property
    def leaking_w(self) -> float:
        """What the device takes however little it does."""
        return static_w(self.evaluator.platform)

    def resources(self) -> LowerBound:
        """One lane a kernel, of the resource that this takes most of."""
        limits = self.evaluator.platform.limits.as_dict()
        least = {
            name: sum(weighed(one.needed, {name: 1.0}) for one in self.kernels) / limits[name]
            for name in RESOURCE_NAMES if limits[name]
        }  # fmt: skip
        return self._of("resource_share", {"one lane a kernel": max(least.values(), default=0.0)})

    def of_goal(self) -> LowerBound:
        """Of the first objective; one that nobody has made a bound for is only known not to be below 0."""
        goal = self.evaluator.goal
        known = {
            "latency": self.latency, "throughput": self.interval, "traffic": self.traffic, "energy": self.energy,
            "resources": self.resources,
        }.get(goal.objectives[0])  # fmt: skip
        return known() if known is not None else self._of(goal.figures[0], {"nothing is known of it": 0.0})

    def _of(self, figure: str, terms: Mapping[str, float]) -> LowerBound:
        name = max(terms, key=lambda one: terms[one])
        return LowerBound(figure, terms[name], self._said(name, figure, terms[name]), dict(terms))

    def _said(self, name: str, figure: str, value: float) -> str:
        if not self.kernels and name in (OPERATORS, CHAIN):
            return "a task program's author has decided what computes at the same time"
        if name == OPERATORS:
            around = figure == "latency_cycles"
            names = self.binding(value - 1, around=around)
            amounts = " and ".join(f"{self.limits[one]:,} {one}" for one in names)
            if self._cost(value - 1, around=around)[0] == inf:  # a kernel would have no cycle left to work in
                return self._said(CHAIN, figure, value)
            if not names:
                amounts = f"{self.evaluator.space.options.max_lanes} lanes"
            return f"the model's arithmetic takes as long with {amounts}"
        if name == OVERLAP:
            amounts = f"{self.limits['dsp']:,} dsp and {self.limits['lut']:,} lut"
            return f"kernels wait for whole rows or sums of each other, and share {amounts}"
        return {
            CHAIN: "results wait for each other along the longest chain of pipelines",
            PORTS: f"the largest tensor outside passes through ports of {self.evaluator.space.port_bits} bits",
            MEMORY: "inputs, results and streamed weights pass at what external memory sustains",
        }.get(name, name)


def lower_bound(evaluator: Evaluator) -> LowerBound:
    """Of the first objective of its goal."""
    return GoalBounds(evaluator).of_goal()
