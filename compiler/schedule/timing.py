"""When a step may start, and when its result is there: (stage, nanoseconds into it).

Under the rules of a tool that synthesises (`ChainRules`), an operator of several stages fills its first and its last
one: it starts where a stage begins, and whoever uses its result starts in the next. Tokens, words and addresses take
part of a stage. Without such rules everything is there when its stages are over. The same rules read other people's C++
(`hls_in/delays.py`), where 67 designs with reports are the judge of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from penstock.compiler.analysis.banks import Access, BankPlace, Dim, Geometry
from penstock.compiler.analysis.digits import signed_digits
from penstock.compiler.analysis.nests import Place
from penstock.compiler.schedule.flatten import FlatStep
from penstock.compiler.schedule.library import ChainRules, OperatorLibrary
from penstock.compiler.schedule.outside import beats

Moment = tuple[int, float]
"""A stage, and nanoseconds into it."""
PlacedDim = tuple[BankPlace, Dim]
"""Where an access is in a dim of a memory, and how that is cut."""
_ADDERS = ("arith.addf", "arith.subf")
PRODUCT_STAGES = 3
"""Of an index times the words of the next dim with what is added, in one DSP slice."""
REMAINDER_STAGES = 3
"""Of a remainder by a number of banks that is no power of two, beside one for each bit of the index (urem in csynth's
instances)."""
CHOICE_NS = 1.2
"""Of the choice of a bank behind it: a store is in the next stage then."""


@dataclass(frozen=True)
class NestMemories:
    """What a nest's own memories are: how they are cut, and which are registers, of which `held` keep one word."""

    held: frozenset[Place]
    registers: frozenset[Place]
    cut: Mapping[Place, Geometry]


