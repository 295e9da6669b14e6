"""A design as it is checked, built and reported: lowered, scheduled and modelled, each once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from penstock.compiler.design import Design
from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.platforms import Platform, load_platform
from penstock.compiler.program import Program
from penstock.compiler.schedule import load_library
from penstock.dse.fifo import safe_depths
from penstock.dse.memory import allocate_whole
from penstock.dse.memory.items import WHOLE_CHIP
from penstock.dse.rungs.open_rtl import WholeCore
from penstock.profiling.model import DesignFigures, DesignModel
from penstock.profiling.network import TaskNetwork, network_of


@dataclass(frozen=True)
class Scheduled:
    """`figures` are the model's with the design's own depths, which were seen to run through; `unsized` are the depths
    that FIFOs would have by the model alone."""

    lowered: Lowered
    platform: Platform
    network: TaskNetwork
    figures: DesignFigures
    unsized: Mapping[str, int]

    @staticmethod
    def of(program: Program, design: Design) -> Scheduled:
        return Scheduled.of_lowered(lower(program, design), load_platform(design.platform))

    @staticmethod
    def of_lowered(lowered: Lowered, platform: Platform) -> Scheduled:
        model = DesignModel(platform, lowered.design.clock_mhz)
        network = network_of(lowered.top, model.library)
        free = model.figures(network, bounded=False)
        unsized = safe_depths(free.channels, lowered.design.prefetch_bits)
        return Scheduled(lowered, platform, network, model.figures(network, seen=True), unsized)

    @cached_property
    def built(self) -> DesignFigures:
        """The figures with memories as the design's record builds them, where it says so."""
        kinds = self.lowered.design.memories
        if not kinds:
            return self.figures
        library = load_library(self.platform.operators, self.lowered.design.clock_mhz)
        found = allocate_whole(self.network, library, self.platform.available, kinds)
        return replace(self.figures, resources=found.used(WHOLE_CHIP))

    @cached_property
    def core(self) -> WholeCore:
        """The design as SystemVerilog; an error where the platform is not one of the open route."""
        return WholeCore.of(self.lowered, self.platform)
