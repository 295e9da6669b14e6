"""How fast the tiled GPT-2 block (prefill of 128 tokens, real size, default design) is simulated to the cycle."""

from __future__ import annotations

import time

from benchmarks.registry import Figures
from compiler.analysis.graph import read_graph
from compiler.design.default import default_design
from compiler.frontend.importer import import_loaded
from compiler.frontend.loader import load_model
from compiler.frontend.reference import parse_reference
from compiler.pipeline import lower, prepare
from compiler.platforms import load_platform
from compiler.schedule import load_library
from compiler.simulator import Simulation
from profiling.network import network_of
from profiling.simulated import simulate_design

MODEL, PLATFORM, CLOCK_MHZ = "zoo:gpt2?size=real&mode=prefill&seq=128", "u55c", 250.0


def run() -> Figures:
    """The latency is with FIFOs that never fill, then with each as deep as it ever was: they must be the same."""
    board = load_platform(PLATFORM)
    program = prepare(import_loaded(load_model(parse_reference(MODEL), weights=False), lambda stage: None))
    design = default_design(read_graph(program.module), PLATFORM, CLOCK_MHZ, weights="stream")
    network = network_of(lower(program, design).top, load_library(board.operators, CLOCK_MHZ))

    def simulated(depths: dict[str, int | None] | None) -> tuple[Simulation, float]:
        begun = time.perf_counter()
        result = simulate_design(network, board, CLOCK_MHZ, depths=depths, bounded=depths is not None)
        return result, round(time.perf_counter() - begun, 2)

    first, first_s = simulated(None)
    _, again_s = simulated(None)
    marks: dict[str, int | None] = {name: channel.high_water for name, channel in first.channels.items()}
    bounded, bounded_s = simulated(marks)
    waits = [(stall.cycles, p.name, stall) for p in first.processes.values() for stall in p.stalls]
    return Figures(
        evidence="simulated",
        rows=[
            {"process": name, "channel": stall.channel, "cause": stall.cause, "waited_cycles": cycles}
            for cycles, name, stall in sorted(waits, key=lambda wait: -wait[0])[:12]
        ],
        summary={
            "tasks": len(first.processes),
            "latency_cycles": first.latency,
            "latency_at_high_water_cycles": bounded.latency,
            "first_simulation_s": first_s,
            "simulation_s": again_s,
            "simulation_at_high_water_s": bounded_s,
        },
    )
