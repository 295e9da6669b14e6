"""The tiled GPT-2 block (prefill of 128 tokens, real size, default design) as a network for the simulator."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.dialects.stream import TopOp
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.pipeline import lower, prepare
from penstock.compiler.platforms import load_platform
from penstock.compiler.reference import parse_reference
from penstock.compiler.schedule import load_library
from penstock.compiler.simulator import Network
from penstock.profiling.network import network_of
from penstock.profiling.simulated import simulated_network

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
