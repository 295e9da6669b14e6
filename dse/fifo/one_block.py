"""One block instead of two in turn, where what fills it next comes late enough.

A converter of two blocks takes in the next one while this one is still read. Mostly it is read long before: a kernel
that waits for a whole row, say, has it behind itself when the next row comes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from penstock.compiler.platforms import Platform
from penstock.compiler.simulator import Channel, Network, Rules, Simulator
from penstock.dse.fifo.depths import LEAST_DEPTH
from penstock.dse.fifo.single_slots import as_singles
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import rules_of, simulated_kernels

_INPUTS = 4
"""In a row, for which one block must do where inputs follow each other."""
_LONG, _LONG_ALONE = 10_000_000, 40_000_000
"""Accesses of all of them, and of one input, beyond which nothing is tried."""
_LARGE = 32
"""Part of all blocks' bits from which on one is large."""


def single_blocks_held(
    network: TaskNetwork, platform: Platform, clock_mhz: float, depths: Mapping[str, int], one_input: bool
) -> dict[str, int]:
    """One block for each channel where one input, or several in a row, end no later with it.

    Of one input, that is tried of all converters, of several of those that hand over one block a run: the others are
    read all the time.
    """
    rules, found, inputs = rules_of(platform, clock_mhz), dict[str, int](), 1 if one_input else _INPUTS
    for part in simulated_kernels(network, platform, clock_mhz):
        own = {c.name: depths[c.name] for c in part.channels if c.name in depths}
        tokens = part.tokens()
        tried = [c for c in _in_twos(part) if c.name not in depths and (inputs == 1 or tokens[c.name] == 1)]
        found |= blocks_of_one(part, rules, own, inputs, tried)
    return found


def large_single_blocks(
    network: TaskNetwork, platform: Platform, clock_mhz: float, most: Mapping[str, int], kept: Collection[str]
) -> dict[str, int]:
    """One block for each large channel that is not `kept` where one input ends no later with it if FIFOs hold what they
    want to, but for those that hold so much at `most`.

    Depths that are found for one block suffice; found for two, they seldom do.
    """
    rules, found = rules_of(platform, clock_mhz), dict[str, int]()
    for part in simulated_kernels(network, platform, clock_mhz):
        fifos = {c.name: most.get(c.name) for c in part.channels if c.kind == "fifo"}
        least = sum(c.bits * c.words for c in part.channels if c.kind == "block") // _LARGE
        large = [c for c in _in_twos(part) if c.bits * c.words >= least and c.name not in kept]
        found |= blocks_of_one(part, rules, fifos, 1, large)
    return found


def _in_twos(network: Network) -> list[Channel]:
    """Channels of two blocks, the largest first."""
    two = [c for c in network.channels if c.kind == "block" and c.depth == LEAST_DEPTH]
    return sorted(two, key=lambda c: -c.bits * c.words)


def blocks_of_one(
    network: Network, rules: Rules, depths: Mapping[str, int | None], inputs: int, tried: Sequence[Channel]
) -> dict[str, int]:
    """Which of those that are `tried` may have one block, all of them together; inputs that follow come through."""
    simulator = Simulator(network, rules)
    if not tried or simulator.plan.accesses * inputs > (_LONG if inputs > 1 else _LONG_ALONE):
        return {}
    before = simulator.outcome(depths, frames=inputs).frame_ends

    def hold(singles: Mapping[str, int]) -> bool:
        ends = simulator.outcome({**depths, **singles}, frames=inputs).frame_ends
        return len(ends) == len(before) and all(own <= end for own, end in zip(ends, before, strict=True))

    found = as_singles([c.name for c in tried], hold, lambda: False)
    following = {**depths, **found}
    return found if inputs > 1 or len(simulator.outcome(following, frames=_INPUTS).frame_ends) == _INPUTS else {}
