"""`penstock submit | watch | runs | fetch | cancel`: the service from the command line, over REST only.

PENSTOCK_URL says where the service is, PENSTOCK_TOKEN who is asking; the token of one's own `penstock up` is found.
With `--json` a command prints exactly one JSON document on stdout; progress goes to stderr.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel
from rich.console import Console

from penstock.services.api.answers.schemas import ArtifactOut, RunDetail
from penstock.services.cli.asked import AskedOptions, takes_run_options
from penstock.services.cli.client import connect, resolve
from penstock.services.cli.exit_codes import CONSTRAINTS_UNMET, FAILED, OK
from penstock.services.cli.progress import best_text, error_line, runs_table
from penstock.services.cli.watching import exit_code_of, follow
from penstock.services.client.blocking import Client
from penstock.services.client.errors import UsageError
from penstock.services.client.model_source import ModelSource
from penstock.services.run_options import MODEL_HELP, SUBMIT
from penstock.services.step_kinds import STEP_KINDS, StepKey

_PIPE_WIDTH = 240

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or `latest`.")]
Url = Annotated[str | None, typer.Option("--url", help="The service; else PENSTOCK_URL.", show_default=False)]


@takes_run_options(SUBMIT)
def submit(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL_HELP}.")],
    asked: AskedOptions,
    top: Annotated[str, typer.Option(help="Of a kernel in C++: its top function.")] = "",
    name: Annotated[str | None, typer.Option(help="What to call the run.")] = None,
    key: Annotated[
        str, typer.Option(help="The same submission again under the same key starts no second run: a CI job's id.")
    ] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Follow the run to its end, with its exit code.")] = False,
    timeout: Annotated[float | None, typer.Option(help="With --wait: give up after so many seconds.")] = None,
    as_json: JsonFlag = False,
    url: Url = None,
) -> int:
    """Hand a model to the service and start a run of it. Prints the run's id and page."""
    options = {**asked, "name": name}
    given = {option: value for option, value in options.items() if value is not None}
    with connect(url) as service:
        run = service.submit(ModelSource.parse(model, top), key=key, **given)
        if not wait:
            if as_json:
                print_json(run)
            else:
                print(run.id)
                print(f"{service.url}{run.page}", file=sys.stderr)
            return OK
        print(f"{run.id}  {service.url}{run.page}", file=sys.stderr)
        return _watch(service, run.id, timeout=timeout, as_json=as_json, exit_status=True)


def watch(
    run: RunArgument,
    exit_status: Annotated[
        bool,
        typer.Option(
            "--exit-status",
            help="End with the run's code: 0 succeeded, 1 failed, 3 constraints unmet, 4 cancelled.",
        ),
    ] = False,
    timeout: Annotated[float | None, typer.Option(help="Give up after so many seconds (code 5).")] = None,
    as_json: JsonFlag = False,
    url: Url = None,
) -> int:
    """Follow a run until it ends: steps, trials and the best design so far. Ctrl-C leaves the run alone."""
    with connect(url) as service:
        found = resolve(service, run)
        return _watch(service, found, timeout=timeout, as_json=as_json, exit_status=exit_status)


def runs(
    limit: Annotated[int, typer.Option(help="How many to show.", min=1, max=10_000)] = 20,
    state: Annotated[
        str, typer.Option(help="Only runs in this state: queued, running, succeeded, failed, cancelled.")
    ] = "",
    as_json: JsonFlag = False,
    url: Url = None,
) -> int:
    """List runs, the newest first."""
    with connect(url) as service:
        found = list(service.runs(limit=limit, state=state))
    if as_json:
        print(json.dumps({"runs": [run.model_dump(mode="json") for run in found]}, indent=1))
    elif not found:
        print("no runs" if not state else f"no {state} runs", file=sys.stderr)
    else:
        # In a pipe nobody wants lines that were folded for a screen.
        console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
        console.print(runs_table(found))
    return OK


def fetch(
    run: RunArgument,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder to write to; default: the run's id.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All artifacts, not just the package and the report.")
    ] = False,
    as_json: JsonFlag = False,
    url: Url = None,
) -> int:
    """Download the package and the report of a run; every file is checked against its hash."""
    with connect(url) as service:
        found = service.run(resolve(service, run))
        files = _wanted(service.artifacts(found.id), everything)
        if not files:
            return _nothing_to_fetch(found)
        folder = output or Path(found.id)
        paths = {file.id: _download(service, file, folder) for file in files}
    if as_json:
        rows = [
            {"name": file.name, "path": str(paths[file.id]), "size": file.size, "sha256": file.sha256} for file in files
        ]
        print(json.dumps({"run": found.id, "files": rows}, indent=1))
    else:
        for file in files:
            print(paths[file.id])
    return OK


def limits(
    run: RunArgument,
    wanted: Annotated[
        list[str] | None, typer.Argument(metavar="LIMIT…", help="Such as latency_us<=20; else the run's own.")
    ] = None,
    as_json: JsonFlag = False,
    url: Url = None,
) -> int:
    """Hold the design that a run chose against limits. Ends with 3 if one is missed, or is about what is not known."""
    with connect(url) as service:
        found = service.compare_limits(service.run(resolve(service, run)), wanted or None)
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=1))
    else:
        print("\n".join(one.line() for one in found) or "no limits")
    return OK if all(one.holds for one in found) else CONSTRAINTS_UNMET


def cancel(run: RunArgument, as_json: JsonFlag = False, url: Url = None) -> int:
    """Stop a run: what waits is dropped, what is being worked on ends within seconds."""
    with connect(url) as service:
        found = service.cancel(resolve(service, run))
    if as_json:
        print_json(found)
    else:
        print(f"{found.id}: {found.state}")
    return OK


def print_json(document: BaseModel) -> None:
    print(document.model_dump_json(indent=1))


def _watch(service: Client, run: str, *, timeout: float | None, as_json: bool, exit_status: bool) -> int:
    end = follow(service, run, Console(stderr=True), timeout=timeout)
    if as_json:
        print_json(end)
    else:
        print(_ending(end))
    return exit_code_of(end) if exit_status else OK


def _ending(run: RunDetail) -> str:
    if run.error is not None:
        return f"{run.id}: {run.state}: {error_line(run)}"
    return f"{run.id}: {run.state}" + (f", {best_text(run)}" if run.chosen or run.best else "")


def _wanted(artifacts: list[ArtifactOut], everything: bool) -> list[ArtifactOut]:
    """The files of the last step, or all of them; of two with one name the newer."""
    chosen: dict[str, ArtifactOut] = {}
    for file in artifacts:  # the newest first
        if everything or _delivers(file.step):
            chosen.setdefault(file.name, file)
    return sorted(chosen.values(), key=lambda file: file.name)


def _delivers(step: str) -> bool:
    facts = STEP_KINDS.get(StepKey.parse(step).kind)
    return facts is not None and facts.delivers


def _nothing_to_fetch(run: RunDetail) -> int:
    why = {"succeeded": "has no files", "failed": "failed", "cancelled": "was cancelled"}
    state = why.get(run.state, f"is still {run.state}")
    hint = "follow it with `penstock watch`" if run.state in ("queued", "running") else "see its page"
    print(f"penstock: {run.id} {state}: no package to fetch; {hint}", file=sys.stderr)
    return FAILED


def _download(service: Client, file: ArtifactOut, folder: Path) -> Path:
    try:
        return service.download(file, folder)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from None
