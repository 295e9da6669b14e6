"""`penstock demo`: one example from PyTorch to a package, on a private service that is gone afterwards.

It speaks to the service through REST as any user would, and prints what a user would look at.
"""

from __future__ import annotations

import json
import shutil
import time
import zipfile
from pathlib import Path
from typing import Annotated, Any

import typer

from compiler.errors import PenstockError

EXAMPLE = "examples/digits_mlp.py:model"
RUN_SECONDS = 300.0


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the package.")] = Path("out/demo"),
    trials: Annotated[int, typer.Option(help="Designs to try.", min=1, max=1000)] = 24,
    model: Annotated[str, typer.Option(help="Another model to show.")] = EXAMPLE,
    platform: Annotated[str, typer.Option(help="Device to design for.")] = "u55c",
) -> int:
    """Start a private service, explore designs of the digits example, and unpack the best one's package."""
    from rich.console import Console

    from services.cli.rest import ModelSource, Service
    from services.cli.watching import follow
    from services.supervisor.borrowed import borrowed_stack

    console = Console(highlight=False)
    began = time.monotonic()
    source = ModelSource.parse(located(model))
    console.print("[bold]1. A private service[/] (Postgres, Redis, API, worker; removed at the end)")
    with borrowed_stack() as stack, Service(stack.url) as service:
        console.print(f"   {stack.url}, ready in {stack.seconds:.1f} s")
        console.print(f"[bold]2. Submit[/] {source.path}, w8a8, {trials} trials on {platform}")
        submitted = service.submit_model(source)
        run = service.submit_run(submitted.id, trials=trials, quantize="w8a8", platform=platform)
        console.print(f"   run {run.id}")
        console.print("[bold]3. Watch[/]")
        finish(follow(service, run.id, console, timeout=RUN_SECONDS))
        console.print("[bold]4. The trials[/]")
        console.print(trials_table(service.trials(run.id)))
        console.print("[bold]5. Fetch[/]")
        folder = fetch(service, run.id, out)
    console.print(f"   the service is stopped; the package lies in {folder}")
    report = json.loads((folder / "report.json").read_text())
    console.print("[bold]6. The chosen design[/]")
    for line in design_lines(report):
        console.print(f"   {line}")
    console.print(f"   try it: python {folder / 'run.py'} --digit 17")
    console.print(f"[bold]done[/] in {time.monotonic() - began:.0f} s")
    return 0 if report["verify"]["csim"]["equal"] else 1


def located(model: str) -> str:
    """The model as it is named, or below the source tree when the command runs elsewhere."""
    file, _, entry = model.partition(":")
    beside = Path(__file__).resolve().parents[2] / file
    return f"{beside}:{entry}" if not Path(file).exists() and beside.exists() else model


def finish(run: Any) -> None:
    """A run that did not succeed is an error, in the run's own words."""
    from services.cli.progress import error_line

    if run.state != "succeeded":
        raise PenstockError(code="run-failed", what=f"the run ended as {run.state}: {error_line(run)}")


def trials_table(trials: list[Any]) -> Any:
    """Every trial with its decisions and figures; the chosen one is marked."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("TRIAL", "STATE", "DECISIONS", "LATENCY", "SHARE", "EVIDENCE"):
        table.add_column(column, justify="right" if column in ("TRIAL", "LATENCY", "SHARE") else "left")
    for trial in sorted(trials, key=lambda one: one.number):
        figures = trial.figures
        style = "bold green" if trial.chosen else "" if trial.state == "complete" else "bright_black"
        table.add_row(
            f"{'→ ' if trial.chosen else ''}{trial.number}",
            trial.state,
            " ".join(f"{name}={_short(value)}" for name, value in trial.params.items()),
            _figure(figures.get("latency_us"), "{:,.2f} µs"),
            _figure(figures.get("resource_share"), "{:.2%}"),
            trial.evidence or "–",
            style=style,
        )
    return table


def fetch(service: Any, run_id: str, out: Path) -> Path:
    """Download the package and unpack it into `out`, replacing an earlier demo's."""
    archives = [one for one in service.artifacts(run_id) if one.name.endswith(".penstock.zip")]
    if len(archives) != 1:
        raise PenstockError(code="no-package", what=f"the run has {len(archives)} packages", hint="see its page")
    archive = service.download(archives[0], out)
    folder = out / archive.name.removesuffix(".penstock.zip")
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(archive) as package:
        package.extractall(folder)
    return folder


def design_lines(report: dict[str, Any]) -> list[str]:
    """What the report says, each figure with its evidence."""
    design, timing, resources = report["design"], report["timing"], report["resources"]
    lines = [f"design {design['digest'][:12]} on {report['platform']['title']}"]
    for kernel in design["kernels"]:
        choice = ", ".join(f"{word} {_short(kernel[word])}" for word in ("trips", "tile", "unroll", "order"))
        lines.append(f"  {kernel['name']} ({kernel['operation']}): {choice}, weights in {kernel['weights']}")
    cycles = f"{timing['latency_cycles']} cycles at {timing['clock_mhz']:g} MHz"
    lines.append(f"latency    {_figure(timing['latency_us'], '{:.2f} µs')}, {cycles} [{timing['evidence']}]")
    shares = [
        f"{name} {resources[name]['used']:,} of {resources[name]['available']:,}"
        for name in ("lut", "ff", "dsp", "bram18", "uram")
        if resources[name]["used"] is not None
    ]
    lines.append(f"resources  {', '.join(shares)} [{resources['evidence']}]")
    return lines + check_lines(report["verify"], report["accuracy"])


def check_lines(verify: dict[str, Any], accuracy: dict[str, Any] | None) -> list[str]:
    """The comparisons: emitted C++ with the interpreter, and both with PyTorch's float model."""
    csim = verify["csim"]
    verdict = "equal bit for bit" if csim["equal"] else "NOT equal"
    if csim["equal"] is None:
        return [f"csim was not compared with the interpreter: {csim['note']}"]
    counted = f"{csim['values_equal']:,} of {csim['values']:,} values"
    lines = [f"csim and interpreter are {verdict}: {counted} [{csim['evidence']}]"]
    if accuracy is not None:
        lines.append(
            f"accuracy on {accuracy['examples']} of {accuracy['dataset']}: float {accuracy['float_accuracy']:.2%}, "
            f"accelerator {accuracy['accelerator_accuracy']:.2%}, "
            f"same class {accuracy['agreement']:.2%} [{accuracy['evidence']}]"
        )
    return lines


def _short(value: Any) -> str:
    return "x".join(str(part) for part in value) if isinstance(value, list) else str(value)


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)
