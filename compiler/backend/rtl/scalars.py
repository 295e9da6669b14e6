"""One lane of a value inside a scalar body: a literal, an argument's lane, or a signal of the lane's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.compiler.backend.rtl.lines import SvLines, bits
from penstock.compiler.backend.rtl.numbers import ValueRange
from penstock.compiler.backend.rtl.stages import LaneVector, PipelineStages, lane, number, term


@dataclass
class LaneBody:
    """The signals of one lane, inside its generate block."""

    stages: PipelineStages
    out: SvLines
    taken: set[str] = field(default_factory=set[str])
    made: set[str] = field(default_factory=set[str])

    def fresh(self, label: str) -> str:
        """A name that nothing else in the lane has, nor in the module: it would hide a signal that the lane reads."""
        name, count = label, 1
        while name in self.taken or name in self.stages.taken:
            name, count = f"{label}_{count}", count + 1
        self.taken.add(name)
        return name

    def wire(self, label: str, width: int, expression: str) -> str:
        name = self.fresh(label)
        self.out.add(f"wire {bits(width)}{name} = {expression};")
        return name

    def later(self, name: str, stage: int, target: int, width: int) -> str:
        """Registers of this lane alone."""
        current = name
        for s in range(stage, target):
            following = f"{name}_s{s + 1}"
            if following not in self.made:
                self.made.add(following)
                self.register(following, width, current, s)
            current = following
        return current

    def register(self, name: str, width: int, expression: str, stage: int, also: str = "") -> None:
        enable = self.stages.enable(stage) + (f" & {also}" if also else "")
        self.out.add(
            f"logic {bits(width)}{name};",
            f"always_ff @(posedge clk) if ({enable}) {name} <= {expression};  // stage {stage} to {stage + 1}",
        )


@dataclass(frozen=True)
class Scalar:
    """`stage` is None for what is there in every stage."""

    range: ValueRange
    bits: int
    stage: int | None
    literal: int | None = None
    name: str = ""
    value: LaneVector | None = None
    index: str = "0"

    @staticmethod
    def of(value: LaneVector, index: str) -> Scalar:
        return Scalar(value.range, value.bits, value.stage, value.literal, value=value, index=index)

    def text(self, stage: int, body: LaneBody) -> str:
        """The signal in a stage."""
        if self.literal is not None:
            return f"{self.range.width}'h{self.literal & ((1 << self.range.width) - 1):x}"
        if self.value is not None:
            return lane(self.value.at(stage, body.stages), self.value.lanes, self.index)
        if self.stage is None:
            return self.name
        return body.later(self.name, self.stage, stage, self.range.width)

    def term(self, stage: int, body: LaneBody) -> str:
        """The number in a stage as a signed expression."""
        if self.literal is not None:
            return number(self.literal)
        return term(self.text(stage, body), self.range)

    def pattern(self, stage: int, body: LaneBody, width: int) -> str:
        """All bits of the type, as many as asked for, as an unsigned expression."""
        if self.literal is not None:
            return f"{width}'h{self.literal & ((1 << width) - 1):x}"
        if self.range.width == width:
            return self.text(stage, body)
        return f"{width}'({self.term(stage, body)})"


def latest(scalars: Sequence[Scalar]) -> int:
    """The first stage in which all of them are there."""
    return max((s.stage for s in scalars if s.stage is not None), default=0)
