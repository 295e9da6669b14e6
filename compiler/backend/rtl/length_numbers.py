"""Numbers of a nest that follow from the lengths of a call: each is worked out once, into a register.

Lengths stand still while the core runs. A register is right a cycle after they are, and from reset on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.compiler.backend.rtl.lines import SvLines, bits, clog2
from penstock.compiler.backend.rtl.ports import Signal
from penstock.compiler.backend.rtl.stages import PipelineStages
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.nest_attributes import SIGNS, GuardAttr
from penstock.compiler.dialects.stream import TaskOp
from penstock.compiler.lengths import ByLength, Length


@dataclass(frozen=True)
class LengthSignals:
    """The lengths of a call as signals of the core, in steps; none where a design does one size."""

    lengths: Sequence[Length] = ()
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    def pins(self, met: set[str] | None = None) -> list[Signal]:
        """Inputs of a module, for those of the lengths that it needs."""
        needed = [one for one in self.lengths if met is None or one.name in met]
        return [Signal(self.names[one.name], False, bits(clog2(one.most + 1))) for one in needed]


def met_lengths(task: TaskOp) -> set[str]:
    """The lengths that a task's loops and guards follow from."""
    counts: list[ByLength | None] = []
    for op in task.walk():
        if isinstance(op, nest.NestOp):
            counts += [loop.count for loop in op.loops.data]
        elif isinstance(when := op.properties.get("when"), GuardAttr):
            counts += [term.count for term in when.terms]
    return {name for count in counts if count is not None for name, _ in count.factors}


@dataclass
class LengthNumbers:
    """Of one nest, whose `stages` declare them."""

    signals: LengthSignals
    stages: PipelineStages
    made: dict[tuple[ByLength, int], str] = field(default_factory=dict[tuple[ByLength, int], str])
    updates: list[str] = field(default_factory=list[str])

    def label(self, count: ByLength) -> str:
        """`2_seq_less_1`, for names."""
        terms = [("" if factor > 0 else "less_") + (f"{abs(factor)}_" if abs(factor) > 1 else "") + name
                 for name, factor in count.factors]  # fmt: skip
        more = [f"{'less' if count.offset < 0 else 'and'}_{abs(count.offset)}"] if count.offset else []
        return "_".join([*terms, *more])

    def compared(self, counter: str, comparison: str, count: ByLength) -> str:
        """A counter against a number, which may be below zero."""
        low, high = count.ends(self.signals.lengths)
        if low >= 0:
            return f"{counter} {SIGNS[comparison]} {self._register(count, clog2(high + 1))}"
        width = max(high.bit_length(), (-low - 1).bit_length()) + 1
        return f"$signed({{1'b0, 32'({counter})}}) {SIGNS[comparison]} $signed({self._register(count, width)})"

    def modulo(self, count: ByLength, width: int) -> str:
        """The number's lowest bits, for what counts modulo so many."""
        return self._register(count, width)

    def _register(self, count: ByLength, width: int) -> str:
        key = count, width
        if key not in self.made:
            text = count.text(self.signals.names)
            name = self.made[key] = self.stages.fresh(f"n_{self.label(count)}")
            self.stages.declare(name, width, note=str(count))
            least = count.at({one.name: one.least for one in self.signals.lengths}) % (1 << width)
            self.updates.append(f"{name} <= rst ? {width}'d{least} : {text};")
        return self.made[key]

    def write(self, out: SvLines) -> None:
        if self.updates:
            with out.block("always_ff @(posedge clk) begin"):
                out.add(*self.updates)
