"""One block instead of two in turn, where a run hands over no more and the next input comes late enough.

A converter of two blocks takes in the next input's while this one's is still read. Mostly it is read long before: a
kernel that waits for a whole row, say, has it behind itself when the next row comes.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.compiler.platforms import Platform
from penstock.compiler.simulator import Network, Rules, Simulator
from penstock.dse.fifo.depths import LEAST_DEPTH
from penstock.dse.fifo.single_slots import as_singles
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import rules_of, simulated_kernels

_INPUTS, _LONG = 4, 10_000_000
"""In a row, for which one block must do; and accesses of all of them beyond which nothing is tried."""


def single_blocks_between_inputs(
    network: TaskNetwork, platform: Platform, clock_mhz: float, depths: Mapping[str, int]
) -> dict[str, int]:
    """One block for each channel that hands over one a run, where several inputs in a row end no later with it.

    A second one lets the next input come while this one is still read. Mostly that is long before.
    """
    rules, found = rules_of(platform, clock_mhz), dict[str, int]()
    for part in simulated_kernels(network, platform, clock_mhz):
        found |= _single_blocks(part, rules, {c.name: depths[c.name] for c in part.channels if c.name in depths})
    return found


def _single_blocks(network: Network, rules: Rules, depths: Mapping[str, int]) -> dict[str, int]:
    simulator, tokens = Simulator(network, rules), network.tokens()
    two = [c for c in network.channels if c.kind == "block" and c.depth == LEAST_DEPTH and c.name not in depths]
    once = sorted((c for c in two if tokens[c.name] == 1), key=lambda c: -c.bits * c.words)
    if not once or simulator.plan.accesses * _INPUTS > _LONG:
        return {}
    before = simulator.outcome(depths, frames=_INPUTS).frame_ends

    def hold(singles: Mapping[str, int]) -> bool:
        ends = simulator.outcome({**depths, **singles}, frames=_INPUTS).frame_ends
        return len(ends) == len(before) and all(own <= end for own, end in zip(ends, before, strict=True))

    return as_singles([c.name for c in once], hold, lambda: False)
