"""A search, the choice at its end, and both as a section of the report: what was tried, the front, the chosen one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import DEFAULT_RUNG, Evidence
from penstock.compiler.package.report import EqualisationInfo, ExplorationReport, SynthesisInfo, TimeFigures, TrialInfo
from penstock.compiler.platforms import Platform
from penstock.compiler.program import Program
from penstock.dse.bounds.reachable import check_reachable
from penstock.dse.evaluation.choosing import pareto_front, place_of, setting_of
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.hypervolume import front_share
from penstock.dse.evaluation.least_room import check_room
from penstock.dse.evaluation.proving import prove_best
from penstock.dse.explaining.looks import Looks
from penstock.dse.finishing.finish import UNFIT, Finished, Sizings, finish, finish_first
from penstock.dse.rungs import RUNGS, Bench, Measured, Ranked, rank, rank_beaten, usable
from penstock.dse.rungs.vitis import VITIS_RUNGS, profile_of, retimed
from penstock.dse.search.explore import Tried, explore
from penstock.dse.search.second import SecondProcess
from penstock.dse.search.study import Told
from penstock.dse.space.tiling import Value
from penstock.profiling.network import TaskNetwork
from penstock.profiling.protocol import ProfilingError
from penstock.services.jobs.explanation import EXPLAINING, explained, use_of
from penstock.services.jobs.package import refuse_too_large
from penstock.services.jobs.search_settings import SearchSettings
from penstock.services.jobs.synthesis import RETIMED, synthesis_section


@dataclass(frozen=True)
class Choice:
    """What the best trials were on the rung that was asked for, and the finished design of the one that was taken."""

    trial: int
    finished: Finished
    figures: Measured
    """Of the finished design; `measured` are of the trials as the search had them, FIFOs unsized."""
    measured: Mapping[int, Measured]
    notes: Mapping[int, str]
    fallback: str = ""
    """Why the evidence is weaker than was asked for, where it is."""
    synthesis: SynthesisInfo | None = None

    @property
    def evidence(self) -> Evidence:
        return self.figures.evidence


def choose(
    evaluator: Evaluator,
    trials: Mapping[int, Evaluation],
    evidence: Evidence = DEFAULT_RUNG,
    *,
    progress: Callable[[str], None] = lambda _: None,
    bench: Bench | None = None,
    likely: Callable[[Evaluation], None] = lambda _: None,
) -> Choice:
    """Rank the best trials by a rung, and finish the first of them that can be placed. At least one is feasible.

    `likely` is told which trial will probably be chosen, before that is certain.
    """
    bench, trials = bench or Bench(progress=progress), prove_best(evaluator, trials)
    evidence, fallback = usable(evidence, evaluator.platform, evaluator.clock_mhz)
    progress(f"ranking the best designs, {evidence}")
    ranked = rank(evaluator, list(trials.values()), evidence, bench)
    likely(ranked[0].candidate)
    sizings: Sizings = {}
    if any(one.beaten for one in ranked):
        settled: Choice | None = None
        try:
            choice = take(evaluator, trials, ranked, evidence, bench, fallback, sizings)
            if not choice.notes:
                return choice
            settled = None if choice.finished.placement.undivided else choice  # a slower one may be divided
        except PenstockError as error:
            if error.code not in UNFIT:
                raise
        taken = None if settled is None else Ranked(trials[settled.trial], settled.measured[settled.trial])
        others = rank_beaten(evaluator, ranked, evidence, bench, taken)  # the best cannot be placed: these may be next
        if settled is not None and others == ranked:
            return settled
        ranked = others
    return take(evaluator, trials, ranked, evidence, bench, fallback, sizings)


def take(
    evaluator: Evaluator,
    trials: Mapping[int, Evaluation],
    ranked: Sequence[Ranked],
    evidence: Evidence,
    bench: Bench,
    fallback: str = "",
    sizings: Sizings | None = None,
) -> Choice:
    """Finish the first of ranked trials that can be placed, and measure it as it is then.

    What HLS synthesised has its FIFOs sized for the pipelines that it made, and is synthesised again with them; a
    design that then fails is passed over.
    """
    numbers = {setting_of(evaluation): number for number, evaluation in reversed(list(trials.items()))}

    def synthesised(evaluation: Evaluation) -> TaskNetwork | None:
        if evidence not in VITIS_RUNGS:
            return None
        return retimed(evaluator, evaluation, profile_of(evaluator, evaluation, bench, evidence)).network

    left = list(ranked)
    while True:
        bench.progress("sizing FIFOs, placing" if evidence != "modelled" else "placing")
        finished, taken, passed = finish_first(
            evaluator, left, simulate=evidence != "modelled", synthesised=synthesised, bench=bench, sizings=sizings
        )  # fmt: skip
        try:
            figures = RUNGS[evidence](evaluator, finished.evaluation, bench)
        except ProfilingError as error:
            if evidence not in VITIS_RUNGS or error.retry_later or error.kind == "cancelled":
                raise
            why = f"with its FIFOs sized: {error.one_line()}"
            left = [Ranked(one.candidate, None, why, error) if one is taken else one for one in left]
            continue
        section = None
        if evidence in VITIS_RUNGS and taken.measured is not None:
            section = synthesis_section(
                evaluator, taken.candidate, taken.measured, finished.evaluation, figures, bench
            )  # fmt: skip
        return Choice(
            numbers[setting_of(taken.candidate)],
            finished,
            figures,
            {numbers[setting_of(r.candidate)]: r.measured for r in ranked if r.measured is not None},
            {numbers[setting_of(left[position].candidate)]: why for position, why in passed.items()},
            fallback,
            section,
        )


def search_section(
    trials: Sequence[Told] | Sequence[Tried], choice: Choice, settings: SearchSettings, evidence: Evidence
) -> ExplorationReport:
    """`trials` are a study's own, or those of a search in this process; running ones are left out."""
    rows = [_row(t) for t in trials]
    complete = [r for r in rows if r.state == "complete"]
    front = set(map(id, pareto_front(complete)))
    infos = tuple(
        TrialInfo(
            number=row.number,
            state=row.label,
            latency_cycles=round(row.figures["latency_cycles"]) if row.figures else None,
            resource_share=row.figures.get("resource_share"),
            values=dict(zip(settings.goal.figures, row.values, strict=True)) if row.values else {},
            params=dict(row.params),
            evidence=evidence if row.values else None,
            on_front=id(row) in front,
            chosen=row.number == choice.trial,
            measured=_by_tools(choice.measured.get(row.number), evidence),
            note=choice.notes.get(row.number, ""),
        )
        for row in rows
        if row.label != "running"
    )
    states = [info.state for info in infos]
    return ExplorationReport(
        trials=infos,
        complete=states.count("complete"),
        infeasible=states.count("infeasible"),
        failed=states.count("failed"),
        sampler=settings.sampler,
        seed=settings.seed,
        objectives=settings.goal.objectives,
        limits=tuple(limit.text for limit in settings.goal.limits),
        chosen_by=choice.evidence,
        hypervolume=front_share(complete),
        sizing=choice.finished.evaluation.sizing_note,
        for_one=choice.finished.evaluation.for_one_note,
        equalisation=equalisation_info(choice.finished),
    )


