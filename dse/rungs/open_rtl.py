"""A whole design on the open route: its SystemVerilog, run in Verilator with the model's data.

The same core is what a rung measures, what verification compares with the interpreter, and what a bitstream is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.backend.rtl import RtlDesign
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline import Lowered
from penstock.compiler.platforms import Platform
from penstock.compiler.schedule import OperatorLibrary, load_library
from penstock.profiling.open_rtl.run import RtlRun, simulate_rtl
from penstock.profiling.open_rtl.verilate import BuiltProgram as Built
from penstock.profiling.open_rtl.verilate import build, build_many
from penstock.profiling.tool_runner import ToolRunner


def build_all(cores: Sequence[WholeCore], tools: ToolRunner) -> None:
    """Build several cores' programs at once; what fails shows when that core is run."""
    build_many([core.design for core in cores], tools)


def open_library(platform: Platform, clock_mhz: float) -> OperatorLibrary:
    """The platform's operators, if our SystemVerilog is what runs on it."""
    library = load_library(platform.operators, platform.check_clock(clock_mhz))
    if platform.family.route == "open":
        return library
    raise PenstockError(
        code="no-open-route", what=f"{platform.name} is not built on the open route", where="evidence open-rtl",
        limit="open-rtl figures are of our own SystemVerilog, which is scheduled for ECP5 so far",
        hint="take --evidence simulated, or an ECP5 platform",
    )  # fmt: skip


@dataclass(frozen=True)
class WholeCore:
    """One design as SystemVerilog. It is built at its first run."""

    lowered: Lowered
    design: RtlDesign
    tools: ToolRunner = field(default_factory=ToolRunner)

    @staticmethod
    def of(lowered: Lowered, platform: Platform, tools: ToolRunner | None = None) -> WholeCore:
        library = open_library(platform, lowered.design.clock_mhz)
        return WholeCore(lowered, emit_rtl(lowered.stream, library, lowered.padded.params), tools or ToolRunner())

    @cached_property
    def built(self) -> Built:
        return build(self.design, self.tools)

    def run(self, inputs: Sequence[Array], *, frames: int = 1, stall_seed: int | None = None) -> RtlRun:
        """The same inputs several times, as closely as the core takes them."""
        held = self._held(inputs)
        return simulate_rtl(
            self.design, held, frames=frames, stall_seed=stall_seed, program=self.built, tools=self.tools
        )

    def answers(self, sets: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """What comes out for each set of inputs, one after the other in one simulation."""
        held = [self._held(one) for one in sets]
        joined = {name: np.stack([one[name] for one in held]) for name in held[0]}
        run = simulate_rtl(self.design, joined, frames=len(sets), one_by_one=True, program=self.built, tools=self.tools)
        self.check(run)
        return [
            self.lowered.run_memories(lambda _, i=i: {name: array[i] for name, array in run.outputs.items()}, one)
            for i, one in enumerate(sets)
        ]

    def _held(self, inputs: Sequence[Array]) -> dict[str, Array]:
        """What the host fills; an input that nothing reads has no port."""
        read = {port.argument for port in self.design.ports if port.kind == "memory_read"}
        return {name: values for name, values in self.lowered.memories(inputs).items() if name in read}

    def check(self, run: RtlRun) -> None:
        """A core that stopped for ever has no figures; who waits is named."""
        if run.deadlocked:
            raise PenstockError(
                code="rtl-deadlock", what="the SystemVerilog stops for ever", where=self.lowered.program.name,
                limit="; ".join(run.stuck[:4]), hint="deepen the FIFO that is full, or leave depths to the tool",
            )  # fmt: skip
