"""A kernel's nests as SystemVerilog: run in Verilator on its arguments, beside the cycles that the simulator says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.backend.rtl.design import RtlDesign
from penstock.compiler.backend.rtl.emit import emit_rtl
from penstock.compiler.design import Design
from penstock.compiler.dialects import nest, stream
from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.to_nests import KernelNests
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import load_library
from penstock.compiler.simulator import OPEN_RTL, simulate
from penstock.compiler.transforms.generate_directives import GenerateDirectives
from penstock.profiling.network import network_of
from penstock.profiling.open_rtl.run import simulate_rtl
from penstock.profiling.open_rtl.words import lanes_of
from penstock.profiling.simulated import simulated_network

PLATFORM = "ecp5-core"
CLOCK_MHZ = 50.0
MOST_CYCLES = 200_000_000


@dataclass(frozen=True)
class KernelRtl:
    """What the hardware left in each argument that it writes, its cycles and the simulator's."""

    outputs: Mapping[str, Array]
    cycles: int
    simulated_cycles: int


def run_open_route(nests: KernelNests, memories: Mapping[str, Array]) -> KernelRtl:
    """Emit, simulate and run a kernel on the open route. What it cannot build is refused by name.

    Its nests keep what is read and what is written `apart`: a memory at a port is one or the other.
    """
    _refuse_updated(nests)
    platform, library = load_platform(PLATFORM), load_library("open-ecp5", CLOCK_MHZ)
    module = GenerateDirectives(Design(PLATFORM, CLOCK_MHZ, {})).apply(nests.module)
    top = next(op for op in module.ops if isinstance(op, stream.TopOp))
    design = emit_rtl(module, library, nests.parameters)
    simulated = simulate(simulated_network(network_of(top, library), platform, CLOCK_MHZ), OPEN_RTL)
    if simulated.deadlock is not None:
        raise PenstockError(
            code="deadlock", what=f"its streams stop for ever on the open route: {simulated.deadlock}",
            where=top.sym_name.data, limit="the depths that the source gives", hint="penstock analyse --fix",
        )  # fmt: skip
    if simulated.latency > MOST_CYCLES:
        raise PenstockError(
            code="too-long", what=f"the SystemVerilog takes {simulated.latency:,} cycles", where=top.sym_name.data,
            limit=f"{MOST_CYCLES:,} cycles in Verilator", hint="run a smaller kernel",
        )  # fmt: skip
    # a kernel may compute for as long as it takes without a word at its ports
    idle = simulated.latency + 10_000
    run = simulate_rtl(design, _inputs(design, nests, memories), idle_cycles=idle, most_cycles=2 * MOST_CYCLES)
    if run.deadlocked:
        raise PenstockError(
            code="deadlock", what=f"the SystemVerilog stops for ever: {'; '.join(run.stuck)}", where=top.sym_name.data,
            limit=f"the simulator says {simulated.latency:,} cycles", hint="this is a defect; please report it",
        )  # fmt: skip
    outputs = {nests.copies.get(name, name): np.asarray(run.outputs[name]).reshape(-1) for name in _written(design)}
    return KernelRtl(outputs, run.done[0] + 1, simulated.frame_ends[0])


def _refuse_updated(nests: KernelNests) -> None:
    """The bench fills a memory or reads it, not both."""
    top = next(op for op in nests.module.ops if isinstance(op, stream.TopOp))
    for argument, name in zip(top.body.block.args, top.argument_names, strict=True):
        users = [use.operation for use in argument.uses]
        if any(isinstance(u, nest.LoadOp) for u in users) and any(isinstance(u, nest.StoreOp) for u in users):
            raise PenstockError(
                code="no-rtl", what=f"the argument {name.data!r} is read and written", where=top.sym_name.data,
                limit="on the open route an argument is read, or it is written",
                hint="copy it into a local array first, or into another argument last",
            )  # fmt: skip


def _written(design: RtlDesign) -> list[str]:
    return sorted({p.argument for p in design.ports if p.kind == "memory_write" and p.argument is not None})


def _inputs(design: RtlDesign, nests: KernelNests, memories: Mapping[str, Array]) -> dict[str, Array]:
    given, written = nests.memories(memories), set(_written(design))
    return {
        port.argument: np.asarray(given[port.argument]).reshape(port.words, lanes_of(port))
        for port in design.ports
        if port.kind == "memory_read" and port.argument is not None and port.argument not in written
    }