def equalisation_info(finished: Finished) -> EqualisationInfo | None:
    """What FIFOs that may cost time came to; None under the normal equalisation, or where nothing was simulated."""
    found, percent = finished.evaluation.equalised, finished.design.equalisation
    if found is None:
        return None
    return EqualisationInfo(
        percent=percent, bits=found.bits, latency_cycles=found.latency,
        normal_bits=found.normal_bits, normal_latency_cycles=found.normal_latency,
    )  # fmt: skip


def _by_tools(measured: Measured | None, searched_by: Evidence) -> tuple[TimeFigures, ...]:
    """What a stronger rung says of a trial; what designs were ranked by comes last."""
    if measured is None or measured.evidence == searched_by:
        return ()
    own = TimeFigures(
        evidence=measured.evidence, latency_cycles=measured.latency, initial_delay_cycles=measured.initial_delay,
        interval_cycles=measured.interval, fmax_mhz=measured.fmax_mhz,
    )  # fmt: skip
    again = measured.retimed
    if again is None:
        return (own,)
    simulated = TimeFigures(
        evidence="simulated", latency_cycles=again.latency, initial_delay_cycles=again.initial_delay,
        interval_cycles=again.interval, basis=RETIMED,
    )  # fmt: skip
    return (own, simulated) if measured.evidence == "csynth" else (simulated, own)


@dataclass(frozen=True)
class _Row:
    """One trial, wherever it comes from."""

    number: int
    state: str
    params: Mapping[str, Value]
    values: tuple[float, ...] | None
    constraints: dict[str, float]
    figures: Mapping[str, float]

    @property
    def feasible(self) -> bool:
        return self.values is not None and all(v <= 0 for v in self.constraints.values())

    @property
    def label(self) -> str:
        if self.state == "complete":
            return "complete" if self.feasible else "infeasible"
        return "failed" if self.state == "fail" else "running"


