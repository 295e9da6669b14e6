"""StreamTensor's token model: each kernel a straight line of latency L, initial delay D and interval II.

It is written down as printed, to compare with: it knows no bursts, and therefore makes FIFOs of burst readers too
small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compiler.simulator import Network, Rules, SimulatedProcess
from penstock.compiler.simulator.plan import stage_of
from penstock.dse.fifo.delays import Delay, start_times


@dataclass(frozen=True)
class Line:
    """One edge: its source as a line of `tokens` from `initial_delay` to `latency`, its target one every interval."""

    name: str
    source: str
    target: str
    tokens: int
    latency: float
    initial_delay: float
    source_interval: float
    target_interval: float

    def most_tokens(self, delay: float) -> int:
        """Tokens in the FIFO at most, if the target starts `delay` after the source."""
        if self.source_interval <= self.target_interval:
            return tokens_of_fast_source(self.tokens, self.latency, delay, self.target_interval)
        return tokens_of_slow_source(self.tokens, delay, self.initial_delay, self.source_interval)


def tokens_of_fast_source(tokens: int, latency: float, delay: float, target_interval: float) -> int:
    """Equation 1: what the target has not worked off when the source ends."""
    return min(tokens, tokens - math.floor((latency - delay) / target_interval))


def tokens_of_slow_source(tokens: int, delay: float, initial_delay: float, source_interval: float) -> int:
    """Equation 2: what the source has made before the target starts."""
    return min(tokens, math.ceil((delay - initial_delay) / source_interval))


def straight_depths(network: Network, rules: Rules) -> dict[str, int]:
    """Depths as the paper finds them: least delays by the linear program, then the equations."""
    return line_depths([p.name for p in network.processes], lines_of(network, rules))


def line_depths(kernels: Sequence[str], lines: Sequence[Line]) -> dict[str, int]:
    """The same from lines; equations may say 0, a FIFO holds at least one token."""
    starts = start_times(kernels, [Delay(x.source, x.target, math.ceil(x.initial_delay)) for x in lines])
    return {x.name: max(1, x.most_tokens(starts[x.target] - starts[x.source])) for x in lines}


def lines_of(network: Network, rules: Rules) -> list[Line]:
    """Each FIFO's straight line: the target reads evenly over its whole latency, whatever it really does."""
    ends, tokens = network.ends(), network.tokens()
    own = {process.name: _own_times(process, rules) for process in network.processes}
    lines: list[Line] = []
    for channel in network.channels:
        if channel.kind == "fifo":
            (source, target), count = ends[channel.name], tokens[channel.name]
            first, last = own[source].written[channel.name]
            interval = (last - first) / max(count - 1, 1)
            lines.append(Line(channel.name, source, target, count, last, first, interval, own[target].busy / count))
    return lines


@dataclass(frozen=True)
class _OwnTimes:
    """Of a process that never waits: its cycles, and when it writes each channel's first and last token."""

    busy: int
    written: dict[str, tuple[int, int]]


def _own_times(process: SimulatedProcess, rules: Rules) -> _OwnTimes:
    written: dict[str, tuple[int, int]] = {}
    start = rules.first_phase_delay if len(process.phases) > 1 else 0
    for phase in process.phases:
        for access in phase.accesses:
            if access.direction == "write" and access.pattern.count:
                at = start + stage_of(access, phase, rules)
                first, last = (at + access.pattern.iteration(i) * phase.ii for i in (0, access.pattern.count - 1))
                before = written.get(access.channel, (first, last))
                written[access.channel] = (min(first, before[0]), max(last, before[1]))
        start += phase.length + rules.phase_gap
    return _OwnTimes(start - rules.phase_gap, written)
