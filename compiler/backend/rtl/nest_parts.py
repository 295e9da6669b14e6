"""What a nest's module is made of while it is written, for whatever writes a part of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from penstock.compiler.analysis.extents import extents_of
from penstock.compiler.backend.rtl.length_numbers import LengthNumbers, LengthSignals
from penstock.compiler.backend.rtl.lines import SvLines
from penstock.compiler.backend.rtl.loops import Loops
from penstock.compiler.backend.rtl.memory_sv import Addressing
from penstock.compiler.backend.rtl.stages import LaneVector, PipelineStages, wide
from penstock.compiler.backend.rtl.timing import NestTiming
from penstock.compiler.dialects import nest


@dataclass
class NestParts:
    """`names` are those of channels and memories; `values` are the lanes that were written so far."""

    op: nest.NestOp
    timing: NestTiming
    names: dict[SSAValue, str]
    stages: PipelineStages
    lengths: LengthSignals
    out: SvLines = field(default_factory=SvLines)
    values: dict[SSAValue, LaneVector] = field(default_factory=dict[SSAValue, LaneVector])

    def __post_init__(self) -> None:
        self.loops = Loops(extents_of(self.op), self.stages, LengthNumbers(self.lengths, self.stages))
        self.addressing = Addressing(self.loops, self.stages)

    def whole(self, value: SSAValue, stage: int, target: str) -> None:
        """All lanes of a value in a stage, with all bits of its type."""
        given = self.values[value]
        text = given.at(stage, self.stages)
        if given.literal is None and given.range.width == given.bits:
            self.out.add(f"assign {target} = {text};")
            return
        with self.out.lanes([given.lanes], f"{target}_lane") as (index,):
            goal = f"{target}[{index}]" if given.lanes > 1 else target
            self.out.add(f"assign {goal} = {wide(given, index, text)};")
