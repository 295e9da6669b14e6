"""A design at every size that a call may say: it has to be one accelerator for all, whose FIFOs hold at each.

FIFOs are sized at the largest. At another size other things wait for each other, so they are simulated there too, and
made deeper where they are too shallow: deeper ones never make a run later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from penstock.compiler.lengths import Length
from penstock.compiler.pipeline.lower import Lowered
from penstock.compiler.platforms import Platform
from penstock.compiler.schedule import load_library
from penstock.compiler.transforms.merge_lengths import at_steps
from penstock.dse.fifo import size_design
from penstock.profiling.network import TaskNetwork, network_of
from penstock.profiling.simulated import outlook_of, simulate_design

MOST_SIMULATED, SAMPLED = 64, 9
"""Of so many sizes all are simulated, of more the ends and some between."""
_MOST_EVENTS = 50_000_000
"""Of all simulations at the largest size together: about a minute."""


@dataclass(frozen=True)
class LengthRun:
    """A simulated run at some sizes: when it ends, and when it would if no FIFO were ever full."""

    sizes: Mapping[str, int]
    latency: int
    unbounded: int


@dataclass(frozen=True)
class AtLengths:
    """What was simulated of a design whose sizes each call says, the smallest first, with the depths that hold."""

    runs: tuple[LengthRun, ...]
    count: int
    """How many sizes there are."""
    depths: Mapping[str, int]
    deepened: tuple[str, ...] = ()
    """The FIFOs that were too shallow at some size."""

    @property
    def said(self) -> str:
        every = len(self.runs) == self.count
        return f"simulated at {'all ' if every else f'{len(self.runs)} of '}{self.count:,} lengths"


def networks_of(lowered: Lowered, platform: Platform) -> Callable[[Mapping[str, int]], TaskNetwork]:
    """The scheduled design as it works at some sizes."""
    known = lowered.program.lengths
    assert known is not None, "the design does one size"
    steps = {length.name: length.step for length in known.lengths}
    library = load_library(platform.operators, platform.check_clock(lowered.design.clock_mhz))

    def network_at(sizes: Mapping[str, int]) -> TaskNetwork:
        one = at_steps(lowered.stream, {name: size // steps[name] for name, size in sizes.items()})
        return network_of(replace(lowered, stream=one).top, library)

    return network_at


def sizes_to_simulate(lengths: Sequence[Length], events: int) -> tuple[list[Mapping[str, int]], int]:
    """The smallest first, and how many there are; `events` is how long one simulation takes at the largest."""
    ranges = [range(one.least, one.most + 1) for one in lengths]
    count = prod(map(len, ranges))
    if count <= MOST_SIMULATED and count * events <= _MOST_EVENTS:
        chosen = list(product(*ranges))
    else:
        between = [tuple(one[(len(one) - 1) * n // (SAMPLED - 1)] for one in ranges) for n in range(SAMPLED)]
        corners = list(product(*((one[0], one[-1]) for one in ranges))) if len(ranges) > 1 else []
        chosen = sorted({*between, *corners})
    return [{one.name: n * one.step for one, n in zip(lengths, steps, strict=True)} for steps in chosen], count


def hold_at_lengths(
    lowered: Lowered,
    platform: Platform,
    depths: Mapping[str, int],
    *,
    keep: Collection[str] = (),
    most: Mapping[str, int] | None = None,
    slower: bool = False,
    simulations: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> AtLengths:
    """The depths, deeper where a run at some size would stop or end later than with FIFOs that are never full.

    Those to `keep` stay as they are. Runs are compared with such in which those of `most` have so many slots. A design
    that may be `slower` has only to come to its end. Without `simulations` nothing is made deeper; a run that still
    stops is an error.
    """
    known, clock = lowered.program.lengths, lowered.design.clock_mhz
    assert known is not None, "the design does one size"
    network_at, found = networks_of(lowered, platform), dict(depths)
    events = outlook_of(network_at(known.most), platform, clock).events
    chosen, count = sizes_to_simulate(known.lengths, events)
    runs: list[LengthRun] = []
    for number, sizes in enumerate(chosen):
        progress(f"at length {number + 1} of {len(chosen)}")
        network = network_at(sizes)
        free = simulate_design(network, platform, clock, depths={name: (most or {}).get(name) for name in found})
        run = simulate_design(network, platform, clock, depths=found)
        if simulations and (run.deadlock is not None or (run.latency > free.latency and not slower)):
            own = size_design(network, platform, clock, simulations=simulations, most=most, one_input=True).depths
            found |= {name: max(depth, own[name]) for name, depth in found.items() if name in own and name not in keep}
            run = simulate_design(network, platform, clock, depths=found)
        runs.append(LengthRun(sizes, run.latency, free.latency))
    deepened = tuple(sorted(name for name, depth in found.items() if depth > depths[name]))
    if deepened:  # those that were simulated before are no later with them
        runs = [replace(one, latency=_latency(network_at(one.sizes), platform, clock, found)) for one in runs]
    return AtLengths(tuple(runs), count, found, deepened)


def _latency(network: TaskNetwork, platform: Platform, clock_mhz: float, depths: Mapping[str, int]) -> int:
    return simulate_design(network, platform, clock_mhz, depths=depths).latency
