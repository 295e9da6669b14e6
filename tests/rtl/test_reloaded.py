"""An input that is loaded once more for a late reader: one task of RTL brings it twice, in the cycles as simulated."""

from __future__ import annotations

from dataclasses import replace

from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.program import Program
from tests.compiler.designs import Dense, build_network
from tests.rtl.rtl_batch import Core, build, check_whole


def program() -> Program:
    return build_network("int8", 4, 8, (Dense(8, transposed=True, skip=True),), 3)


def residual(*, reload: bool) -> Lowered:
    """A dense layer, and the sum with its input."""
    kernels = {
        layer: KernelDesign(tile, tuple(2 for _ in tile), tuple(range(len(tile))))
        for layer, tile in {"fc0": (4, 8, 8), "fc0.relu": (4, 8), "fc0.sum": (4, 8)}.items()
    }
    kernels["fc0.sum"] = replace(kernels["fc0.sum"], reload=reload)
    return lower(program(), Design(platform="ecp5-85k", clock_mhz=100.0, kernels=kernels, port_bits=64))


def loads_of_input(lowered: Lowered) -> dict[str, int]:
    """How many nests of each task load the model's input."""
    memory = next(v for v in lowered.top.body.block.args if len(list(v.uses)) and v.name_hint == "x")
    found = [task.sym_name.data for task, nest in lowered.nests for op in nest.walk() if memory in op.operands]
    return {name: found.count(name) for name in found}


def test_rtl_computes_the_same_and_takes_the_cycles_that_were_simulated() -> None:
    once, again = residual(reload=False), residual(reload=True)
    assert list(loads_of_input(once).values()) == [1]
    assert list(loads_of_input(again).values()) == [2], "one task, two nests"
    core = Core(again, "loaded twice")
    (built,) = build([core])
    for frames in (1, 3):
        check_whole(core, built, frames=frames)