def _row(trial: Told | Tried) -> _Row:
    if isinstance(trial, Told):
        return _Row(trial.number, trial.state, trial.params, trial.values, trial.constraints, trial.figures)
    one = trial.evaluation
    return _Row(trial.number, "complete", one.params, one.values, one.constraints, one.measures)


def find_design(
    program: Program,
    platform: Platform,
    clock_mhz: float,
    quantize: str | None,
    trials: int | None,
    settings: SearchSettings,
    progress: Callable[[int, int], None],
    *,
    evidence: Evidence = DEFAULT_RUNG,
    stage: Callable[[str], None] = lambda _: None,
    line: Callable[[str], None] | None = None,
    second: SecondProcess | None = None,
) -> tuple[Choice, ExplorationReport]:
    """Search in this process, choose among the best on the rung asked for, finish the chosen one, and explain it.

    `program` is prepared. `progress` counts trials, `stage` names what comes after them, `line` says how far that is.
    A `second` process takes a part of the work, and changes nothing of what is found.
    """
    choice, explain = find_unexplained(
        program, platform, clock_mhz, quantize, trials, settings, progress, evidence=evidence, stage=stage, line=line,
        second=second,
    )  # fmt: skip
    stage(EXPLAINING)
    return choice, explain()


def find_unexplained(
    program: Program,
    platform: Platform,
    clock_mhz: float,
    quantize: str | None,
    trials: int | None,
    settings: SearchSettings,
    progress: Callable[[int, int], None],
    *,
    evidence: Evidence = DEFAULT_RUNG,
    stage: Callable[[str], None] = lambda _: None,
    line: Callable[[str], None] | None = None,
    second: SecondProcess | None = None,
) -> tuple[Choice, Callable[[], ExplorationReport]]:
    """The same, where what explains the choice is worked out when it is asked for: while a tool runs, for instance."""
    usable(evidence, platform, clock_mhz)  # an error comes before the search, not after it
    evaluator = Evaluator.create(
        program, platform.name, clock_mhz=clock_mhz, quantize=quantize, options=settings.space, goal=settings.goal
    )
    check_reachable(evaluator)
    check_room(evaluator)

    def tried(trial: Tried, most: int) -> None:
        progress(trial.number + 1, most)

    found = explore(
        evaluator, trials, seed=settings.seed, sampler=settings.sampler, fixed=settings.fixed, gap=settings.gap,
        progress=tried, second=second,
    )  # fmt: skip
    bench = Bench(
        progress=stage, line=line, fifo_simulations=settings.fifo_simulations, fifo_slack=settings.fifo_slack,
        elsewhere=second,
    )  # fmt: skip
    evaluations = {t.number: t.evaluation for t in sorted(found.tried, key=lambda t: place_of(t.evaluation))}
    looks = Looks(evaluator, second)
    choice = choose(
        evaluator, evaluations, evidence, progress=stage, bench=bench, likely=lambda one: looks.think_of(one.params)
    )
    section = search_section(found.tried, choice, settings, found.best.evaluation.evidence)
    early = f"the best is within {settings.gap:g} % of the bound" if found.stopped_early else ""
    section = section.model_copy(update={"modelled": found.modelled, "stopped": early})
    chosen, use = evaluations[choice.trial], use_of(bench.profiles.counts)
    return choice, lambda: explained(
        section, evaluator, chosen, found.tried, bench.history, use, looks, found.bound
    )  # fmt: skip


def finish_given(
    program: Program,
    platform: Platform,
    design: Design,
    evidence: Evidence = DEFAULT_RUNG,
    bench: Bench | None = None,
) -> tuple[Finished, SynthesisInfo | None]:
    """A design from a record: what it decides is kept or refused, the rest is found. HLS measures it as a search's."""
    bench = bench or Bench()
    evaluator = Evaluator.create(program, platform.name, clock_mhz=design.clock_mhz, quantize=design.quantize)
    evidence, _ = usable(evidence, platform, evaluator.clock_mhz)
    current = design.current()
    before = evaluator.evaluate_design(current)
    refuse_too_large(before.figures, platform, program.name)
    if evidence not in VITIS_RUNGS:
        simulate = evidence != "modelled"
        return finish(evaluator, before, simulate=simulate, keep=current.fifo_depths, bench=bench), None
    bench.progress(f"measuring, {evidence}")
    first = RUNGS[evidence](evaluator, before, bench)
    network = retimed(evaluator, before, profile_of(evaluator, before, bench, evidence)).network
    finished = finish(evaluator, before, keep=current.fifo_depths, network=network, bench=bench)
    bench.progress(f"measuring with FIFOs sized, {evidence}")
    last = RUNGS[evidence](evaluator, finished.evaluation, bench)
    return finished, synthesis_section(evaluator, before, first, finished.evaluation, last, bench)
