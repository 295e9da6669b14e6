"""The stages of one nest's pipeline: valid bits, enables, and the registers that carry values from stage to stage.

The front, up to the last stage that reads, moves with `go`; what is behind it moves with `ce`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.compiler.backend.rtl.lines import SvLines, bits, packed
from penstock.compiler.backend.rtl.numbers import ValueRange


@dataclass
class PipelineStages:
    """`prefix` sets the signals of a task's several nests apart."""

    depth: int
    front: int
    prefix: str = ""
    declarations: list[str] = field(default_factory=list[str])
    moves: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    made: set[str] = field(default_factory=set[str])
    taken: set[str] = field(default_factory=set[str])

    @property
    def go(self) -> str:
        return f"{self.prefix}go"

    @property
    def ce(self) -> str:
        return f"{self.prefix}ce"

    def valid(self, stage: int) -> str:
        return f"{self.prefix}v{stage}"

    def enable(self, stage: int) -> str:
        """What lets the registers between a stage and the next one load."""
        return self.go if stage < self.front else self.ce

    def fires(self, stage: int) -> str:
        """What lets that which is due in a stage happen."""
        return self.go if stage <= self.front else self.ce

    def fresh(self, label: str) -> str:
        """A name that nothing else in the module has."""
        name, number = f"{self.prefix}{label}", 1
        while name in self.taken:
            name, number = f"{self.prefix}{label}_{number}", number + 1
        self.taken.add(name)
        return name

    def declare(self, name: str, width: int, lanes: int = 1, note: str = "") -> str:
        shape = packed(lanes, width) + " " if lanes > 1 else bits(width)
        self.declarations.append(f"logic {shape}{name};" + (f"  // {note}" if note else ""))
        return name

    def later(self, name: str, stage: int, target: int, width: int, lanes: int = 1) -> str:
        """The signal `name` of a stage, as registers carry it to a later one."""
        current = name
        # a channel's own signals have no prefix, and other nests may meet it too
        own = name if name.startswith(self.prefix) else f"{self.prefix}{name}"
        for s in range(stage, target):
            following = f"{own}_s{s + 1}"
            if following not in self.made:
                self.made.add(following)
                self.declare(following, width, lanes)
                self.moves.setdefault(s, []).append(f"{following} <= {current};")
            current = following
        return current

    def write(self, out: SvLines) -> None:
        """The registers, stage by stage."""
        for stage in sorted(self.moves):
            enable = self.enable(stage)
            with out.block(f"always_ff @(posedge clk) if ({enable}) begin  // stage {stage} to {stage + 1}"):
                out.add(*self.moves[stage])

    def write_valid(self, out: SvLines) -> None:
        """A bubble enters behind the front whenever it stands."""
        if self.depth == 1:
            return
        for s in range(1, self.depth):
            self.declare(self.valid(s), 1)
        with out.block("always_ff @(posedge clk) begin"):
            for s in range(1, self.depth):
                before = f"{self.valid(s - 1)} & {self.go}" if s - 1 == self.front else self.valid(s - 1)
                out.add(
                    f"if (rst) {self.valid(s)} <= 1'b0;",
                    f"else if ({self.enable(s - 1)}) {self.valid(s)} <= {before};",
                )


@dataclass(frozen=True)
class LaneVector:
    """A lane vector. `stage` is the one in whose cycle it is there; constants have none and are always there."""

    name: str
    shape: tuple[int, ...]
    lanes: int
    range: ValueRange
    bits: int
    """Of the type, which the signal may be narrower than."""
    stage: int | None
    literal: int | None = None
    """The one number in all lanes of a constant."""

    def at(self, stage: int, stages: PipelineStages) -> str:
        if self.stage is None:
            return self.name
        return stages.later(self.name, self.stage, stage, self.range.width, self.lanes)


def lane(name: str, lanes: int, index: str) -> str:
    return f"{name}[{index}]" if lanes > 1 else name


def term(text: str, range_: ValueRange) -> str:
    """A signal as a signed expression."""
    return f"$signed({text})" if range_.signed else f"$signed({{1'b0, {text}}})"


def number(value: int) -> str:
    """A signed literal."""
    width = ValueRange(value, value).width + 1  # one more, so that a negated literal is never the least of its width
    return f"{width}'sd{value}" if value >= 0 else f"-{width}'sd{-value}"


def wide(value: LaneVector, index: str, name: str) -> str:
    """One lane with all the bits of its type."""
    if value.literal is not None:
        return f"{value.bits}'h{value.literal & ((1 << value.bits) - 1):x}"
    text = lane(name, value.lanes, index)
    if value.range.width == value.bits:
        return text
    return f"{value.bits}'({term(text, value.range)})"
