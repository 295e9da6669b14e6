"""StreamTensor's token model: each kernel a straight line of latency L, initial delay D and interval II.

It is kept as printed, to compare with: it knows no bursts, and therefore makes FIFOs of burst readers too small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.compiler.simulator import Network, Rules
from penstock.dse.fifo.curves import KernelCurve, kernels_of
from penstock.dse.fifo.delays import Delay, start_times
from penstock.dse.fifo.periodic import Equalisation


@dataclass(frozen=True)
class StraightLine:
    """One edge: its source as a line of `tokens` from `initial_delay` to `latency`, its target one every interval."""

    name: str
    source: str
    target: str
    tokens: int
    latency: float
    initial_delay: float
    source_interval: float
    target_interval: float
    bits: int = 1

    def most_tokens(self, delay: float) -> int:
        """Tokens in the FIFO at most, if the target starts `delay` after the source."""
        if self.source_interval <= self.target_interval:
            return tokens_of_fast_source(self.tokens, self.latency, delay, self.target_interval)
        return tokens_of_slow_source(self.tokens, delay, self.initial_delay, self.source_interval)

    def conservative(self, slowest: float) -> StraightLine:
        """Both ends slowed down to one pass over all tokens in `slowest` cycles."""
        interval = max(self.source_interval, slowest / self.tokens)
        latency = self.initial_delay + (self.tokens - 1) * interval
        target = max(self.target_interval, slowest / self.tokens)
        return replace(self, latency=latency, source_interval=interval, target_interval=target)


def tokens_of_fast_source(tokens: int, latency: float, delay: float, target_interval: float) -> int:
    """Equation 1: what the target has not worked off when the source ends."""
    return min(tokens, tokens - math.floor((latency - delay) / target_interval))


def tokens_of_slow_source(tokens: int, delay: float, initial_delay: float, source_interval: float) -> int:
    """Equation 2: what the source has made before the target starts."""
    return min(tokens, math.ceil((delay - initial_delay) / source_interval))


def straight_depths(network: Network, rules: Rules, equalisation: Equalisation = "normal") -> dict[str, int]:
    """Depths as the paper finds them: least delays by the linear program, then the equations."""
    bits = {c.name: c.bits for c in network.channels if c.kind == "fifo"}
    lines = [line for line in lines_of(kernels_of(network, rules), bits) if line.name in bits]
    return line_depths([p.name for p in network.processes], lines, equalisation)


def line_depths(
    kernels: Sequence[str], lines: Sequence[StraightLine], equalisation: Equalisation = "normal"
) -> dict[str, int]:
    """The same from lines; equations may say 0, a FIFO holds at least one token."""
    if equalisation == "conservative" and lines:
        slowest = max(max(line.latency, line.target_interval * line.tokens) for line in lines)
        lines = [line.conservative(slowest) for line in lines]
    starts = start_times(kernels, [Delay(x.source, x.target, math.ceil(x.initial_delay)) for x in lines])
    return {x.name: max(1, x.most_tokens(starts[x.target] - starts[x.source])) for x in lines}


def lines_of(kernels: dict[str, KernelCurve], bits: dict[str, int]) -> list[StraightLine]:
    """Each edge's straight line: the target reads evenly over its whole latency, whatever it really does."""
    readers = {channel: kernel for kernel in kernels.values() for channel in kernel.reads}
    lines: list[StraightLine] = []
    for source in kernels.values():
        for channel, curve in source.writes.items():
            if channel not in readers:
                continue
            target, tokens = readers[channel], len(curve.times)
            first, last = int(curve.times[0]), int(curve.times[-1])
            lines.append(
                StraightLine(
                    channel, source.name, target.name, tokens, last, first,
                    (last - first) / max(tokens - 1, 1), target.busy / tokens, bits.get(channel, 0),
                )
            )  # fmt: skip
    return lines
