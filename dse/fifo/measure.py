"""What a choice of depths does to a run: the question that shrinking asks of the simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from penstock.compiler.simulator import Deadlock, Network, Rules, Simulator


@dataclass(frozen=True)
class MeasuredDepths:
    """Ends of the frames (none for a deadlock), and the slots that each FIFO held at most."""

    ends: tuple[int, ...]
    high_water: Mapping[str, int]

    def within(self, allowed: tuple[int, ...]) -> bool:
        """Whether it ran to its end, and no frame ended late."""
        return len(self.ends) == len(allowed) and all(a <= b for a, b in zip(self.ends, allowed, strict=True))

    def stretched(self, tolerance: float) -> tuple[int, ...]:
        """The same ends with so much more time."""
        return tuple(int(end * (1 + tolerance)) for end in self.ends)


MeasureDepths = Callable[[Mapping[str, int]], MeasuredDepths]


class SimulatedRuns:
    """Simulated runs of one network with depths of its FIFOs; blocks keep theirs. `events` are in one run."""

    def __init__(self, network: Network, rules: Rules, frames: int = 1) -> None:
        self._simulator = Simulator(network, rules)
        self._frames = frames
        self.fifos = tuple(c.name for c in network.channels if c.kind == "fifo")
        self.count = 0
        self.events = self._simulator.plan.accesses * frames

    def __call__(self, depths: Mapping[str, int]) -> MeasuredDepths:
        return self._run(depths)

    def unbounded(self) -> MeasuredDepths:
        """The run in which no FIFO is ever full."""
        return self._run(dict.fromkeys(self.fifos))

    def deadlock(self, depths: Mapping[str, int | None]) -> Deadlock | None:
        """Who waits for whom with these depths."""
        return self._simulator.run(depths, frames=self._frames).deadlock

    def _run(self, depths: Mapping[str, int | None]) -> MeasuredDepths:
        self.count += 1
        found = self._simulator.outcome(depths, frames=self._frames)
        return MeasuredDepths(found.frame_ends, {name: found.high_water[name] for name in self.fifos})
