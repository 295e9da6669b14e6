"""`penstock pause | resume | extend | replay`: a search after its start, over REST only."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from penstock.services.api.answers.schemas import RunDetail
from penstock.services.cli.client import connect, resolve
from penstock.services.cli.exit_codes import FAILED, OK
from penstock.services.cli.runs import JsonFlag, RunArgument, Url, print_json
from penstock.services.cli.watching import exit_code_of, follow
from penstock.services.run_summary import Replayed, RunSummary


def pause(run: RunArgument, as_json: JsonFlag = False, url: Url = None) -> int:
    """Start no further trial of a run; those that run come to their end. `penstock resume` lets it go on."""
    with connect(url) as service:
        return _say(service.pause(resolve(service, run)), as_json)


def resume(run: RunArgument, as_json: JsonFlag = False, url: Url = None) -> int:
    """Let the trials of a paused run go on."""
    with connect(url) as service:
        return _say(service.resume(resolve(service, run)), as_json)


def extend(
    run: RunArgument,
    trials: Annotated[int, typer.Option(help="Further designs to try.", min=1)] = 24,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run to its end, with its exit code.")] = False,
    timeout: Annotated[float | None, typer.Option(help="With --wait: give up after so many seconds.")] = None,
    as_json: JsonFlag = False,
    url: Url = None,
) -> int:
    """Add trials to a run. One that has chosen already chooses again among all of them and makes a new package."""
    with connect(url) as service:
        found = service.extend(resolve(service, run), trials)
        if not wait:
            return _say(found, as_json)
        end = follow(service, found.id, Console(stderr=True), timeout=timeout)
        _say(end, as_json)
        return exit_code_of(end)


def replay(
    run: RunArgument,
    trial: Annotated[int, typer.Argument(metavar="TRIAL", help="The number of a trial.", min=0)],
    timeout: Annotated[float | None, typer.Option(help="Give up after so many seconds (code 5).")] = None,
    as_json: JsonFlag = False,
    url: Url = None,
) -> int:
    """Evaluate a trial again from its record. Ends with 0 if every figure is what it was, else with 1."""
    with connect(url) as service:
        started = service.replay(resolve(service, run), trial)
        end = follow(service, started.id, Console(stderr=True), timeout=timeout)
    found = RunSummary.read(end.summary).replay
    if end.state != "succeeded" or found is None:
        _say(end, as_json)
        return exit_code_of(end) or FAILED
    if as_json:
        print_json(end)
    else:
        for line in replay_lines(found):
            print(line)
    return OK if found.equal else FAILED


def replay_lines(found: Replayed) -> list[str]:
    """What a replay found, for people."""
    name = f"trial {found.trial} of {found.run}"
    changed = [f"changed since: {text}" for text in found.changed]
    if found.equal:
        return [f"{name}: every figure is what it was [{found.evidence}]", *changed]
    rows = [f"  {row.figure}: {row.then} then, {row.now} now" for row in found.differs]
    return [f"{name}: differs [{found.evidence}]", *rows, *(changed or ["nothing has changed since: a defect"])]


def _say(run: RunDetail, as_json: bool) -> int:
    if as_json:
        print_json(run)
        return OK
    trials = f"{run.progress.trials_done} of {run.progress.trials_total} trials done"
    print(f"{run.id}: {'paused' if run.paused else run.state}, {trials}")
    if run.error is not None:
        print(run.error.what, file=sys.stderr)
    return OK
