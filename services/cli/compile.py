"""`penstock compile`: a model to a verified, packaged accelerator in this process, without the service."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from penstock.services.cli.asked import AskedOptions, takes_run_options
from penstock.services.cli.exit_codes import documented_exit_codes
from penstock.services.cli.run_passes import list_passes, show_passes
from penstock.services.jobs.model import check_reference
from penstock.services.run_options import COMPILE, MODEL_HELP

DEFAULT_FOLDER = "out/compiled"


@takes_run_options(COMPILE)
def compile(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    asked: AskedOptions,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help=f"folder for the package [default: {DEFAULT_FOLDER}]; with --pass a file"),
    ] = None,
    design: Annotated[Path | None, typer.Option(help="design record to use instead of searching for one")] = None,
    clock: Annotated[float | None, typer.Option(help="MHz [default: the platform's]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print report.json instead of a summary")] = False,
    stop_after: Annotated[str | None, typer.Option(metavar="STAGE", help="stop there and write the IR to DIR")] = None,
    print_ir: Annotated[bool, typer.Option("--print-ir", help="print the IR of that stage, or of all")] = False,
    single: Annotated[
        list[str] | None, typer.Option("--pass", metavar="NAME", help="run this pass on MODEL's IR; may be repeated")
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list-passes", is_eager=True, callback=list_passes, help="list the passes and end")
    ] = False,
) -> int:
    """Compile MODEL, verify the accelerator against PyTorch, and write its package to a folder."""
    with documented_exit_codes():
        if not single:  # which takes IR, from any file
            check_reference(model, asked["dims"] or ())

    from penstock.compiler.design import Design
    from penstock.dse.rungs.rung import Bench
    from penstock.dse.search.second import second_process
    from penstock.profiling.tool_runner import ToolRunner
    from penstock.services.cli.options import (
        check_bitstream,
        check_one_size,
        check_output,
        check_target,
        summary_lines,
        write_output,
    )
    from penstock.services.cli.show_ir import show_ir
    from penstock.services.cli.stages import Stages
    from penstock.services.jobs.model import load_program
    from penstock.services.jobs.package import build_package
    from penstock.services.jobs.search import equalisation_info, find_unexplained, finish_given
    from penstock.services.jobs.search_settings import SearchSettings

    with documented_exit_codes():
        given = Design.load(design) if design is not None else None
        if given is not None and asked["equalisation"] is not None:
            given = replace(given, equalisation=asked["equalisation"])
        target = check_target(asked, clock, given)
        check_bitstream(asked["bitstream"])
        if single:
            check_one_size(asked["dims"], "a pass that is run by itself")
            return show_passes(model, single, target.platform.name, target.clock_mhz, given, out)
        out = out or Path(DEFAULT_FOLDER)
        if stop_after or print_ir:
            check_one_size(asked["dims"], "the IR of each stage")
            return show_ir(model, target, given, stop_after, None if print_ir else out)
        check_output(out)
        with Stages().running() as stages, second_process(wanted=given is None) as second:
            if target.fallback:
                stages.say(target.fallback)
            stages.begin("importing the model")
            program = load_program(model, target.quantize, asked["dims"] or ())
            for note in program.notes:
                stages.say(note)
            exploration = None
            if given is None:
                trials = asked["trials"]
                stages.begin("searching" if trials is None else f"searching {trials} designs")
                choice, exploration = find_unexplained(
                    program, target.platform, target.clock_mhz, target.quantize, trials, SearchSettings.of(asked),
                    lambda done, most: stages.note(f"{done} of {most}"), evidence=target.evidence, stage=stages.begin,
                    line=stages.note, second=second,
                )  # fmt: skip
                finished, synthesis = choice.finished, choice.synthesis
                for note in (finished.evaluation.for_one_note, finished.evaluation.sizing_note):
                    if note:
                        stages.say(note)
            else:
                if given.current() is not given:
                    stages.say("the record was changed: FIFO depths, dies and memories are found anew")
                stages.begin("sizing FIFOs, placing")
                bench = Bench(
                    progress=stages.begin, line=stages.note, fifo_simulations=asked["fifo_simulations"],
                    fifo_slack=asked["fifo_slack"],
                )  # fmt: skip
                finished, synthesis = finish_given(program, target.platform, given, target.evidence, bench)
            equalised = equalisation_info(finished)
            if equalised is not None:
                stages.say(equalised.sentence)
            built = build_package(
                program, finished.design, ToolRunner(), exploration, stages.begin, target.evidence, synthesis,
                asked["bitstream"],
            )  # fmt: skip
            archive = write_output(built, out)
    print(built.report.to_json() if as_json else "\n".join(summary_lines(built.report, archive)))
    if not built.checked.passed:
        said = f"verification failed, {built.checked.differences()} - see {out / 'report.html'}"
        print(f"penstock: {said}", file=sys.stderr)
        return 1
    return 0
