"""FIFO depths of a whole design by simulation: every kernel on its own, for kernels run one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from penstock.compiler.platforms import Platform
from penstock.compiler.simulator import Network as SimulatedNetwork
from penstock.compiler.simulator import Rules, Simulator
from penstock.dse.fifo.depths import LEAST_DEPTH
from penstock.dse.fifo.effort import Effort, SizingProgress
from penstock.dse.fifo.equalise import NORMAL, slower_network
from penstock.dse.fifo.known_failures import KnownFailures
from penstock.dse.fifo.long_runs import size_long
from penstock.dse.fifo.size import Sizing, size_fifos
from penstock.dse.support.budgets import SIMULATIONS
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import rules_of, simulated_kernels

SIZING_FRAMES, MOST_SIZING_FRAMES = 4, 16
"""Inputs in a row for which FIFO sizing costs no time: with one alone, depths would do that halve the throughput."""
FOLLOWING = 3
"""Inputs in a row that have to come through where FIFOs hold what one needs."""
_LONG = 10_000_000
"""Accesses of so many inputs in a row take seconds to simulate: then fewer are begun with. Three times as many are
simulated with what is found, whatever is begun with."""


@dataclass(frozen=True)
class DesignSizing:
    """Depths of every FIFO, and what they cost and save; latencies are sums over kernels.

    `normal` are the depths that cost no time, where others were asked for.
    """

    kernels: tuple[Sizing, ...]
    normal: DesignSizing | None = None
    evidence: Literal["simulated"] = "simulated"

    @property
    def depths(self) -> Mapping[str, int]:
        return {name: depth for kernel in self.kernels for name, depth in kernel.depths.items()}

    @property
    def bits(self) -> int:
        return sum(kernel.bits for kernel in self.kernels)

    @property
    def latency(self) -> int:
        return sum(kernel.latency for kernel in self.kernels)

    @property
    def unbounded_latency(self) -> int:
        return sum(kernel.unbounded_latency for kernel in self.kernels)

    @property
    def note(self) -> str:
        """What the budget left undone; empty where every FIFO is seen to need its depth."""
        left = sum(len(kernel.open) for kernel in self.kernels)
        if not left:
            return ""
        runs, several = sum(kernel.simulations for kernel in self.kernels), "s" if left > 1 else ""
        return f"FIFO sizing stopped after {runs} simulations; {left} FIFO{several} may be smaller"


def size_design(
    network: TaskNetwork,
    platform: Platform,
    clock_mhz: float,
    *,
    tolerance: float = 0.0,
    least: int = LEAST_DEPTH,
    frames: int = SIZING_FRAMES,
    most_frames: int = MOST_SIZING_FRAMES,
    simulations: int = SIMULATIONS,
    start: Mapping[str, int] | None = None,
    most: Mapping[str, int] | None = None,
    progress: SizingProgress = lambda _: None,
    equalisation: int = NORMAL,
    one_input: bool = False,
) -> DesignSizing:
    """The fewest bits of FIFO with which no kernel of a scheduled design ends later; blocks keep their depths.

    For `frames` inputs in a row, fewer of long ones, or for twice as many again and again until three times as many
    lose nothing; kernels that run one after the other do not overlap inputs, and are sized for one, as all are with
    `one_input`: what FIFOs hold of the next inputs, so that these follow sooner, they need not hold then, as long as
    these come through at all. `start` are depths to begin with where they suffice, `most` what some may have at
    most. The budget is one for all kernels, what one leaves is the others'. With an `equalisation` a design is
    sized twice, and never has more bits than under the normal one.
    """
    if one_input:
        frames = most_frames = 1
    if equalisation:
        normal = size_design(
            network, platform, clock_mhz, tolerance=tolerance, least=least, frames=frames, most_frames=most_frames,
            simulations=simulations, start=start, most=most, progress=progress,
        )  # fmt: skip
        start = normal.depths
    else:
        normal = None
    rules, parts = rules_of(platform, clock_mhz), simulated_kernels(network, platform, clock_mhz)
    left, sized = Effort.of(simulations), list[Sizing]()
    lengths = [Simulator(part, rules).plan.accesses + 1 for part in parts]
    for number, part in enumerate(parts):
        share = left.part(lengths[number] / sum(lengths[number:]))
        where = f"kernel {number + 1} of {len(parts)}: " if len(parts) > 1 else ""
        fewer = max(1, min(frames, _LONG // lengths[number]))
        inputs = (1, 1) if len(parts) > 1 else (fewer, fewer * most_frames // frames)

        def say(text: str, where: str = where) -> None:
            progress(where + text)

        found = None
        if start is not None:
            found = size_long(
                part, rules, start, effort=share, least=least, frames=1 if len(parts) > 1 else most_frames,
                tolerance=tolerance, most=most, progress=say,
            )  # fmt: skip
        found = found or _lasting(
            part, rules, share, tolerance, least, inputs, start, most or {}, say, equalisation
        )  # fmt: skip
        if one_input and len(parts) == 1 and not come_through(Simulator(part, rules), found.depths):
            found = size_fifos(
                part, rules, tolerance=tolerance, least=least, frames=FOLLOWING, start=start, most=most, progress=say,
                effort=share, equalisation=equalisation, singles=True, first_only=True,
            )  # fmt: skip
        left = left.without(found.simulations, found.work)
        sized.append(found)
    return DesignSizing(tuple(sized), normal)


def _lasting(
    part: SimulatedNetwork,
    rules: Rules,
    effort: Effort,
    tolerance: float,
    least: int,
    frames: tuple[int, int],
    start: Mapping[str, int] | None,
    limits: Mapping[str, int],
    progress: SizingProgress,
    equalisation: int,
) -> Sizing:
    """Depths for so many inputs, or more where a longer run shows that these depths only put a wait off."""
    now, most = frames
    fifos = [c.name for c in part.channels if c.kind == "fifo"]
    known, simulator, runs, work = KnownFailures(fifos), Simulator(part, rules), 0, 0
    slower = Simulator(slower_network(part, rules, equalisation), rules) if equalisation else simulator
    while True:
        last = 2 * now > most
        found = size_fifos(
            part, rules, tolerance=tolerance, least=least, frames=now, known=known, start=start, most=limits,
            progress=progress, effort=effort.without(runs, work).part(1 if last else 0.5), equalisation=equalisation,
            singles=True,
        )  # fmt: skip
        runs, work = runs + found.simulations, work + found.work
        if last or _lasts(simulator, slower, found.depths, limits, tolerance, 3 * now):
            return replace(found, simulations=runs, work=work)
        now *= 2


def come_through(simulator: Simulator, depths: Mapping[str, int]) -> bool:
    """Whether inputs that follow each other do not stop each other for ever."""
    return len(simulator.outcome(depths, frames=FOLLOWING).frame_ends) == FOLLOWING


def _lasts(
    simulator: Simulator,
    slower: Simulator,
    depths: Mapping[str, int],
    limits: Mapping[str, int],
    tolerance: float,
    frames: int,
) -> bool:
    free = slower.outcome({name: limits.get(name) for name in depths}, frames=frames).frame_ends
    bound = simulator.outcome(depths, frames=frames).frame_ends
    return len(bound) == len(free) and all(b <= int(f * (1 + tolerance)) for f, b in zip(free, bound, strict=True))


def runs_through(network: TaskNetwork, platform: Platform, clock_mhz: float, depths: Mapping[str, int]) -> bool:
    """Whether no kernel deadlocks with these depths.

    Only the order of accesses within each nest decides that, so waits for memory or for the host do not matter;
    stages other than the schedule's do.
    """
    for part in simulated_kernels(network, platform, clock_mhz):
        own = {c.name: depths[c.name] for c in part.channels if c.name in depths}
        if Simulator(part, rules_of(platform, clock_mhz)).run(own).deadlock is not None:
            return False
    return True
