"""`penstock demo`: one example from PyTorch to a package, on a private service that is gone afterwards.

It speaks to the service through REST as any user would, and prints what a user would look at.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock import IMPORT_ROOT
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import RESOURCE_NAMES

EXAMPLES = IMPORT_ROOT / "penstock" / "examples"
EXAMPLE = f"{EXAMPLES / 'digits_mlp.py'}:model"
LANGUAGE = f"{EXAMPLES / 'char_lm.py'}:model#blocks"
PLATFORM = "ulx3s-85f"
CARD = "u55c"
RUN_SECONDS = 1800.0
SHORT = {"default_tile_size": "tile", "overall_unroll_size": "unroll", "unroll_along": "along"}


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the package.")] = Path("out/demo"),
    trials: Annotated[
        int | None, typer.Option(help="Designs to try.", min=1, max=1000, show_default="16, or 4 with --text")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Another model to show.", show_default="examples/digits_mlp.py:model")
    ] = None,
    platform: Annotated[
        str | None,
        typer.Option(help="Board or device to design for.", show_default=f"{PLATFORM}, or {CARD} with --text"),
    ] = None,
    evidence: Annotated[
        str | None,
        typer.Option(
            help="What the choice and its figures come from.", show_default="open-rtl, or modelled with --text"
        ),
    ] = None,
    max_lanes: Annotated[
        int | None,
        typer.Option(
            help="The most operations side by side; few are placed sooner.", show_default="16, any number with --text"
        ),
    ] = None,
    text: Annotated[
        str, typer.Option(help="Show a language model, which goes on with this.", show_default="no text")
    ] = "",
) -> int:
    """Start a private service, explore designs of an example, and unpack and run the best one's package.

    The example is a classifier of digits, or with --text a small language model that is trained on the spot.
    """
    from rich.console import Console

    from penstock.profiling.cache import user_cache
    from penstock.services.cli.client import service_exit_codes
    from penstock.services.cli.watching import follow
    from penstock.services.client.blocking import Client
    from penstock.services.client.model_source import ModelSource
    from penstock.services.supervisor.borrowed import borrowed_stack

    show = Show()
    model = model or (LANGUAGE if text else EXAMPLE)
    trials = trials or (4 if text else 16)
    platform = platform or (CARD if text else PLATFORM)
    evidence = evidence or ("modelled" if text else "open-rtl")
    if model == EXAMPLE and not find_spec("sklearn"):  # sooner than the worker would find out
        raise ModuleNotFoundError(name="sklearn")
    source = ModelSource.parse(model)
    named = model.removeprefix(f"{IMPORT_ROOT / 'penstock'}{os.sep}")
    show.title("A private service: Postgres, Redis, API, worker")
    kept = os.environ.get("PENSTOCK_CACHE") or str(user_cache() / "penstock")  # a second demo builds nothing again
    own = {"PENSTOCK_CACHE": kept, "PENSTOCK_ALLOW_PYTHON_MODELS": "1"}
    with (
        service_exit_codes(),
        tools_being_made_ready(),
        borrowed_stack(**own) as stack,
        Client(stack.url, stack.token) as service,
    ):
        show.lines(f"{stack.url}, ready in {stack.seconds:.1f} s")
        show.title(f"Submit {named}: w8a8, {trials} trials on {platform}, the best measured ({evidence})")
        submitted = service.submit_model(source)
        options: dict[str, Any] = {"platform": platform, "evidence": evidence}
        if max_lanes or not text:
            options["max_lanes"] = max_lanes or 16
        run = service.submit_run(submitted.id, trials=trials, quantize="w8a8", **options)
        show.lines(f"run {run.id}, page {stack.url}{run.page}")
        show.title("Watch")
        finish(follow(service, run.id, Console(highlight=False), timeout=RUN_SECONDS))
        show.title("The trials; the arrow marks the chosen one")
        show.lines(*trial_lines(list(service.trials(run.id))))
        show.title("Fetch and unpack the package")
        folder = fetch(service, run.id, out)
        show.lines(str(folder))
    report = json.loads((folder / "report.json").read_text())
    show.title("The service is stopped. What the report says; in brackets where each figure comes from")
    show.lines(*design_lines(report))
    if evidence != "modelled":
        show.title("The best designs as the search had them, and as they were measured")
        show.lines(*measured_lines(report))
    show.title("Run the accelerator's emulation from the package alone")
    show.lines(*run_package(folder, "--self-test"))
    if report["bitstream"] and report["bitstream"]["path"]:
        show.title("The board itself, simulated pin by pin: the package's runtime talks to it over its serial port")
        show.lines(*run_package(folder, "--backend", "simulation", "--self-test"))
    if text:
        show.title("It writes text: the accelerator's emulation goes on, token by token")
        show.lines(*run_package(folder, "--generate", text, "--tokens", "60"))
        show.lines("and drawn:", *run_package(folder, "--generate", text, "--temperature", "0.7", "--seed", "1"))
    action = f"--generate '{text}' --temperature 0.8" if text else "--digit 17"
    show.title(f"Done. Try: python {folder / 'run.py'} {action}")
    equal = report["verify"]["csim"]["equal"] and (report["verify"]["rtl"] or {"ok": True})["ok"]
    return 0 if equal else 1


@contextlib.contextmanager
def tools_being_made_ready() -> Iterator[None]:
    """YoWASP's tools are translated at their first start, for a minute: meanwhile the search can go on."""
    from penstock.profiling.open_rtl.tools import find_ecppack, find_nextpnr_ecp5, find_yosys

    def start() -> None:
        for find in (find_yosys, find_nextpnr_ecp5, find_ecppack):
            with contextlib.suppress(PenstockError):  # what is missing is said by the step that needs it
                find()

    thread = threading.Thread(target=start, name="tools")
    thread.start()
    try:
        yield
    finally:
        thread.join()


