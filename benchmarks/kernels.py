"""The published workloads: cycles and DSPs of the designs that the search found, beside what others have published.

Every design is modelled, simulated to the cycle, and run at the stream level on the workload's own data, which must
give PyTorch's results. A row is a workload under a budget of DSPs, or beside one published design at its own number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.kernel_designs import WORKLOADS, Workload, evaluator_of, limited, load_designs
from benchmarks.published import BUDGETS, Published, published
from benchmarks.registry import Figures, Value
from compiler.design import Design
from compiler.errors import PenstockError
from compiler.pipeline import lower
from compiler.pipeline.verify import FLOAT_TOLERANCE, compare
from dse.evaluate import Evaluation
from profiling.simulated import simulate_design

DSP_OF_A_PRODUCT = 3
"""A multiplication takes three DSPs; its addition takes none where the adder is built of LUTs."""


@dataclass(frozen=True)
class Found:
    """One design, simulated and checked."""

    evaluation: Evaluation
    cycles: int
    values: int

    @property
    def dsp(self) -> int:
        return self.evaluation.figures.resources.dsp


def run() -> Figures:
    rows = [row for workload in WORKLOADS.values() for row in workload_rows(workload)]
    budgets = [row for row in rows if row["comparison"] == "budget"]
    rivals = [row for row in rows if row["comparison"] == "rival"]
    gemm = [float(str(row["pct_of_bound"])) for row in budgets if row["workload"] == "gemm"]
    summary: dict[str, Value] = {
        "rows_total": len(budgets),
        "rows_beating_all": sum(bool(row["beats_all"]) for row in budgets),
        "gemm_pct_of_bound": min(gemm),
        "rivals_total": len(rivals),
        "rivals_beaten_at_their_dsp": sum(bool(row["beats_all"]) for row in rivals),
    }
    return Figures("simulated", rows, summary)


def workload_rows(workload: Workload, designs: Mapping[int, Design] | None = None) -> list[Mapping[str, Value]]:
    """A row for each budget, then one for each published design."""
    designs = load_designs(workload.name) if designs is None else designs
    found = {dsp: measure(workload, design, dsp) for dsp, design in designs.items()}
    rows = [_budget_row(workload, found, budget) for budget in BUDGETS if budget in found]
    return rows + [_rival_row(workload, found, rival) for rival in published(workload.name)]


def measure(workload: Workload, design: Design, dsp: int) -> Found:
    """Model, simulate and run a design; one that takes too many DSPs or computes something else is an error."""
    evaluator = limited(evaluator_of(workload.name), dsp)
    evaluation = evaluator.evaluate_design(design)
    if not evaluation.feasible:
        raise PenstockError(
            code="does-not-fit", what=f"the design kept for {dsp} DSPs does not fit", where=workload.name,
            limit=evaluation.explanation, hint="search again: python -m benchmarks.kernel_search",
        )  # fmt: skip
    network = evaluator.assembler.network(evaluation.design)
    simulation = simulate_design(network, evaluator.platform, evaluator.clock_mhz)
    samples = evaluator.program.samples
    assert samples is not None
    outputs = lower(evaluator.program, evaluation.design).run_stream(samples.inputs)
    check = compare("stream", "pytorch", outputs, samples.outputs, FLOAT_TOLERANCE)
    if simulation.deadlock is not None or not check.equal:
        raise PenstockError(
            code="wrong-design", what="the design stops for ever, or does not compute the workload",
            where=workload.name, limit=f"{check.mismatches} of {check.values} values differ", hint="report this",
        )  # fmt: skip
    return Found(evaluation, simulation.latency, check.values)


def _best(found: Mapping[int, Found], dsp: int) -> Found:
    """The fastest of the designs with at most so many DSPs."""
    return min((one for one in found.values() if one.dsp <= dsp), key=lambda one: one.cycles)


def _budget_row(workload: Workload, found: Mapping[int, Found], budget: int) -> Mapping[str, Value]:
    rivals = [one for one in published(workload.name) if one.counts_at(budget)]
    bound = workload.macs / (budget // DSP_OF_A_PRODUCT)
    best = _best(found, budget)
    area = best.evaluation.figures.resources
    return {
        "workload": workload.name,
        "comparison": "budget",
        "dsp_allowed": budget,
        **_ours_and_theirs(best, rivals),
        "lut": area.lut,
        "ff": area.ff,
        "bram18": area.bram18,
        "uram": area.uram,
        "macs": workload.macs,
        "bound_cycles": round(bound),
        "pct_of_bound": round(100 * bound / best.cycles, 2),
        "values_checked": best.values,
        "what_binds": what_binds(best),
    }


def _rival_row(workload: Workload, found: Mapping[int, Found], rival: Published) -> Mapping[str, Value]:
    """Our fastest design with no more DSPs than the rival's."""
    within = [dsp for dsp in found if found[dsp].dsp <= rival.dsp]
    if not within:
        ours: Mapping[str, Value] = {"cycles": None, "dsp": None, "published": rival.label,
                                     "published_cycles": rival.cycles, "speedup": None, "beats_all": False}  # fmt: skip
    else:
        ours = _ours_and_theirs(_best(found, rival.dsp), [rival])
    return {"workload": workload.name, "comparison": "rival", "dsp_allowed": rival.dsp, **ours}


def _ours_and_theirs(ours: Found, rivals: Sequence[Published]) -> Mapping[str, Value]:
    fastest = min(rivals, key=lambda one: one.cycles, default=None)
    return {
        "cycles": ours.cycles,
        "dsp": ours.dsp,
        "published": fastest.label if fastest else None,
        "published_cycles": fastest.cycles if fastest else None,
        "speedup": round(fastest.cycles / ours.cycles, 3) if fastest else None,
        "beats_all": fastest is not None and ours.cycles < fastest.cycles,
    }


def what_binds(found: Found) -> str:
    """The nest that sets the pace, for how much of the time it is busy, and the resource that is nearest its limit."""
    figures = found.evaluation.figures
    slowest = next(t for t in figures.tasks if t.name == figures.bottleneck)
    name = found.evaluation.binding_resource
    return (
        f"{slowest.name}: {slowest.iterations} iterations, {slowest.latency / found.cycles:.0%} of the time; "
        f"{name} at {found.evaluation.shares[name]:.0%}"
    )
