"""Networks with the II and depth that high-level synthesis reached in place of those that were planned.

Guards, channels and trip counts are ours: our nests know which iteration touches which channel, which no report says.
What a report knows better is how fast each pipeline turns and how long it is. The simulator and FIFO sizing then work
as before, on the network that will be built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.compiler.evidence import Evidence
from penstock.compiler.simulator import Network, Phase, SimulatedProcess
from penstock.profiling.vitis.records import CountSpan, ReportedLoop, SynthesisReport


@dataclass(frozen=True)
class PhaseTiming:
    """One phase's pipeline, and where its figures come from."""

    process: str
    index: int
    loop: str | None
    ii: int
    depth: int
    initial_delay: int
    """Cycles before its first token leaves; all of its cycles if it writes to no channel."""
    evidence: Evidence


@dataclass(frozen=True)
class Retimed:
    """`kept` are the processes whose loops the report does not have: their figures are still the planned ones."""

    network: Network
    phases: tuple[PhaseTiming, ...]
    kept: tuple[str, ...]
    depths: Mapping[str, int]
    """FIFO depths that the report gives and the network now has."""


def retime(network: Network, report: SynthesisReport) -> Retimed:
    """Put the report's figures into a network. Phases fit loops by module, order and trip count, or not at all."""
    processes: list[SimulatedProcess] = []
    phases: list[PhaseTiming] = []
    kept: list[str] = []
    for process in network.processes:
        matched = fitting_loops(report, process.name, [phase.iterations for phase in process.phases])
        if matched is None:
            kept.append(process.name)
            phases += _described(process, None)
            processes.append(process)
        else:
            new = replace(
                process, phases=tuple(timed_phase(p, loop) for p, loop in zip(process.phases, matched, strict=True))
            )
            phases += _described(new, matched)
            processes.append(new)
    depths = reported_depths(network, report)
    changed = replace(network, processes=tuple(processes)).with_depths(depths)
    return Retimed(changed, tuple(phases), tuple(kept), depths)


def own_loops(report: SynthesisReport, function: str) -> list[ReportedLoop]:
    """The loops of a function. The tool calls its module `<name>`, `<name>_1` for a copy, `<name>_s` for a template,
    and gives a loop beside others a module `<name>_Pipeline_<loop>`; of several copies the first one counts.
    """
    own = re.compile(rf"{re.escape(function)}(_\d+)?(_s)?")
    owners = {loop.module: loop.module.partition("_Pipeline_")[0] for loop in report.loops}
    copies = sorted({owner for owner in owners.values() if own.fullmatch(owner)}, key=lambda name: (len(name), name))
    return [loop for loop in report.loops if copies and owners[loop.module] == copies[0]]


def fitting_loops(report: SynthesisReport, function: str, iterations: list[int]) -> list[ReportedLoop | None] | None:
    """A loop for every nest of a function; None for a nest of one iteration, which is no loop to the tool.

    All of the function's loops must be taken. They may stand in the source's order where the nests are grouped: of
    those with a nest's iterations the first that is left is its own.
    """
    rest = [loop for loop in own_loops(report, function) if loop.pipelined and loop.trip != CountSpan(1, 1)]
    found: list[ReportedLoop | None] = []
    for count in iterations:
        if count <= 1:
            found.append(None)
        elif (loop := take_loop(rest, count)) is not None:
            found.append(loop)
        else:
            return None
    return None if rest else found


def take_loop(rest: list[ReportedLoop], iterations: int, pipelined: bool = True) -> ReportedLoop | None:
    """The first loop of so many iterations, taken out of the list."""
    for loop in rest:
        fits = loop.trip is not None and loop.trip.exact == iterations and bool(loop.pipelined) == pipelined
        if fits and (not pipelined or reported_figures(loop) is not None):
            rest.remove(loop)
            return loop
    return None


def reported_figures(loop: ReportedLoop) -> tuple[int, int] | None:
    """II and depth, where the report has both and they are fixed."""
    ii = loop.ii.exact if loop.ii is not None else None
    depth = loop.depth.exact if loop.depth is not None else None
    return (ii, depth) if ii and depth else None


def timed_phase(phase: Phase, loop: ReportedLoop | None) -> Phase:
    """Accesses go where the tool's rules put them: planned stages belong to the planned pipeline."""
    figures = reported_figures(loop) if loop is not None else None
    if loop is None or figures is None:
        return phase
    accesses = tuple(replace(access, stage=None) for access in phase.accesses)
    return replace(phase, ii=figures[0], depth=figures[1], accesses=accesses, flushes=loop.flushes(phase.flushes))


def _described(process: SimulatedProcess, loops: Iterable[ReportedLoop | None] | None) -> list[PhaseTiming]:
    found = list(loops) if loops is not None else [None] * len(process.phases)
    return [
        PhaseTiming(
            process.name, index, loop.name if loop is not None else None, phase.ii, phase.depth, _delay(phase),
            "csynth" if loop is not None else "modelled",
        )
        for index, (phase, loop) in enumerate(zip(process.phases, found, strict=True))
    ]  # fmt: skip


def _delay(phase: Phase) -> int:
    """Under Vitis' rules: tokens leave in the last stage."""
    firsts = [
        access.pattern.iteration(0) * phase.ii + (phase.depth - 1 if access.stage is None else access.stage)
        for access in phase.accesses
        if access.direction == "write"
    ]
    return min(firsts, default=phase.length)


def reported_depths(network: Network, report: SynthesisReport) -> dict[str, int]:
    """Depths of FIFOs by name; an array of them is one channel, and all of its FIFOs must be equally deep."""
    reported: dict[str, set[int]] = {}
    names = {channel.name for channel in network.channels if channel.kind == "fifo"}
    for fifo in report.fifos:
        name = fifo.name.removesuffix("_U")
        while name not in names and name.rpartition("_")[2].isdigit():
            name = name.rpartition("_")[0]
        if name in names and fifo.depth:
            reported.setdefault(name, set()).add(fifo.depth)
    return {name: depths.pop() for name, depths in reported.items() if len(depths) == 1}
