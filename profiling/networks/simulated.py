"""What a network's simulation says, as plain values for programs and as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.compiler.simulator import VITIS, Network, Simulation, simulate
from penstock.profiling.networks.procnet import ProcNet

_MOST_LINES = 20


@dataclass(frozen=True)
class SimulatedNetwork:
    design: ProcNet
    frames: int
    result: Simulation

    @property
    def cycles(self) -> int | None:
        """Of one transaction; none if it stops for ever."""
        return None if self.result.deadlock is not None else self.result.latency

    @property
    def error_pct(self) -> float | None:
        """Against what RTL measured, where the file says it."""
        rtl = self.design.rtl_cycles
        return None if self.cycles is None or rtl is None else 100 * abs(self.cycles / rtl - 1)

    def to_json(self) -> dict[str, Any]:
        result, stuck = self.result, self.result.deadlock
        return {
            "network": self.design.name,
            "evidence": "simulated",
            "latency": self.cycles,
            "interval": None if stuck is not None or self.frames == 1 else result.interval,
            "frames": self.frames,
            "rtl_cycles": self.design.rtl_cycles,
            "csynth_cycles": self.design.csynth_cycles,
            "error_pct": self.error_pct,
            "deadlock": str(stuck) if stuck is not None else None,
            "processes": [
                {
                    "name": p.name, "start": p.start, "end": p.end, "busy": p.busy,
                    "waits": [{"channel": s.channel, "cause": s.cause, "cycles": s.cycles} for s in p.stalls],
                }
                for p in result.processes.values()
            ],
            "channels": [
                {"name": c.name, "depth": c.depth, "held": c.high_water, "tokens": c.tokens}
                for c in result.channels.values()
            ],
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """For a terminal."""
        yield f"network   {self.design.name}"
        if self.result.deadlock is not None:
            yield f"deadlock  {self.result.deadlock}"
        else:
            again = f", a new run every {self.result.interval:,}" if self.frames > 1 else ""
            yield f"latency   {self.result.latency:,} cycles{again} [simulated]"
        if self.error_pct is not None:
            yield f"rtl       {self.design.rtl_cycles:,} cycles: {self.error_pct:.4f} % off"
        waits = sorted(
            ((s.cycles, p.name, s.channel, s.cause) for p in self.result.processes.values() for s in p.stalls),
            reverse=True,
        )
        yield from (
            f"wait      {name} {n:,} cycles for {channel} ({why})" for n, name, channel, why in waits[:_MOST_LINES]
        )


def simulate_network(
    design: ProcNet, frames: int = 1, depths: Mapping[str, int] | None = None, where: str = ""
) -> SimulatedNetwork:
    """Under Vitis' rules; other `depths` for some FIFOs, several transactions of a network."""
    network = design.network
    if frames > 1 and not isinstance(network, Network):
        raise PenstockError(
            code="bad-request", what=f"{frames} transactions of regions that run one after the other", where=where,
            limit="a sequence is done before it starts again, so a new run every latency + 1 cycles",
            hint="leave --frames out",
        )  # fmt: skip
    if depths:
        known = {c.name for c in network.channels if c.kind == "fifo"} if isinstance(network, Network) else set[str]()
        if unknown := sorted(set(depths) - known):
            raise PenstockError(
                code="unknown-fifo", what=f"there is no FIFO {unknown[0]!r}", where=where,
                limit="its FIFOs: " + (", ".join(sorted(known)[:20]) or "none"), hint="give one of these --depth",
            )  # fmt: skip
        assert isinstance(network, Network)
        network = network.with_depths(depths)
    result = simulate(network, VITIS, frames=frames) if frames > 1 else simulate(network, VITIS)
    return SimulatedNetwork(design, frames, result)