class Show:
    """Numbered headings with the seconds so far, and indented lines below them."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._number = 0

    def title(self, text: str) -> None:
        self._number += 1
        print(f"\n{self._number}. {text}  ({time.monotonic() - self._began:.0f} s)", flush=True)

    def lines(self, *texts: str) -> None:
        for text in texts:
            print(f"   {text}", flush=True)


def finish(run: Any) -> None:
    """A run that did not succeed is an error, in the run's own words."""
    from penstock.services.cli.progress import error_line

    if run.state != "succeeded":
        raise PenstockError(code="run-failed", what=f"the run ended as {run.state}: {error_line(run)}")


def trial_lines(trials: list[Any]) -> list[str]:
    """Every trial with its figures and decisions, a line each."""
    lines = [f"  {'TRIAL':>5}  {'STATE':<10} {'LATENCY':>11} {'SHARE':>8}  {'EVIDENCE':<10} DECISIONS"]
    for trial in sorted(trials, key=lambda one: one.number):
        latency = _figure(trial.figures.get("latency_us"), "{:,.2f} µs")
        share = _figure(trial.figures.get("resource_share"), "{:.2%}")
        lines.append(
            f"{'→' if trial.chosen else ' '} {trial.number:>5}  {trial.state:<10} {latency:>11} {share:>8}  "
            f"{trial.evidence or '–':<10} {decisions(trial.params)}"
        )
    return lines


def decisions(params: dict[str, Any]) -> str:
    """The decisions of a trial on one line: the long names of the study shortened, boosts put together."""
    boosts = [str(value) for name, value in params.items() if name.startswith("boost.")]
    words = [
        f"{SHORT.get(name, name)} {_short(value)}"
        for name, value in sorted(params.items())
        if not name.startswith("boost.")
    ]
    return ", ".join(words + ([f"boost {'/'.join(boosts)}"] if boosts else []))


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


