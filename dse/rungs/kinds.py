"""The rungs by their evidence: the model, the simulator, our own hardware in Verilator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import EVIDENCE_KINDS, Evidence, Route
from penstock.compiler.platforms import Platform
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs.hardware import open_rtl, open_rtl_many
from penstock.dse.rungs.inputs import simulate_inputs, steady_interval
from penstock.dse.rungs.open_rtl import open_library
from penstock.dse.rungs.rung import Bench, Measured, Rung
from penstock.dse.rungs.vitis import cosim, csynth, vitis_lacks
from penstock.profiling.open_rtl.tools import find_cxx, find_verilator
from penstock.profiling.protocol import ProfilingError


def modelled(_: Evaluator, evaluation: Evaluation, bench: Bench) -> Measured:
    """What the search knew already."""
    figures = evaluation.figures
    return Measured(figures.evidence, figures.latency, figures.initial_delay, figures.interval, figures.resources)


def simulated(evaluator: Evaluator, evaluation: Evaluation, bench: Bench) -> Measured:
    """The cycle-exact simulator at the design's depths; a deadlock is an error."""
    network = evaluator.assembler.network(evaluation.design)
    found = simulate_inputs(network, evaluator.platform, evaluator.clock_mhz)
    return Measured(found.evidence, found.latency, found.initial_delay, steady_interval(found))


def usable(evidence: Evidence, platform: Platform, clock_mhz: float) -> tuple[Evidence, str]:
    """The rung that was asked for, or a weaker one and why, where this machine lacks what it takes.

    A rung that has no meaning for the platform is an error.
    """
    route = EVIDENCE_KINDS[evidence].route
    lacking = _LACKS[route](platform, clock_mhz) if route is not None else ""
    return ("simulated", f"{evidence} figures were asked for, but {lacking}") if lacking else (evidence, "")


def _open_lacks(platform: Platform, clock_mhz: float) -> str:
    """What this machine lacks to run our SystemVerilog, in words. A platform that it is not made for is an error."""
    open_library(platform, clock_mhz)
    try:
        find_verilator()
        find_cxx()
    except ProfilingError as missing:
        return missing.one_line()
    return ""


_LACKS: Mapping[Route, Callable[[Platform, float], str]] = {
    "open": _open_lacks, "vitis": lambda platform, _: vitis_lacks(platform),
}  # fmt: skip


RUNGS: Mapping[Evidence, Rung] = {
    "modelled": modelled, "simulated": simulated, "open-rtl": open_rtl, "csynth": csynth, "cosim": cosim,
}  # fmt: skip
"""What measures a design, for every kind of evidence that `penstock.compiler.evidence` says designs are ranked by.

A rung of other tools is written beside this package against `penstock.dse.rungs.rung`, and gets its line here.
"""

TOGETHER: Mapping[Evidence, Callable[[Evaluator, Sequence[Evaluation], Bench], list[Measured | PenstockError]]] = {
    "open-rtl": open_rtl_many,
}
"""Rungs that measure several designs sooner together than one by one."""
