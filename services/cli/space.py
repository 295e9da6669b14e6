"""`penstock space` and `penstock evaluate`: a search's space and single settings of it, for programs that search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.services.cli.asked import AskedOptions, takes_run_options
from penstock.services.cli.exit_codes import documented_exit_codes
from penstock.services.jobs.model import check_reference
from penstock.services.run_options import MODEL_HELP, SPACE

if TYPE_CHECKING:
    from penstock.dse.evaluation.evaluate import Evaluator

Clock = Annotated[float | None, typer.Option(help="MHz [default: the platform's]")]
_MOST_SHOWN = 8


@takes_run_options(SPACE)
def space(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    asked: AskedOptions,
    clock: Clock = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one object instead of lines")] = False,
) -> int:
    """Say what can be decided of MODEL on a device, and what no design of it can be better than."""
    with documented_exit_codes():
        from penstock.services.jobs.space import space_of

        found = space_of(_evaluator(model, asked, clock))
    if as_json:
        print(found.model_dump_json())
        return 0
    for one in found.parameters:
        shown = ", ".join(map(str, one.values[:_MOST_SHOWN]))
        more = f" … {one.values[-1]}" if len(one.values) > _MOST_SHOWN else ""
        print(f"{one.name:<24}{shown}{more}")
    print(f"no design is below {found.bound:,.6g} {found.objectives[0].replace('_', ' ')}: {found.bound_reason}")
    return 0


@takes_run_options(SPACE)
def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    asked: AskedOptions,
    params: Annotated[Path, typer.Option(help="a JSON file: an object of parameters, or a list of them")],
    clock: Clock = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one object instead of lines")] = False,
) -> int:
    """Model the designs that settings of MODEL's space mean, and say what each costs and which limits it keeps."""
    with documented_exit_codes():
        from penstock.compiler.search_space import EvaluatedSettings
        from penstock.dse.bounds.bound import lower_bound
        from penstock.services.jobs.space import all_evaluated, read_settings

        evaluator = _evaluator(model, asked, clock)
        settings = read_settings(params, evaluator.space)
        found = EvaluatedSettings(evaluated=all_evaluated(evaluator, settings, lower_bound(evaluator)))
    if as_json:
        print(found.model_dump_json())
        return 0
    names = evaluator.goal.figures
    for number, one in enumerate(found.evaluated):
        if one.error:
            print(f"setting {number} means no design: {one.error}")
            continue
        figures = ", ".join(f"{v:,.6g} {f.replace('_', ' ')}" for f, v in zip(names, one.values, strict=True))
        print(f"{one.digest[:12]}  {figures}  [{one.evidence}]  {one.explanation}")
    return 0


def _evaluator(model: str, asked: AskedOptions, clock: float | None) -> Evaluator:
    check_reference(model, asked["dims"] or ())
    from penstock.dse.evaluation.evaluate import Evaluator
    from penstock.dse.evaluation.objectives import Goal
    from penstock.services.cli.options import check_target
    from penstock.services.cli.stages import Stages
    from penstock.services.jobs.model import load_program
    from penstock.services.jobs.search_settings import space_options

    target = check_target({**asked, "evidence": "modelled"}, clock, None)
    goal = Goal.of(asked["objectives"] or (), asked["limits"] or ()).on(target.platform)
    with Stages().running() as stages:
        stages.begin("importing the model")
        program = load_program(model, target.quantize, asked["dims"] or ())
    return Evaluator.create(
        program, target.platform.name, clock_mhz=target.clock_mhz, quantize=target.quantize,
        options=space_options(asked), goal=goal,
    )  # fmt: skip
