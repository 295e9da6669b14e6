"""The loops of a nest as counters, its guards as flags, its affine addresses as registers that are added to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from penstock.compiler.analysis.extents import Extents
from penstock.compiler.backend.rtl.length_numbers import LengthNumbers
from penstock.compiler.backend.rtl.lines import SvLines, clog2, conjunction
from penstock.compiler.backend.rtl.stages import PipelineStages
from penstock.compiler.dialects.nest import GuardAttr, Term
from penstock.compiler.dialects.nest_attributes import SIGNS
from penstock.compiler.lengths import ByLength

_WORDS = {"eq": "is", "ne": "is_not", "ge": "from", "le": "to", "in": "in"}


@dataclass
class Loops:
    """Counters of the loops that turn. `advance` is high when an iteration leaves stage 0."""

    extents: Extents
    stages: PipelineStages
    numbers: LengthNumbers
    flags: dict[str, str] = field(default_factory=dict[str, str])
    linear: dict[tuple[tuple[int, ...], int], str] = field(default_factory=dict[tuple[tuple[int, ...], int], str])
    updates: list[str] = field(default_factory=list[str])
    resets: list[str] = field(default_factory=list[str])
    wires: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.loops = self.extents.loops
        self.turning = [k for k, loop in enumerate(self.loops) if loop.trip > 1]
        self.names = {k: self.stages.fresh(self.loops[k].name) for k in self.turning}
        for k in self.turning:
            self.stages.declare(self.names[k], clog2(self.loops[k].trip))
            self.flag(self._end(k))
        before = "advance" if not self.stages.prefix else f"{self.stages.prefix}advance"
        self.advance = before
        for position, k in enumerate(self.turning):
            name, condition = self.names[k], self._wrapped(self.turning[position + 1 :])
            step = f"{name} <= {self.last(k)} ? '0 : {name} + 1'b1;"
            self.resets.append(f"{name} <= '0;")
            self.updates.append(f"if ({condition}) {step}" if condition != "1'b1" else step)

    def last(self, loop: int) -> str:
        return self.flag(self._end(loop))

    def _end(self, loop: int) -> Term:
        one = self.loops[loop]
        return Term(loop, "eq", one.trip - 1, count=one.count.plus(-1) if one.count else None)

    def flag(self, term: Term) -> str:
        """One comparison in stage 0."""
        term = replace(term, law=None)
        trip = self.loops[term.loop].trip
        holds = [term.holds([0] * term.loop + [i]) for i in (range(trip) if trip <= 4 and not term.count else ())]
        if holds and all(holds):
            return "1'b1"
        if holds and not any(holds):
            return "1'b0"
        counter = self.names.get(term.loop, "1'b0")
        label = self.names.get(term.loop, f"{self.stages.prefix}loop{term.loop}")
        if term == self._end(term.loop):
            word = "last"
        elif term == Term(term.loop, "eq", 0):
            word = "first"
        else:
            word = f"{_WORDS[term.comparison]}_{self.numbers.label(term.count) if term.count else term.value}"
        if term.every:
            word, counter = f"mod_{term.every}_{word}", f"({counter} % {term.every})"
        name = f"{label}_{word}"
        if name not in self.flags:
            self.flags[name] = name
            self.stages.taken.add(name)
            self.stages.declare(name, 1)
            if term.comparison == "in":
                self.wires.append(f"assign {name} = 1'({trip}'h{term.value:x} >> {counter});")
            elif term.count:
                self.wires.append(f"assign {name} = {self.numbers.compared(counter, term.comparison, term.count)};")
            else:
                self.wires.append(f"assign {name} = {counter} {SIGNS[term.comparison]} {term.value};")
        return name

    def _wrapped(self, loops: Sequence[int]) -> str:
        return conjunction([self.last(k) for k in loops])

    def all_of(self, terms: Sequence[Term], label: str) -> str | None:
        """A conjunction in stage 0; None where it always holds."""
        flags = sorted({self.flag(t) for t in terms} - {"1'b1"})
        if not flags:
            return None
        if len(flags) == 1:
            return flags[0]
        key = conjunction(flags)
        if key not in self.flags:
            name = self.flags[key] = self.stages.fresh("_and_".join(flags) if len(flags) <= 3 else label)
            self.stages.declare(name, 1)
            self.wires.append(f"assign {name} = {key};")
        return self.flags[key]

    def guard(self, guard: GuardAttr, stage: int) -> str | None:
        """A guard as a flag of a stage; None where it always holds."""
        flag = self.all_of(guard.terms, "guard")
        return None if flag is None else self.stages.later(flag, 0, stage, 1)

    def first_of(self, start: int) -> Sequence[Term]:
        """The first iteration of the loops from `start` on."""
        return [Term(k, "eq", 0) for k in self.turning if k >= start]

    def last_of(self, start: int) -> Sequence[Term]:
        return [self._end(k) for k in self.turning if k >= start]

    def affine(self, coefficients: Sequence[int], offset: int, label: str) -> tuple[str, int]:
        """`offset + sum(coefficient * counter)` in stage 0, and the most it can be."""
        factors = tuple(coefficients[k] for k in self.turning)
        most = offset + sum(f * (self.loops[k].trip - 1) for f, k in zip(factors, self.turning, strict=True) if f > 0)
        moving = [(f, k) for f, k in zip(factors, self.turning, strict=True) if f]
        if not moving:
            return f"{clog2(most + 1)}'d{offset}", most
        key = (factors, offset)
        if key not in self.linear:
            self.linear[key] = self._joined(moving, offset, label) or self._register(factors, offset, most, label)
        return self.linear[key], most

    def at_most(self, coefficients: Sequence[int], bound: int, label: str, stage: int) -> str:
        """Whether `sum(coefficient * counter)` is no more than a number, as a flag of a stage."""
        text, most = self.affine(coefficients, 0, f"{label}_place")
        if not 0 <= bound < most:
            return "1'b0" if bound < 0 else "1'b1"
        key = f"{text} <= {bound}"
        if key not in self.flags:
            name = self.flags[key] = self.stages.fresh(f"{label}_to_{bound}")
            self.stages.declare(name, 1)
            self.wires.append(f"assign {name} = {key};")
        return self.stages.later(self.flags[key], 0, stage, 1)

    def _joined(self, moving: list[tuple[int, int]], offset: int, label: str) -> str | None:
        """Counters side by side, where their bits do not meet."""
        pieces: list[str] = []
        position = 0
        for factor, k in sorted(moving):
            low = factor.bit_length() - 1
            if offset or factor < 0 or factor != 1 << low or low < position:
                return None
            if low > position:
                pieces.append(f"{low - position}'d0")
            pieces.append(self.names[k])
            position = low + clog2(self.loops[k].trip)
        if len(pieces) == 1:
            return pieces[0]
        name = self.stages.fresh(label)
        self.stages.declare(name, position)
        self.wires.append(f"assign {name} = {{{', '.join(reversed(pieces))}}};")
        return name

    def _register(self, factors: Sequence[int], offset: int, most: int, label: str) -> str:
        """A register that grows by what the loop that turns adds, and falls back by what the inner ones had added.

        It counts modulo its bits: an offset below zero is only where no guard holds.
        """
        name, width = self.stages.fresh(label), clog2(most + 1)
        start = offset % (1 << width)
        self.stages.declare(name, width)
        choice, undone = "", ByLength((), 0)
        for factor, k in reversed(list(zip(factors, self.turning, strict=True))):
            choice += f"!{self.last(k)} ? {self._moved(name, undone.times(-1).plus(factor), width)} : "
            trips = self.loops[k].count or ByLength((), self.loops[k].trip)
            undone = undone.add(trips.plus(-1).times(factor))
        self.resets.append(f"{name} <= {width}'d{start};")
        self.updates.append(f"{name} <= {choice}{width}'d{start};")
        return name

    def _moved(self, name: str, step: ByLength, width: int) -> str:
        if step.factors:
            return f"{name} + {self.numbers.modulo(step, width)}"
        if step.offset == 0:
            return name
        return f"{name} {'+' if step.offset > 0 else '-'} {width}'d{abs(step.offset) % (1 << width)}"

    def write(self, out: SvLines) -> None:
        self.numbers.write(out)
        if self.turning:
            out.add(*self.wires)
            with out.block("always_ff @(posedge clk) begin"):
                with out.block("if (rst) begin", "end"):
                    out.add(*self.resets)
                with out.block(f"else if ({self.advance}) begin"):
                    out.add(*self.updates)
