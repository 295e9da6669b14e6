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
    """Simulated runs of one network with depths of its FIFOs; blocks keep theirs.

    `count` and `work` are what was simulated so far: runs, and the events that they went through.
    """

    def __init__(self, network: Network, rules: Rules, frames: int = 1) -> None:
        self._simulator = Simulator(network, rules)
        self._frames = frames
        self.fifos = tuple(c.name for c in network.channels if c.kind == "fifo")
        self.allowed: tuple[int, ...] = ()
        """Ends that are early enough: a first frame that ends later is not followed by others."""
        self.count = self.work = 0

    def __call__(self, depths: Mapping[str, int]) -> MeasuredDepths:
        self.count += 1
        if self.allowed and self._frames > 1:
            alone = self._run(depths, 1)
            if not alone.within(self.allowed[:1]):
                return alone
        return self._run(depths, self._frames)

    def unbounded(self, most: Mapping[str, int] | None = None) -> MeasuredDepths:
        """The run in which no FIFO is ever full but those that are to have so many slots at `most`."""
        self.count += 1
        return self._run({name: (most or {}).get(name) for name in self.fifos}, self._frames)

    def deadlock(self, depths: Mapping[str, int | None]) -> Deadlock | None:
        """Who waits for whom with these depths."""
        return self._simulator.run(depths, frames=self._frames).deadlock

    def _run(self, depths: Mapping[str, int | None], frames: int) -> MeasuredDepths:
        found = self._simulator.outcome(depths, frames=frames)
        self.work += found.work
        return MeasuredDepths(found.frame_ends, {name: found.high_water[name] for name in self.fifos})
