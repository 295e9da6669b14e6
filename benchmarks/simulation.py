"""How fast networks are simulated to the cycle: long chains and the tiled GPT-2 block, in every mode.

Modes: FIFOs without limits; as deep as they ever were, which costs no time but is felt by nobody; of two slots and of
one, so that they fill and everybody waits for everybody. In the block only FIFOs that are the one way between two
parts of it have two slots: on others two would deadlock.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

import networkx as nx

from benchmarks.long_chains import mixed_chain, pass_through_chain, products_chain
from benchmarks.registry import WALL_CLOCK, Figures, Value
from benchmarks.simulate_block import tiled_block
from penstock.compiler.simulator import OPEN_RTL, VITIS, Network, Rules, Simulation, Simulator

TASKS, CYCLES = 24, 10_000_000
Depths = dict[str, int | None]


def run() -> Figures:
    loading = _seconds(Simulator(pass_through_chain(2, CYCLES)), None)[1]
    rows: list[Mapping[str, Value]] = []
    for network in (f(TASKS, CYCLES) for f in (products_chain, pass_through_chain, mixed_chain)):
        names = [c.name for c in network.channels]
        for rules in (VITIS, OPEN_RTL):
            rows += modes(network, rules, {"depth 2": dict.fromkeys(names, 2), "depth 1": dict.fromkeys(names, 1)})
    chains = [float(str(row["seconds"])) for row in rows]
    blocks: list[Mapping[str, Value]] = []
    for platform, clock_mhz, rules in (("u55c", 250.0, VITIS), ("ecp5-85k", 50.0, OPEN_RTL)):
        network = tiled_block(platform, clock_mhz)
        blocks += modes(network, rules, {"bridges 2": dict.fromkeys(bridges(network), 2)})
    return Figures(
        evidence=WALL_CLOCK,
        rows=[*rows, *blocks],
        summary={
            "engine_first_s": loading,
            "chain_s_max": max(chains),
            "block_s_max": max(float(str(row["seconds"])) for row in blocks),
            "deadlocks": sum(row["cycles"] is None for row in [*rows, *blocks]),
        },
    )


def modes(network: Network, rules: Rules, shallow: Mapping[str, Depths]) -> list[Mapping[str, Value]]:
    """A row for each mode; `shallow` adds some, by name."""
    free, seconds = _seconds(Simulator(network, rules), None)
    rows = [_row(network, rules, "unbounded", free, free, seconds)]
    marks: Depths = {name: channel.high_water for name, channel in free.channels.items()}
    for mode, depths in ({"high water": marks} | {name: marks | own for name, own in shallow.items()}).items():
        result, seconds = _seconds(Simulator(network, rules), depths)
        rows.append(_row(network, rules, mode, result, free, seconds))
    return rows


def bridges(network: Network) -> list[str]:
    """FIFOs without which the network would fall apart."""
    ends = network.ends()
    pairs = Counter(frozenset(pair) for pair in ends.values())
    graph: nx.Graph[str] = nx.Graph(list(ends.values()))
    alone = {frozenset(edge) for edge in nx.bridges(graph)}
    fifos = [c.name for c in network.channels if c.kind == "fifo"]
    return [name for name in fifos if (pair := frozenset(ends[name])) in alone and pairs[pair] == 1]


def _seconds(simulator: Simulator, depths: Depths | None) -> tuple[Simulation, float]:
    begun = time.perf_counter()
    result = simulator.run(depths, bounded=depths is not None)
    return result, round(time.perf_counter() - begun, 3)


def _row(
    network: Network, rules: Rules, mode: str, result: Simulation, free: Simulation, seconds: float
) -> Mapping[str, Value]:
    cycles = None if result.deadlock else result.latency
    return {
        "network": network.name,
        "tasks": len(network.processes),
        "rules": rules.name,
        "mode": mode,
        "cycles": cycles,
        "times_unbounded": None if cycles is None else round(cycles / free.latency, 4),
        "seconds": seconds,
        "megacycles_a_second": None if cycles is None else round(cycles / 1e6 / max(seconds, 1e-3), 1),
    }