def run_package(folder: Path, *arguments: str) -> list[str]:
    """The package's own program, in a process that knows nothing of this project."""
    command = [sys.executable, str(folder.resolve() / "run.py"), *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as elsewhere:
        answer = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True)
    if answer.returncode != 0:
        last = (answer.stderr.strip() or answer.stdout.strip()).splitlines()[-1:]
        raise PenstockError(code="self-test-failed", what=f"the package failed: {' '.join(last)}")
    return answer.stdout.strip().splitlines()


def measured_lines(report: dict[str, Any]) -> list[str]:
    """Trials that a stronger rung looked at, in its order."""
    trials = [trial for trial in report["exploration"]["trials"] if trial["measured"]]
    lines: list[str] = []
    for trial in sorted(trials, key=lambda one: one["measured"][-1]["latency_cycles"]):
        found = trial["measured"][-1]
        lines.append(
            f"{'→' if trial['chosen'] else ' '} trial {trial['number']:>3}: {trial['latency_cycles']:,} cycles "
            f"[{trial['evidence']}], {found['latency_cycles']:,} cycles, a result every "
            f"{found['interval_cycles']:,} [{found['evidence']}]"
        )
    return lines or ["none: what they were asked for could not be measured here"]


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
        for name in RESOURCE_NAMES
        if resources[name]["used"] is not None
    ]
    lines.append(f"resources  {', '.join(shares)} [{resources['evidence']}]")
    return (
        lines
        + check_lines(report["verify"], report["accuracy"], report["language"])
        + bitstream_lines(report["bitstream"])
    )


def bitstream_lines(bitstream: dict[str, Any] | None) -> list[str]:
    """What place and route made of the design."""
    if bitstream is None:
        return []
    if bitstream["path"] is None:
        return [f"no bitstream for {bitstream['board']}: {bitstream['failure']}"]
    used = ", ".join(f"{use['used']:,} of {use['available']:,} {use['resource']}" for use in bitstream["usage"])
    return [
        f"bitstream {bitstream['path']} for {bitstream['board']}: runs at {bitstream['clock_mhz']:g} MHz, could at "
        f"{bitstream['fmax_mhz']:g} MHz [{bitstream['evidence']}]",
        f"  {used}",
        *(f"  {part}: {_taken(bitstream[part])}" for part in ("core", "shell") if bitstream[part]),
    ]


def _taken(part: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in part.items())


def check_lines(verify: dict[str, Any], accuracy: dict[str, Any] | None, language: dict[str, Any] | None) -> list[str]:
    """The comparisons: emitted C++ with the interpreter, and both with PyTorch's float model."""
    csim = verify["csim"]
    verdict = "equal bit for bit" if csim["equal"] else "NOT equal"
    if csim["equal"] is None:
        return [f"csim was not compared with the interpreter: {csim['note']}"]
    counted = f"{csim['bits_equal']:,} of {csim['values']:,} values"
    lines = [f"csim and interpreter are {verdict}: {counted} [{csim['evidence']}]"]
    if rtl := verify["rtl"]:
        verdict = "agree" if rtl["ok"] else "do NOT agree"
        counted = f"{rtl['bits_equal']:,} of {rtl['values']:,} values are the same bits in {rtl['samples']} runs"
        lines.append(f"SystemVerilog and interpreter {verdict}, {rtl['note']}: {counted} [{rtl['evidence']}]")
    if accuracy is not None:
        lines.append(
            f"accuracy on {accuracy['examples']} of {accuracy['dataset']}: float {accuracy['float_accuracy']:.2%}, "
            f"accelerator {accuracy['accelerator_accuracy']:.2%}, "
            f"same class {accuracy['agreement']:.2%} [{accuracy['evidence']}]"
        )
    if language is not None:
        lines.append(
            f"perplexity on {language['tokens']} tokens of {language['dataset']}: float "
            f"{language['float_perplexity']:.3f}, accelerator {language['accelerator_perplexity']:.3f}, "
            f"{language['loss']:+.2%} [{language['evidence']}]"
        )
    return lines


def _short(value: Any) -> str:
    return "x".join(str(part) for part in value) if isinstance(value, list) else str(value)


def _figure(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)
