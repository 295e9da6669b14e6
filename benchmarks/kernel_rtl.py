"""The designs at 220 DSPs as SystemVerilog of the open route: cycles of Verilator on the workload's own data.

The kernels' tiles, lanes and orders are those of the design; operators are the open route's own, so latencies differ by
their stages. FIFO depths are found again. The simulator is asked about the same design, under the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.kernel_designs import evaluator_of
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.verify import FLOAT_TOLERANCE, compare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.rungs.open_rtl import WholeCore
from penstock.profiling.simulated import simulate_design

PLATFORM = "ecp5-core"


@dataclass(frozen=True)
class RtlCycles:
    """One design on the open route; `note` says why there is no figure of Verilator's."""

    simulated: int
    dsp: int
    measured: int | None
    note: str = ""


def measure_rtl(workload: str, design: Design) -> RtlCycles:
    """Build and run a design; results that are not the workload's are an error, a tool that is missing is a note."""
    known = evaluator_of(workload)
    evaluator = Evaluator.create(known.program, PLATFORM, options=known.options)
    kernels = {layer: replace(kernel, bindings={}) for layer, kernel in design.kernels.items()}
    evaluation = evaluator.evaluate_design(Design(PLATFORM, evaluator.clock_mhz, kernels))
    network = evaluator.assembler.network(evaluation.design)
    simulated = simulate_design(network, evaluator.platform, evaluator.clock_mhz).latency
    dsp = evaluation.figures.resources.dsp
    samples = known.program.samples
    assert samples is not None
    try:
        core = WholeCore.of(lower(evaluator.program, evaluation.design), evaluator.platform)
        run = core.run(samples.inputs)
        core.check(run)
    except PenstockError as error:
        return RtlCycles(simulated, dsp, None, error.one_line())
    outputs = core.lowered.run_memories(lambda _: run.outputs, samples.inputs)
    check = compare("open-rtl", "pytorch", outputs, samples.outputs, FLOAT_TOLERANCE)
    if not check.equal:
        raise PenstockError(
            code="rtl-differs", what=f"{check.mismatches} of {check.values} values differ from PyTorch's",
            where=workload, limit=f"largest difference {check.max_difference:.3g}", hint="report this",
        )  # fmt: skip
    return RtlCycles(simulated, dsp, run.latency)
