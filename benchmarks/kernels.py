"""The published workloads: cycles and DSPs of the designs that the search finds, beside what others have published.

Every design is modelled, simulated to the cycle, and run at the stream level on the workload's own data, which must
give PyTorch's results. A row is a workload under a budget of DSPs, or beside one published design under its own DSPs
and its own LUTs. At 220 DSPs the same tiles, lanes and orders are also measured as SystemVerilog of the open route.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.asked import is_asked_for
from benchmarks.kept_rows import keep_row, kept_rows
from benchmarks.kernel_designs import WORKLOADS, KernelDesign, Workload, earlier_best, evaluator_of, limited, search
from benchmarks.kernel_rtl import measure_rtl
from benchmarks.published import BUDGETS, Published, published, rivals
from benchmarks.registry import Figures, Value
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.pieces import pieces_of
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.verify import FLOAT_TOLERANCE, compare
from penstock.compiler.platforms import Resources, load_platform
from penstock.compiler.platforms.routing import Routing, routing_of
from penstock.compiler.schedule import load_library
from penstock.dse.bounds.bound import GoalBounds
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.routing import routing_use
from penstock.profiling.network import TaskChannel, TaskNetwork
from penstock.profiling.simulated import simulate_design

OPEN_RTL_AT = 220
DSP_OF_A_PRODUCT = 3
"""A multiplication takes three DSPs; its addition takes none where the adder is built of LUTs."""


@dataclass(frozen=True)
class Found:
    """One design, simulated and checked."""

    evaluation: Evaluation
    cycles: int
    values: int
    network: TaskNetwork

    @property
    def widest(self) -> TaskChannel:
        """The stream of the widest tokens."""
        return max((c for c in self.network.channels.values() if c.kind == "stream"), key=lambda c: c.bits)

    @property
    def dsp(self) -> int:
        return self.evaluation.figures.resources.dsp


def run(only: str = "", keep: Path | None = None) -> Figures:
    """`only` is a part of a row's label, as `gemm/` or `gemm/220`, or a pattern. Rows go to the end of the file `keep`
    when they are there, and those that it has are not searched again."""
    known = {str(row["label"]): row for row in kept_rows(keep)}
    rows: list[Mapping[str, Value]] = []
    for label, make in cases():
        if is_asked_for(label, only):
            if (row := known.get(label)) is None:
                row = {"label": label, **make()}
                keep_row(keep, row)
            rows.append(row)
    budgets = [row for row in rows if row["comparison"] == "budget"]
    beside = [row for row in rows if row["comparison"] == "rival"]
    gemm = [row for row in budgets if row["workload"] == "gemm"]
    summary: dict[str, Value] = {
        "rows_total": len(budgets),
        "rows_beating_all": sum(bool(row["beats_all"]) for row in budgets),
        "widest_stream_bits": max((int(str(row["widest_stream_bits"])) for row in budgets), default=None),
        "rows_that_route_on_u280": sum(float(str(row["routing_share_on_u280"])) <= 1 for row in budgets),
        "gemm_pct_of_bound": min((float(str(row["pct_of_bound"])) for row in gemm), default=None),
        **{f"gemm_pct_of_bound_{row['dsp_allowed']}": row["pct_of_bound"] for row in gemm},
        "open_rtl_rows": sum(row.get("open_rtl_cycles") is not None for row in budgets),
        "open_rtl_as_simulated": sum(
            row.get("open_rtl_cycles") == row["open_rtl_simulated_cycles"]
            for row in budgets
            if row.get("open_rtl_cycles") is not None
        ),
        "rivals_total": len(beside),
        "rivals_beaten_at_their_dsp_and_lut": sum(bool(row["beats_all"]) for row in beside),
        "rivals_that_no_design_can_beat": sum(bool(row["bound_forbids"]) for row in beside),
        "worse_than_earlier": sum(
            row["earlier_cycles"] is not None and int(str(row["cycles"])) > int(str(row["earlier_cycles"]))
            for row in budgets
        ),
    }
    return Figures("simulated", rows, summary)


def _sent(channel: TaskChannel) -> Mapping[str, Value]:
    """How the tokens of a channel go to their reader."""
    element = channel.bits // channel.lanes
    cut = pieces_of(channel.lanes, element)
    return {"streams_of_widest": cut.count, "widest_stream_bits": cut.lanes * element}


def _board_routing() -> Routing:
    """The limits of the board with this chip; the core alone, as the tables have it, has none."""
    found = routing_of(load_platform("u280"))
    assert found is not None
    return found


def _say(text: str) -> None:
    print(f"kernels: {text}", file=sys.stderr, flush=True)


def _rtl(workload: str) -> Mapping[str, Value]:
    """The design at that budget on the open route, and what the simulator says of it there."""
    _say(f"{workload}: SystemVerilog in Verilator")
    found = measure_rtl(workload, search(workload, OPEN_RTL_AT).design)
    return {
        "open_rtl_cycles": found.measured,
        "open_rtl_simulated_cycles": found.simulated,
        "open_rtl_dsp": found.dsp,
        "open_rtl_note": found.note or None,
    }


def cases() -> Iterator[tuple[str, Callable[[], Mapping[str, Value]]]]:
    """Of each workload a row for each budget, then one for each published design."""
    for workload in WORKLOADS.values():
        for budget in BUDGETS:
            yield f"{workload.name}/{budget}", partial(_budget_case, workload, budget)
        for number, rival in enumerate(rivals(workload.name)):
            yield f"{workload.name}/rival/{number}/{rival.label}", partial(rival_row, workload, rival)


def _budget_case(workload: Workload, budget: int) -> Mapping[str, Value]:
    row = budget_row(workload, budget)
    return {**row, **_rtl(workload.name)} if budget == OPEN_RTL_AT else row


def _found(workload: Workload, dsp: int, lut: int | None = None) -> tuple[KernelDesign, Found]:
    _say(f"{workload.name}: at most {dsp} DSPs" + (f" and {lut} LUTs" if lut is not None else ""))
    searched = search(workload.name, dsp, lut)
    return searched, measure(workload, searched.design, dsp, lut)


def measure(workload: Workload, design: Design, dsp: int, lut: int | None = None) -> Found:
    """Model, simulate and run a design; one that takes too many DSPs or computes something else is an error."""
    evaluator = limited(evaluator_of(workload.name), dsp, lut)
    evaluation = evaluator.evaluate_design(design)
    if not evaluation.feasible:
        raise PenstockError(
            code="does-not-fit", what=f"the design found for {dsp} DSPs does not fit", where=workload.name,
            limit=evaluation.explanation, hint="report this",
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
    return Found(evaluation, simulation.latency, check.values, network)


def budget_row(workload: Workload, budget: int) -> Mapping[str, Value]:
    others = [one for one in published(workload.name) if one.counts_at(budget)]
    _, best = _found(workload, budget)
    limits = limited(evaluator_of(workload.name), budget)
    bound = workload.macs / most_lanes(limits)
    area = best.evaluation.figures.resources
    return {
        "workload": workload.name,
        "comparison": "budget",
        "dsp_allowed": budget,
        **_ours_and_theirs(best, others),
        "lut": area.lut,
        "ff": area.ff,
        "bram18": area.bram18,
        "uram": area.uram,
        "macs": workload.macs,
        "bound_cycles": round(bound),
        "dsp_bound_cycles": round(workload.macs / (budget // DSP_OF_A_PRODUCT)),
        "pct_of_bound": round(100 * bound / best.cycles, 2),
        "values_checked": best.values,
        "widest_token_bits": best.widest.bits,
        **_sent(best.widest),
        "routing_share_on_u280": round(routing_use(best.network, _board_routing()).share, 3),
        "what_binds": what_binds(best, limits.may_use),
        "earlier_cycles": earlier_best(workload.name, budget),
    }


def most_lanes(evaluator: Evaluator) -> int:
    """How many multiplications with their additions the device holds, adders built of LUTs and of DSPs in the best mix.

    `dsp_bound_cycles` leaves the LUTs out: every adder is built of them, however many that takes.
    """
    library, limits = load_library(evaluator.platform.operators, evaluator.clock_mhz), evaluator.may_use
    product = library.find("arith.mulf", 32).area(32)
    small, large = (library.find("arith.addf", 32, kind).area(32) + product for kind in ("fabric", "dsp"))
    by_dsp = limits.dsp // small.dsp
    return max(
        lanes
        + max(0, min((limits.dsp - lanes * small.dsp) // large.dsp, (limits.lut - lanes * small.lut) // large.lut))
        for lanes in range(min(by_dsp, limits.lut // small.lut) + 1)
    )


def rival_row(workload: Workload, rival: Published) -> Mapping[str, Value]:
    """Our fastest design with no more DSPs and no more LUTs than the rival's; where there is none, why not."""
    row: dict[str, Value] = {"workload": workload.name, "comparison": "rival"}
    row |= {"dsp_allowed": rival.dsp, "lut_allowed": rival.lut}
    none = {**_ours_and_theirs(None, [rival]), "lut": None, "bound_cycles": None}
    try:
        GoalBounds(limited(evaluator_of(workload.name), rival.dsp, rival.lut)).check_possible()
    except PenstockError as proof:
        return {**row, **none, "bound_reason": proof.one_line(), "bound_forbids": True}
    try:
        searched, found = _found(workload, rival.dsp, rival.lut)
    except PenstockError as error:
        if error.code != "nothing-fits":
            raise
        return {**row, **none, "bound_reason": error.one_line(), "bound_forbids": False}
    return {
        **row,
        **_ours_and_theirs(found, [rival]),
        "lut": found.evaluation.figures.resources.lut,
        "bound_cycles": round(searched.bound),
        "bound_reason": searched.bound_reason,
        "bound_forbids": searched.bound >= rival.cycles,
    }


def _ours_and_theirs(ours: Found | None, others: Sequence[Published]) -> Mapping[str, Value]:
    fastest = min(others, key=lambda one: one.cycles, default=None)
    return {
        "cycles": ours.cycles if ours else None,
        "dsp": ours.dsp if ours else None,
        "published": fastest.label if fastest else None,
        "published_cycles": fastest.cycles if fastest else None,
        "speedup": round(fastest.cycles / ours.cycles, 3) if fastest and ours else None,
        "beats_all": fastest is not None and ours is not None and ours.cycles < fastest.cycles,
    }


def what_binds(found: Found, limits: Resources) -> str:
    """The nest that sets the pace, for how much of the time it is busy, and the resource that is nearest its limit."""
    figures = found.evaluation.figures
    slowest = next(t for t in figures.tasks if t.name == figures.bottleneck)
    shares = figures.resources.share_of(limits)
    name = max(shares, key=lambda resource: shares[resource])
    return (
        f"{slowest.name}: {slowest.iterations} iterations, {slowest.latency / found.cycles:.0%} of the time; "
        f"{name} at {shares[name]:.0%}"
    )
