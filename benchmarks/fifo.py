"""FIFO sizing on chains, reconvergent paths, burst readers and random graphs: bits, latency, and time to find them.

Every network is sized four ways: by the paper's straight lines, by the linear program on real token curves, after
shrinking by simulation, and, where few enough choices exist, by trying all of them. Rows of convolutional networks
(`fifo_cnns.py`) have their design's FIFOs beside published bytes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.asked import is_asked_for
from benchmarks.fifo_cnns import CNNS, Cnn, row_of
from benchmarks.fifo_networks import attention, chain, diamond, random_network
from benchmarks.fifo_optimum import exhaustive
from benchmarks.registry import Figures, Value
from benchmarks.straight_lines import straight_depths
from penstock.compiler.simulator import VITIS, Network, Simulator
from penstock.dse.fifo import periodic_depths, size_fifos, total_bits
from penstock.dse.fifo.measure import SimulatedRuns

LEAST = 1  # slots; the designs themselves have 2 of all but wide tokens
MOST_CHOICES = 30_000
MOST_EDGES = 20  # where all choices are tried
SIMULATIONS = 3000
KEPT = 1.001  # of the latency with unbounded FIFOs


def networks() -> list[Network]:
    """Twenty-eight networks, the largest of 500 edges."""
    return [
        *(chain(length, seed) for length, seed in ((3, 1), (4, 2), (6, 3), (12, 4))),
        *(chain(length, seed, bursts=True) for length, seed in ((3, 1), (4, 2), (6, 3), (12, 4))),
        *(diamond(long, short, seed) for long, short, seed in ((1, 0, 1), (2, 0, 2), (3, 0, 3), (3, 1, 4), (6, 1, 5))),
        *(attention(seed) for seed in (1, 2, 3, 4)),
        *(random_network(edges, seed) for edges, seed in ((4, 1), (5, 2), (6, 3), (8, 4), (10, 5), (14, 6), (20, 7))),
        *(random_network(edges, seed) for edges, seed in ((50, 8), (120, 9), (250, 10), (500, 11))),
    ]


@dataclass(frozen=True)
class Sized:
    """One network's bits by every way; None where a way does not apply."""

    network: Network
    lp_seconds: float
    high_water: int
    straight: int
    straight_ratio: float | None
    periodic: int
    shrunk: int
    bound: int
    optimum: int | None
    ratio: float | None
    sizing_seconds: float
    simulations: int

    def row(self) -> Mapping[str, Value]:
        straight = "deadlock" if self.straight_ratio is None else round(self.straight_ratio, 4)
        return {
            "network": self.network.name,
            "edges": len(self.network.channels),
            "lp_seconds": round(self.lp_seconds, 4),
            "bits_high_water": self.high_water,
            "bits_straight": self.straight,
            "latency_ratio_straight": straight,
            "bits_periodic": self.periodic,
            "bits_shrunk": self.shrunk,
            "bits_bound": self.bound,
            "bits_optimum": self.optimum,
            "latency_ratio": None if self.ratio is None else round(self.ratio, 5),
            "sizing_seconds": round(self.sizing_seconds, 2),
            "simulations": self.simulations,
        }


def run(only: str = "", limit: int | None = None) -> Figures:
    """`only` is a part of a network's name, as `cnn/` or `random`, or a pattern."""
    labels: list[tuple[str, Network | Cnn]] = [*((n.name, n) for n in networks()), *((c.name, c) for c in CNNS)]
    wanted = [one for name, one in labels if is_asked_for(name, only)][:limit]
    sized = [size(one) for one in wanted if isinstance(one, Network)]
    cnns = [row_of(one) for one in wanted if isinstance(one, Cnn)]
    simulated = all(row["evidence"] == "simulated" for row in cnns)
    rows = [*(s.row() for s in sized), *cnns]
    return Figures("simulated" if simulated else "modelled", rows, {**_summary(sized), **_beside_published(cnns)})


