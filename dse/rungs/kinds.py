"""The rungs by their evidence: the model, the simulator, our own hardware in Verilator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from compiler.errors import PenstockError
from compiler.pipeline import lower
from compiler.pipeline.verify import make_inputs, verify_rtl
from compiler.platforms import Platform
from compiler.simulator import Simulation
from dse.bench import Bench, Measured, Rung
from dse.evaluate import Evaluation, Evaluator
from dse.open_rtl import Core, build_all, open_library
from profiling.evidence import Evidence
from profiling.open_rtl.tools import find_cxx, find_verilator
from profiling.protocol import ProfilingError
from profiling.simulated import simulate_design

FRAMES = 6
"""Inputs in a row from which the interval between two is taken."""


def modelled(_: Evaluator, evaluation: Evaluation, bench: Bench) -> Measured:
    """What the search knew already."""
    figures = evaluation.figures
    return Measured(figures.evidence, figures.latency, figures.initial_delay, figures.interval, figures.resources)


def simulated(evaluator: Evaluator, evaluation: Evaluation, bench: Bench) -> Measured:
    """The cycle-exact simulator at the design's depths; a deadlock is an error."""
    network = evaluator.assembler.network(evaluation.design)
    found = simulate_design(network, evaluator.platform, evaluator.clock_mhz, frames=FRAMES)
    return Measured(found.evidence, found.latency, found.initial_delay, steady_interval(found))


def open_rtl(evaluator: Evaluator, evaluation: Evaluation, bench: Bench) -> Measured:
    """The design's SystemVerilog in Verilator with the model's data; what it answers must be the interpreter's."""
    core = core_of(evaluator, evaluation, bench)
    inputs = make_inputs(core.lowered, random_sets=1)[0]
    run = core.run(inputs, frames=FRAMES)
    core.check(run)
    found = verify_rtl(core.lowered, [core.lowered.run_memories(lambda _: run.outputs, inputs)], [inputs])
    if not found.equal:
        raise PenstockError(
            code="rtl-differs", what=f"{found.mismatches} of {found.values} values differ from the interpreter's",
            where=evaluator.program.name, limit=f"largest difference {found.max_difference:.3g}",
            hint="this is a defect in the RTL backend; please report it",
        )  # fmt: skip
    assert run.latency is not None
    return Measured(run.evidence, run.latency, run.initial_delay, run.interval)


def build_together(evaluator: Evaluator, candidates: Sequence[Evaluation], bench: Bench) -> None:
    """Several programs are built quicker at once; a design that cannot be emitted says so when its turn comes."""
    cores: list[Core] = []
    for candidate in candidates:
        with suppress(PenstockError):
            cores.append(core_of(evaluator, candidate, bench))
    build_all(cores, bench.tools)


def usable(evidence: Evidence, platform: Platform, clock_mhz: float) -> tuple[Evidence, str]:
    """The rung that was asked for, or a weaker one and why, where this machine lacks what it takes.

    A rung that has no meaning for the platform is an error.
    """
    if evidence != "open-rtl":
        return evidence, ""
    open_library(platform, clock_mhz)
    try:
        find_verilator()
        find_cxx()
    except ProfilingError as missing:
        return "simulated", f"open-rtl figures were asked for, but {missing.one_line()}"
    return evidence, ""


def core_of(evaluator: Evaluator, evaluation: Evaluation, bench: Bench) -> Core:
    return Core.of(lower(evaluator.program, evaluation.design), evaluator.platform, bench.tools)


def steady_interval(simulation: Simulation) -> int | None:
    """Cycles between two inputs once the pipeline is full: over the second half of all frames, rounded up."""
    ends = simulation.frame_ends[len(simulation.frame_ends) // 2 - 1 :]
    return -(-(ends[-1] - ends[0]) // (len(ends) - 1)) if len(simulation.frame_ends) > 1 else None


RUNGS: Mapping[Evidence, Rung] = {"modelled": modelled, "simulated": simulated, "open-rtl": open_rtl}
"""Every way to choose among designs, by its evidence; `profiling.evidence.RUNGS` lists the names for users.

A rung of other tools is written beside this package against `dse.bench`, and gets its line here.
"""
