"""FIFO depths by the linear program on real token curves: bursts and pauses as the nests have them.

The curves of a run without full FIFOs may be moved against each other as wholes: a kernel may start later as long
as no reader waits longer and nothing ends after the run did. The program finds the moves that leave the fewest bits
in the FIFOs; depths are then counted token by token. A run with these depths is at most as long, and cannot
deadlock: the moved curves are a schedule for it, and bounded FIFOs run everything as soon as it can.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.compiler.simulator import Network, Rules
from penstock.dse.fifo.cost import total_bits
from penstock.dse.fifo.curves import curves_of
from penstock.dse.fifo.delays import Delay, start_times


def periodic_depths(network: Network, rules: Rules) -> Mapping[str, int]:
    """A depth for every FIFO."""
    bits = {c.name: c.bits for c in network.channels if c.kind == "fifo"}
    run = curves_of(network, rules)
    delays = [Delay(e.source, e.target, 0 if e.rigid else -e.slack, bits.get(e.name, 0) * e.rate) for e in run.edges]
    delays += [Delay(e.target, e.source, 0, 0.0) for e in run.edges if e.rigid]
    latest = {name: run.latency - end for name, end in run.ends.items()}
    moved = start_times(list(run.ends), delays, latest)
    after = {e.name: e.held(moved[e.target] - moved[e.source]) for e in run.edges if e.name in bits}
    before = {e.name: e.held() for e in run.edges if e.name in bits}
    # the program counts slopes, not tokens: where bursts fool it, the run as it was is better
    return min(after, before, key=lambda depths: total_bits(depths, bits))
