"""`penstock explore`: search for good designs of a model in this process, without the service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.services.cli.asked import AskedOptions, takes_run_options
from penstock.services.cli.exit_codes import documented_exit_codes
from penstock.services.cli.explore_kernel import explore_source
from penstock.services.jobs.kernels import is_kernel
from penstock.services.jobs.model import check_reference
from penstock.services.run_options import EXPLORE, MODEL_HELP

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.compiler.package.report import ExplorationReport, TrialInfo

_LEAST_SHOWN = 12
"""Letters of a trial's decisions."""


@takes_run_options(EXPLORE)
def explore(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    asked: AskedOptions,
    clock: Annotated[float | None, typer.Option(help="MHz [default: the platform's]")] = None,
    save: Annotated[Path | None, typer.Option(help="write the best design here, for penstock compile --design")] = None,
    top: Annotated[str | None, typer.Option(help="of a C++ kernel: its top function")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="of a C++ kernel: folder for the new source and exploration.json")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one object instead of a table")] = False,
) -> int:
    """Try designs of MODEL on a device and print the Pareto front: latency against resources."""
    if is_kernel(model):
        return explore_source(model, top, asked, clock, out, save, as_json=as_json)
    with documented_exit_codes():
        check_reference(model, asked["dims"] or ())

    from rich.console import Console

    from penstock.compiler.package.report import SearchResult
    from penstock.dse.evaluation.objectives import Goal
    from penstock.dse.search.second import second_process
    from penstock.services.cli.options import check_target, save_design
    from penstock.services.cli.stages import Stages
    from penstock.services.jobs.model import load_program
    from penstock.services.jobs.search import find_design
    from penstock.services.jobs.search_settings import SearchSettings

    with documented_exit_codes():
        target = check_target(asked, clock, None)
        goal = Goal.of(asked["objectives"] or (), asked["limits"] or ()).on(target.platform)
        trials = asked["trials"]
        with Stages().running() as stages, second_process(wanted=True) as second:
            if target.fallback:
                stages.say(target.fallback)
            stages.begin("importing the model")
            program = load_program(model, target.quantize, asked["dims"] or ())
            for note in program.notes:
                stages.say(note)
            stages.begin("searching" if trials is None else f"searching {trials} designs")
            choice, exploration = find_design(
                program, target.platform, target.clock_mhz, target.quantize, trials, SearchSettings.of(asked, goal),
                lambda done, most: stages.note(f"{done} of {most}"), evidence=target.evidence, stage=stages.begin,
                line=stages.note, second=second,
            )  # fmt: skip
            best = choice.finished.design
        if save is not None:
            save_design(best, save)
    if as_json:
        print(SearchResult(design=best.to_json(), exploration=exploration).model_dump_json())
        return 0
    console = Console(highlight=False)
    console.print(front_table(exploration, target.clock_mhz, console.width))
    counts = f"{exploration.complete} complete, {exploration.infeasible} over the limits, {exploration.failed} failed"
    before = f", after {exploration.modelled:,} settings were modelled" if exploration.modelled else ""
    console.print(f"{len(exploration.trials)} trials on {target.platform.title}{before}: {counts}")
    if exploration.hypervolume is not None:
        console.print(
            f"the front beats {exploration.hypervolume:.0%} of what lies between the best and the worst trials"
        )
    figures = choice.figures
    interval = "" if figures.interval is None else f", one every {figures.interval:,}"
    again = figures.retimed
    beside = "" if again is None else f"; {again.latency:,} simulated with its II and depth"
    console.print(
        f"chosen: trial {choice.trial}, {figures.latency:,} cycles{interval} [{figures.evidence}]{beside}", markup=False
    )
    if exploration.for_one:
        console.print(exploration.for_one, markup=False)
    if exploration.equalisation:
        console.print(exploration.equalisation.sentence, markup=False)
    if exploration.stopped:
        console.print(f"stopped early: {exploration.stopped}", markup=False)
    for sentence in exploration.why.sentences if exploration.why else ():
        console.print(f"  {sentence}", markup=False)
    for one in exploration.left_out:
        console.print(f"  left out, {one.part}: {one.why}", markup=False)
    advice = f"saved to {save}" if save is not None else "keep it with --save design.json"
    console.print(f"best design {best.digest()[:12]}: {advice}", markup=False)
    return 0


def front_table(exploration: ExplorationReport, clock_mhz: float, width: int) -> Table:
    """The Pareto front, the best by the first objective first, and the chosen design, which is marked; a line each.

    SHARE is the largest share of any resource's limit. All decisions of a trial are in `--json`.
    """
    from rich.table import Table

    from penstock.dse.space.fitted import worth_saying

    table = Table(box=None, pad_edge=False, header_style="bold")
    others = [exploration.chosen_by] if any(t.measured for t in exploration.trials) else []
    wanted = list(next((t.values for t in exploration.trials if t.values), {}))
    more = [name for name in wanted if name not in ("latency_cycles", "resource_share")]
    columns = ["TRIAL", "CYCLES", "LATENCY", "SHARE", *(name.upper() for name in more), "EVIDENCE"]
    columns += [str(e).upper() for e in others]
    for column in (*columns, "DECISIONS"):
        last = column == "DECISIONS"
        table.add_column(column, justify="left" if last or column == "EVIDENCE" else "right", no_wrap=last)
    front = [t for t in exploration.trials if (t.on_front or t.chosen) and t.latency_cycles is not None]
    for trial in sorted(front, key=lambda t: list(t.values.values()) or [float(t.latency_cycles or 0)]):
        cycles, share = trial.latency_cycles or 0, trial.resource_share
        table.add_row(
            f"{'→ ' if trial.chosen else ''}{trial.number}", f"{cycles:,}", f"{cycles / clock_mhz:,.2f} µs",
            "not measured" if share is None else f"{share:.2%}",
            *(f"{trial.values[name]:,.4g}" for name in more), trial.evidence or "not measured",
            *(_cycles(trial, evidence) for evidence in others),
            " ".join(f"{name}={value}" for name, value in worth_saying(trial.params).items()),
            style="bold green" if trial.chosen else "",
        )  # fmt: skip
    used = sum(max(len(str(one)) for one in (column.header, *column.cells)) + 2 for column in table.columns[:-1])
    table.columns[-1].max_width = max(_LEAST_SHOWN, width - used)
    return table


def _cycles(trial: TrialInfo, evidence: str | None) -> str:
    """The latency by stronger evidence, where somebody looked."""
    found = next((m.latency_cycles for m in trial.measured if m.evidence == evidence), None)
    return "–" if found is None else f"{found:,}"
