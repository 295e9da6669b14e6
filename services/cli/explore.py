"""`penstock explore`: search for good designs of a model in this process, without the service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.compiler.package.report import ExplorationReport, TrialInfo


def explore(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="FILE.py:FUNCTION or zoo:NAME?KEY=VALUE")],
    trials: Annotated[int, typer.Option(help="designs to try", min=1, max=100_000)] = 100,
    platform: Annotated[str | None, typer.Option(help="device to design for [default: u55c]")] = None,
    quantize: Annotated[str | None, typer.Option(help="w8a8: eight-bit weights and activations")] = None,
    clock: Annotated[float | None, typer.Option(help="MHz [default: the platform's]")] = None,
    sampler: Annotated[str, typer.Option(help="local, tpe, nsga2, random, or grid: all of a small space")] = "local",
    seed: Annotated[int, typer.Option(help="equal seeds give equal searches")] = 0,
    objective: Annotated[
        list[str] | None,
        typer.Option(help="latency, throughput, resources, energy or traffic; up to three, the most important first"),
    ] = None,
    limit: Annotated[
        list[str] | None, typer.Option(help="a hard limit such as dsp<=0.5 or latency_us<=20; may be repeated")
    ] = None,
    fix: Annotated[
        list[str] | None, typer.Option(help="a parameter that is not searched, as order=parallel-outer; see the table")
    ] = None,
    max_lanes: Annotated[int | None, typer.Option(help="the most operations side by side", min=2)] = None,
    evidence: Annotated[
        str, typer.Option(help="what the choice comes from: modelled, simulated, open-rtl, csynth or cosim")
    ] = "simulated",
    save: Annotated[Path | None, typer.Option(help="write the best design here, for penstock compile --design")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one object instead of a table")] = False,
) -> int:
    """Try designs of MODEL on a device and print the Pareto front: latency against resources."""
    from rich.console import Console

    from penstock.compiler.package.report import SearchResult
    from penstock.dse.evaluation.objectives import Goal
    from penstock.services.cli.options import check_target, documented_exit_codes, save_design
    from penstock.services.cli.stages import Stages
    from penstock.services.jobs.model import load_program
    from penstock.services.jobs.search import SearchSettings, find_design

    with documented_exit_codes():
        target = check_target(platform, clock, quantize, evidence, None)
        goal = Goal.of(objective or (), limit or ()).on(target.platform)
        settings = SearchSettings(sampler, seed, max_lanes, goal, tuple(fix or ()))
        with Stages().running() as stages:
            if target.fallback:
                stages.say(target.fallback)
            stages.begin("importing the model")
            program = load_program(model, target.quantize)
            stages.begin(f"searching {trials} designs")
            choice, exploration = find_design(
                program, target.platform, target.clock_mhz, target.quantize, trials, settings,
                lambda done: stages.note(f"{done} of {trials}"), evidence=target.evidence, stage=stages.begin,
            )  # fmt: skip
            best = choice.finished.design
        if save is not None:
            save_design(best, save)
    if as_json:
        print(SearchResult(design=best.to_json(), exploration=exploration).model_dump_json())
        return 0
    console = Console(highlight=False)
    console.print(front_table(exploration, target.clock_mhz))
    counts = f"{exploration.complete} complete, {exploration.infeasible} over the limits, {exploration.failed} failed"
    console.print(f"{len(exploration.trials)} trials on {target.platform.title}: {counts}")
    figures = choice.figures
    interval = "" if figures.interval is None else f", one every {figures.interval:,}"
    again = figures.retimed
    beside = "" if again is None else f"; {again.latency:,} simulated with its II and depth"
    console.print(
        f"chosen: trial {choice.trial}, {figures.latency:,} cycles{interval} [{figures.evidence}]{beside}", markup=False
    )
    for sentence in exploration.why.sentences if exploration.why else ():
        console.print(f"  {sentence}", markup=False)
    advice = f"saved to {save}" if save is not None else "keep it with --save design.json"
    console.print(f"best design {best.digest()[:12]}: {advice}", markup=False)
    return 0


def front_table(exploration: ExplorationReport, clock_mhz: float) -> Table:
    """The Pareto front, the best by the first objective first, and the chosen design, which is marked."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    others = [exploration.chosen_by] if any(t.measured for t in exploration.trials) else []
    wanted = list(next((t.values for t in exploration.trials if t.values), {}))
    more = [name for name in wanted if name not in ("latency_cycles", "resource_share")]
    columns = ["TRIAL", "CYCLES", "LATENCY", "LARGEST SHARE", *(name.upper() for name in more), "EVIDENCE"]
    columns += [str(e).upper() for e in others]
    for column in (*columns, "DECISIONS"):
        table.add_column(column, justify="left" if column in ("EVIDENCE", "DECISIONS") else "right")
    front = [t for t in exploration.trials if (t.on_front or t.chosen) and t.latency_cycles is not None]
    for trial in sorted(front, key=lambda t: list(t.values.values()) or [float(t.latency_cycles or 0)]):
        cycles, share = trial.latency_cycles or 0, trial.resource_share
        table.add_row(
            f"{'→ ' if trial.chosen else ''}{trial.number}", f"{cycles:,}", f"{cycles / clock_mhz:,.2f} µs",
            "not measured" if share is None else f"{share:.2%} of the limit",
            *(f"{trial.values[name]:,.4g}" for name in more), trial.evidence or "not measured",
            *(_cycles(trial, evidence) for evidence in others),
            " ".join(f"{name}={value}" for name, value in trial.params.items()),
            style="bold green" if trial.chosen else "",
        )  # fmt: skip
    return table


def _cycles(trial: TrialInfo, evidence: str | None) -> str:
    """The latency by stronger evidence, where somebody looked."""
    found = next((m.latency_cycles for m in trial.measured if m.evidence == evidence), None)
    return "–" if found is None else f"{found:,}"