def _beside_published(rows: Sequence[Mapping[str, Value]]) -> Mapping[str, Value]:
    """Null where no convolutional network was sized: of one that fits at no setting there is nothing to size."""
    sized = [row for row in rows if row["bytes_fifo"] is not None]
    shares = [float(str(row["bytes_fifo"])) / float(str(row["bytes_published"])) for row in sized]
    return {
        "cnns": len(rows),
        "cnns_below_published": sum(share < 1 for share in shares),
        "cnn_bytes_vs_published_max": round(max(shares), 3) if shares else None,
        "cnn_sizing_cpu_s_max": max((float(str(row["sizing_cpu_s"])) for row in sized), default=None),
    }


def _summary(sized: Sequence[Sized]) -> Mapping[str, Value]:
    ratios = [s.ratio for s in sized if s.ratio is not None]
    optima = [(s.shrunk, s.optimum) for s in sized if s.optimum is not None]
    fair = [s for s in sized if s.straight_ratio is not None and s.straight_ratio <= KEPT]
    largest = next((s.lp_seconds for s in sized if len(s.network.channels) == 500), None)
    return {
        "networks": len(sized),
        "lp_s_500_edges": None if largest is None else round(largest, 3),
        "latency_ratio_max": round(max(ratios), 6) if ratios else None,
        "bits_vs_optimum_max": round(max(found / best for found, best in optima), 4) if optima else None,
        "optima_known": len(optima),
        # where the paper's depths keep the latency; elsewhere they are fewer bits, and too few
        "bits_saved_vs_paper_pct": _saved([(s.straight, s.shrunk) for s in fair]),
        "bits_saved_vs_paper_all_pct": _saved([(s.straight, s.shrunk) for s in sized]),
        "bits_saved_vs_periodic_pct": _saved([(s.periodic, s.shrunk) for s in sized]),
        "paper_deadlocks": sum(s.straight_ratio is None for s in sized),
        "paper_slower": sum(s.straight_ratio is not None and s.straight_ratio > KEPT for s in sized),
        "deadlocks": sum(s.ratio is None for s in sized),
    }


def size(network: Network) -> Sized:
    """All ways to size one network, under the rules of stalling pipelines."""
    bits = {c.name: c.bits for c in network.channels}
    simulator = Simulator(network, VITIS)
    free = simulator.run(bounded=False)
    began = time.perf_counter()
    periodic = periodic_depths(network, VITIS)
    lp_seconds = time.perf_counter() - began
    straight = straight_depths(network, VITIS)
    began = time.perf_counter()
    sizing = size_fifos(network, VITIS, least=LEAST, simulations=SIMULATIONS)
    seconds = time.perf_counter() - began
    # judged anew, not by what the sizing says of itself
    final = simulator.run(dict(sizing.depths))
    lines = simulator.run(straight)
    high_water = {name: c.high_water for name, c in free.channels.items()}
    return Sized(
        network=network,
        lp_seconds=lp_seconds,
        high_water=total_bits(high_water, bits),
        straight=total_bits(straight, bits),
        straight_ratio=None if lines.deadlock else lines.latency / free.latency,
        periodic=total_bits(periodic, bits),
        shrunk=sizing.bits,
        bound=sizing.bound,
        optimum=_optimum(network, bits),
        ratio=None if final.deadlock else final.latency / free.latency,
        sizing_seconds=seconds,
        simulations=sizing.simulations,
    )


def _optimum(network: Network, bits: Mapping[str, int]) -> int | None:
    """The fewest bits of all depths, where few enough choices cost less to try them all."""
    measure = SimulatedRuns(network, VITIS)
    allowed = measure.unbounded().ends
    if len(network.channels) > MOST_EDGES:
        return None
    best = exhaustive(measure, network.tokens(), bits, allowed=allowed, least=LEAST, most=MOST_CHOICES)
    return total_bits(best, bits) if best is not None else None


def _saved(pairs: list[tuple[int, int]]) -> float | None:
    before = sum(b for b, _ in pairs)
    return round(100 * (1 - sum(a for _, a in pairs) / before), 2) if before else None
