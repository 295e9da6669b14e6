"""The tiled GPT-2 block (prefill of 128 tokens, real size, default design) as a network for the simulator."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from compiler.analysis.graph import read_graph
from compiler.design.default import default_design
from compiler.dialects.stream import TopOp
from compiler.frontend.importer import import_loaded
from compiler.frontend.loader import load_model
from compiler.frontend.reference import parse_reference
from compiler.pipeline import lower, prepare
from compiler.platforms import load_platform
from compiler.schedule import load_library
from compiler.simulator import Network
from profiling.network import network_of
from profiling.simulated import simulated_network

MODEL = "zoo:gpt2?size=real&mode=prefill&seq=128"
DESIGNED_FOR, CLOCK_MHZ = "u55c", 250.0


def tiled_block(platform: str, clock_mhz: float) -> Network:
    """The block as one platform's schedule has it; its design is the same for all, however little room they have."""
    board = load_platform(platform)
    network = network_of(_lowered(), load_library(board.operators, clock_mhz))
    simulated = simulated_network(network, board, clock_mhz)
    assert isinstance(simulated, Network)
    return replace(simulated, name="GPT-2 block")


@cache
def _lowered() -> TopOp:
    program = prepare(import_loaded(load_model(parse_reference(MODEL), weights=False), lambda stage: None))
    design = default_design(read_graph(program.module), DESIGNED_FOR, CLOCK_MHZ, weights="stream")
    return lower(program, design).top
