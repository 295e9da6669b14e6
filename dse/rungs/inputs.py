"""Inputs in a row through the simulator, from which the interval between two is taken."""

from __future__ import annotations

from itertools import pairwise

from penstock.compiler.platforms import Platform
from penstock.compiler.simulator import Simulation
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import outlook_of, simulate_design

FRAMES = 6
_LONG, _OF_LONG = 10_000_000, 4
"""Accesses of one input with which each takes seconds to simulate, and how many of these show what six do: FIFOs hold
far less than one, so that who runs ahead is stopped within the first ones."""


def simulate_inputs(network: TaskNetwork, platform: Platform, clock_mhz: float, *, long: int = _LONG) -> Simulation:
    """`FRAMES` of them; of those with more than `long` accesses fewer, if these come out equally far apart."""
    if outlook_of(network, platform, clock_mhz).events > long:
        few = simulate_design(network, platform, clock_mhz, frames=_OF_LONG)
        if few.deadlock is not None or _is_even(few):
            return few
    return simulate_design(network, platform, clock_mhz, frames=FRAMES)


def _is_even(simulation: Simulation) -> bool:
    return len({after - before for before, after in pairwise(simulation.frame_ends)}) == 1


def steady_interval(simulation: Simulation) -> int | None:
    """Cycles between two inputs once the pipeline is full: over the second half of all frames, rounded up."""
    ends = simulation.frame_ends[len(simulation.frame_ends) // 2 - 1 :]
    return -(-(ends[-1] - ends[0]) // (len(ends) - 1)) if len(simulation.frame_ends) > 1 else None