class StepTiming:
    """Of one nest's steps, each by its position."""

    def __init__(
        self,
        library: OperatorLibrary,
        steps: Sequence[FlatStep],
        memories: NestMemories,
        accesses: Mapping[int, Access],
        loops: int,
    ) -> None:
        self.library, self.steps, self.memories, self.rules = library, steps, memories, library.chains
        self.budget = library.budget_ns
        self.ready: dict[int, Moment] = {}
        """When each access to a memory knows its address, where that is not at once."""
        self.added: set[int] = set()
        """Accesses whose address is a sum."""
        self.chosen: dict[int, Moment] = {}
        """When it is known which bank an access meets, where that takes a division."""
        if self.rules is not None:
            begin = self.rules.counters_ns if loops > 1 else 0.0
            for index, access in accesses.items():
                place = self.steps[index].target
                if place is not None and place in memories.cut and place not in memories.registers:
                    cut = memories.cut[place]
                    places = list(zip(cut.place(access), cut.dims, strict=True))
                    self._choose(index, access, places)
                    self.ready[index], added = self._address(self.rules, places, begin)
                    if added:
                        self.added.add(index)

    def enter(self, index: int, at: Moment) -> Moment:
        """When a step starts that could at this moment."""
        step, (stage, used) = self.steps[index], at
        if step.kind == "read":
            return max(at, (self.library.read_stage, 0.0))
        if step.kind == "compute":
            assert step.operator is not None
            delay = self.budget if self._fills(step) else step.operator.delay_ns
            return (stage + 1, 0.0) if used > 0 and used + delay > self.budget else at
        if self.rules is None or step.target is None:
            return at
        if step.kind == "write":
            return (stage + 1, 0.0) if used >= self.rules.token_ns else at
        if step.target.kind == "external" or step.target in self.memories.registers:
            return at
        if index in self.added and used > 0 and any(self.steps[i].kind == "read" for i in step.inputs):
            return stage + 1, 0.0
        at = max(at, self.ready.get(index, (0, 0.0)))
        if step.kind == "store":
            at = max(at, self.chosen.get(index, at))
        into = self.rules.address_ns if step.kind == "load" else self.rules.store_ns
        return (at[0] + 1, 0.0) if at[1] + into > self.budget else at

    def leave(self, index: int, at: Moment) -> Moment:
        """When the result of a step that started then is there."""
        step, (stage, used), rules = self.steps[index], at, self.rules
        if step.kind == "compute":
            assert step.operator is not None
            row = step.operator
            if not row.latency:
                used += row.delay_ns
                behind = row.choice_ns > 0 and used + row.choice_ns > self.budget
                return (stage + 1, row.choice_ns) if behind else (stage, used + row.choice_ns)
            return stage + self.library.stages(row), row.result_ns
        if step.kind == "read":
            return stage, used if rules is None else max(used, rules.token_ns)
        late = beats(step, self.library) - 1
        if step.kind != "load" or step.target in self.memories.held:
            return stage + late, used
        if rules is not None and step.target in self.memories.registers:
            return stage, used + rules.register_ns
        external = step.target is not None and step.target.kind == "external"
        memory = self.library.memory
        latency = memory.external_load_latency if external else memory.load_latency
        return max((stage + latency + late, 0.0 if rules is None else rules.word_ns), self.chosen.get(index, (0, 0.0)))

    def stages(self, index: int) -> int:
        """From its start to its result."""
        return self.leave(index, (0, 0.0))[0]

    def takes(self, index: int, user: int) -> int:
        """Stages from a step to one that uses its result, where both start as a stage begins and wait for nobody."""
        at = self.leave(index, (0, 0.0))
        step = self.steps[user]
        return at[0] + 1 if step.kind == "compute" and at[1] > 0 and self._fills(step) else at[0]

    def around(self, path: Iterable[int], held: bool) -> int:
        """Stages around a loop over iterations: from a load, the first of these, to the store that depends on it, the
        last, and to the next load of that word.

        A tool adds no more than a cycle for the memory, wherever it places the steps in an iteration, and adders
        without DSPs leave time for the next one in their last stage.
        """
        memory = self.library.memory
        if self.rules is None:
            return self.placed(path) + (0 if held else memory.store_latency)
        totals: dict[int, tuple[int, bool]] = {}
        for index in path:
            step = self.steps[index]
            before, quick = max((totals[i] for i in step.inputs if i in totals), default=(0, False))
            if step.operator is not None and step.operator.latency:
                quick = step.operator.binding == "fabric" and step.name in _ADDERS
                before += step.operator.latency + (self._fills(step) and not quick)
            totals[index] = before, quick
        total, quick = max(totals.values())
        return total if held else max(total, memory.load_latency) + memory.store_latency + quick

    def placed(self, path: Iterable[int]) -> int:
        """Stages from the first to the last of these steps, where nothing but one of them is waited for."""
        moments: dict[int, Moment] = {}
        for index in path:
            before = max((moments[i] for i in self.steps[index].inputs if i in moments), default=(0, 0.0))
            moments[index] = self.leave(index, self.enter(index, before))
        return max(moments.values())[0]

    def _fills(self, step: FlatStep) -> bool:
        return step.operator is not None and self.library.fills(step.operator)

    def _address(self, rules: ChainRules, places: Sequence[PlacedDim], begin: float) -> tuple[Moment, bool]:
        """When the word of an access is known: row by the words of the next dim, plus column, and so on. And whether
        its last part is added: not where its bits stand beside the others'."""
        at, added, moves = (0, 0.0), False, False
        for place, words in ((place, dim.words) for place, dim in places if dim.words > 1):
            moving = place.word.constant is None or place.corner is not None
            if moves:
                digits = signed_digits(words)
                if digits > 2:
                    at = at[0] + (at[1] > begin + rules.address_ns) + PRODUCT_STAGES, 0.0
                elif digits == 2:
                    at = self._plus(at, rules.address_ns)
                added = digits <= 2 and (moving or place.word.constant != 0)
                if added:
                    at = self._plus(at, rules.address_ns)
            elif moving:
                at = max(at, (0, begin))
            moves |= moving
        return at, added

    def _choose(self, index: int, access: Access, places: Sequence[PlacedDim]) -> None:
        """Banks that are no power of two, where the counters do not say alone which one is met."""
        for place, dim in places:
            if place.corner is not None and dim.banks & (dim.banks - 1):
                moves = [(abs(f), trip) for f, trip in zip(place.corner.factors, access.trips, strict=True) if f]
                step = gcd(*(f for f, _ in moves))
                bits = sum(f // step * (trip - 1) for f, trip in moves).bit_length()
                at = bits + REMAINDER_STAGES, CHOICE_NS
                self.chosen[index] = max(at, self.chosen.get(index, at))

    def _plus(self, at: Moment, delay: float) -> Moment:
        return (at[0] + 1, delay) if at[1] + delay > self.budget else (at[0], at[1] + delay)
