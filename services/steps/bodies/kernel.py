"""A C++ kernel as a model: read behind the fence, its sources tried there, the best one held against what was sent.

Nothing of a kernel is executed but by the last of these three commands, which sees a C++ compiler and has a fence of
its own; where a service executes nobody's code it is left out, which the report says.
"""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import load_platform
from penstock.db.schema.records import Json, MadeTrial, TrialSummary
from penstock.profiling.csim import find_compiler
from penstock.profiling.kernels.analysis import Analysis
from penstock.profiling.kernels.explore.limits import TRIALS
from penstock.profiling.kernels.page import comparison_page
from penstock.profiling.tool_runner import Cancellable
from penstock.services.jobs.kernels import figures_of, limits_of, objective_of, params_of
from penstock.services.run_options import RunOptions
from penstock.services.run_summary import RunSummary
from penstock.services.step_kinds import IMPORT, KERNEL, TRIAL, StepKey
from penstock.services.steps.bodies.behind import Behind, logs_of
from penstock.services.steps.bodies.behind import limits_of as fence_limits
from penstock.services.steps.context import StepContext
from penstock.services.steps.fence.plan import COMPILER, MODEL, PROFILING
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, StepResult
from penstock.services.steps.version import evaluation_version

ANALYSIS, IMPROVED, VALUES, RECORD = "analysis.json", "improved.json", "values.json", "kernel.json"
_PROGRAM = "penstock.profiling.kernels.explore"
_JSON = "application/json"
_CPP = "text/plain; charset=utf-8"
_EVERY_SECONDS = 1.0
_LONGER = 10
"""So many times an import's share of time has an exploration: it reads hundreds of sources."""
_SHARE = 0.7
"""After so much of it no other source is tried."""
_WORDS = {
    "look": "the look at the kernel", "improve": "the exploration of the kernel",
    "compare": "the comparison of both sources",
}  # fmt: skip
_COUNTS = ("compared", "different")
MOST_ANSWER_BYTES = 64 << 20
_MOST_CODE = 200_000
"""Characters of a source that its page shows; the package has all of it."""


def look_at_kernel(context: StepContext) -> StepResult:
    """The import of a kernel: what `penstock analyse` says of it, or the errors of its source with their places."""
    found = _run(context, "look", (ANALYSIS,))
    summary = RunSummary(trials_planned=_trials(context))
    content = json.dumps(found[ANALYSIS], indent=1).encode()
    return StepResult(
        {"top": context.model.details["function"]}, {ANALYSIS: Output(content, _JSON)}, run_summary=summary
    )


def target_of(context: StepContext) -> Json:
    """What a look at a kernel depends on beside the kernel."""
    return {"part": _part(context), "clock": _clock(context)}


@step_kind(KERNEL)
def improve_kernel(context: StepContext) -> StepResult:
    recorder = _Recorder(context)
    context.progress(None, "trying sources")
    asked = {
        "limits": recorder.limits, "objective": objective_of(context.options.get("objectives") or (), "objectives"),
        "trials": _trials(context), "seconds": _SHARE * _LONGER * context.settings.import_seconds,
    }  # fmt: skip
    found = _run(context, "improve", (IMPROVED,), asked, watch=recorder)[IMPROVED]
    recorder.flush()
    chosen, after = int(found["chosen"]), found["after"]
    values = _values(context, found)
    record = {**found["said"], "trials": recorder.count, "chosen": chosen, "values": values}
    summary = _summary(context, recorder, after, chosen).model_copy(update={"why": _why(context, found, values)})
    main = str(context.model.details["file"])
    outputs = {
        main: Output(found["text"].encode(), _CPP),
        IMPROVED: Output(json.dumps({"exploration": record, "after": after}, indent=1).encode(), _JSON),
    }
    return StepResult(summary.written(), outputs, run_summary=summary)


def package_kernel(context: StepContext) -> StepResult:
    """One archive: the new source with its headers, what was sent, both analyses, and a page."""
    before = json.loads(context.input_file(IMPORT, ANALYSIS).read_bytes())
    improved = json.loads(context.input_file(KERNEL, IMPROVED).read_bytes())
    details, folder = context.model.details, context.folder / "sent"
    main = str(details["file"])
    context.store.extract_tree(str(context.model.sha256), folder)
    text = context.input_file(KERNEL, main).read_text()
    sent = (folder / main).read_text("utf-8", "replace")
    record = {
        "file": main, "before": before, **improved, "platform": context.options["platform"],
        "sent": sent[:_MOST_CODE], "source": text[:_MOST_CODE],
    }  # fmt: skip
    page = comparison_page(Analysis.read(before), Analysis.read(improved["after"]), improved["exploration"]).encode()
    files = {
        f"sent/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    files |= {name.replace("sent/", "kernel/", 1): content for name, content in files.items()}
    content = json.dumps(record, indent=1).encode()
    files |= {f"kernel/{main}": text.encode(), RECORD: content, "report.html": page}
    name = f"{details['function']}.penstock.zip"
    summary = RunSummary(package=name)
    outputs = {
        name: Output(_zipped(files), "application/zip"), RECORD: Output(content, _JSON),
        "report.html": Output(page, "text/html; charset=utf-8"),
    }  # fmt: skip
    return StepResult(summary.written(), outputs, run_summary=summary)


def _zipped(files: Mapping[str, bytes]) -> bytes:
    """The same bytes for the same files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), files[name], zipfile.ZIP_DEFLATED)
    return out.getvalue()


class _Recorder:
    """Reads what the process behind the fence says of the sources that it tries, and notes each as a trial."""

    def __init__(self, context: StepContext) -> None:
        self.context = context
        self.platform = load_platform(RunOptions.stored(context.options).platform)
        self.limits = limits_of(context.options.get("limits") or (), self.platform)
        self.path = logs_of(context, "improve") / "stderr.log"
        self.count, self.best, self.read = 0, None, 0
        self.figures: dict[int, dict[str, float]] = {}
        self._written = 0.0

    def __call__(self, process: Cancellable) -> None:
        if time.monotonic() - self._written >= _EVERY_SECONDS:
            self._written = time.monotonic()
            self.flush()

    def flush(self) -> None:
        if not self.path.is_file():
            return
        with self.path.open("rb") as file:
            file.seek(self.read)
            said = file.read()
        whole = said[: said.rfind(b"\n") + 1]
        self.read += len(whole)
        made = dict(filter(None, map(self._made, whole.splitlines())))
        if not made:
            return
        self.count += len(made)
        words = f"{self.count} sources tried" + (f", the best takes {self.best:,} cycles" if self.best else "")
        self.context.record_trials(made, words)

    def _made(self, line: bytes) -> tuple[str, MadeTrial] | None:
        """A trial, if the line is about one."""
        try:
            said: Any = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(said, dict) or not isinstance(said.get("number"), int):
            return None
        tried = cast("dict[str, Any]", said)
        number, latency = int(tried["number"]), tried["latency"]
        key = str(StepKey(TRIAL, number))
        params = params_of(tried["nests"], int(tried["tasks"]), tried["changes"]) if number else {}
        design = {name: tried[name] for name in ("nests", "tasks", "changes") if tried[name]} | {
            "source": tried["text"]
        }
        figures: dict[str, float] = {}
        error = None
        if isinstance(latency, int):
            clock = self.platform.clock_mhz
            figures = figures_of(latency, tried["interval"], tried["area"], self.limits, clock)
            self.figures[number] = figures
            if figures["resource_share"] <= 1 and (self.best is None or latency < self.best):
                self.best = latency
        else:
            error = {"code": "refused", "what": str(tried["refused"])[:2000] or "it has no figures"}
        fits = figures.get("resource_share", 0.0) <= 1
        summary = TrialSummary(
            number=number, state="complete" if fits else "infeasible", params=params, figures=figures,
            evidence="simulated", design=design, seconds=float(tried["seconds"]), version=evaluation_version(),
        )  # fmt: skip
        constraints = {name: figures[f"{name}_share"] - 1 for name in self.limits} if figures else {}
        words = "This is the source as it was sent." if not number else ""
        return key, MadeTrial(summary, {"explanation": words, "constraints": constraints}, error)


def _summary(context: StepContext, recorder: _Recorder, after: Mapping[str, Any], chosen: int) -> RunSummary:
    """The best source as a run's result. Cycles are simulated on schedules and area that are modelled."""
    figures = recorder.figures.get(chosen)
    if figures is None or after["latency"] is None:
        raise PenstockError(
            code="deadlock", what=str(after["deadlock"] or "no source came to figures"), where=context.model.source,
            hint="see `penstock analyse`: a kernel that stops for ever has no design",
        )  # fmt: skip
    bits = sum(int(fifo["depth"]) * int(fifo["bits"]) * int(fifo["lanes"]) for fifo in after["fifos"])
    found = RunSummary(
        chosen_trial=chosen, evidence="simulated", latency_cycles=after["latency"],
        latency_us=after["latency"] / recorder.platform.clock_mhz, interval_cycles=after["interval"],
        resource_share=figures["resource_share"], share_evidence="modelled", trials=recorder.count,
        trials_planned=recorder.count,
    )  # fmt: skip
    return found.model_copy(update={"fifo_bits": bits}) if after["fifos"] else found


def _why(context: StepContext, found: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    """What the new source is beside the one that was sent, in sentences."""
    before = json.loads(context.input_file(IMPORT, ANALYSIS).read_bytes())["latency"]
    after = found["after"]["latency"]
    if not found["chosen"]:
        told = "No source that was tried is better than the one that was sent."
    elif before is None:
        told = f"As it was sent it stops for ever; now it takes {after:,} cycles."
    elif before == after:
        told = f"It takes as long as it was sent, {after:,} cycles; its other figures stand with the design."
    else:
        told = f"{before / max(1, after):,.3g} times as fast as it was sent: {before:,} cycles then, {after:,} now."
    same = values.get("not")
    if same:
        return [told, f"Whether it computes the same was not tried: {same}."]
    words = f", {values['compared']:,} words" if values["compared"] else ""
    return [told, f"It computes the same: {values['how']}{words}."] if found["chosen"] else [told]


def _values(context: StepContext, found: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the new source computes what the old one did, and how that is known."""
    if found["said"]["way"] == "pragmas":
        return {"how": "only pragmas were changed", "compared": 0, "different": 0}
    if not found["chosen"]:
        return {"how": "it is the source that was sent", "compared": 0, "different": 0}
    if not context.settings.allow_python_models:
        return {"how": "", "compared": 0, "different": 0, "not": "this service executes nobody's code"}
    context.progress(None, "compiling and running both sources")
    said = _run(context, "compare", (VALUES,), text=found["text"])[VALUES]
    compared, different = int(said["compared"]), int(said["different"])
    if different:
        raise PenstockError(
            code="verification-failed", what=f"the new source leaves {different:,} of {compared:,} words otherwise",
            where=context.model.source, limit="both were compiled and run on the same random numbers",
            hint="this is a bug in Penstock; please report it with the kernel",
        )  # fmt: skip
    return {
        "how": "both compiled and run on the same random numbers, bit for bit",
        "compared": compared,
        "different": 0,
    }


def _run(
    context: StepContext, do: str, outputs: tuple[str, ...], more: Mapping[str, Any] | None = None, *,
    text: str | None = None, watch: _Recorder | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One command behind the fence; `text` is laid beside the sources for it."""
    details = context.model.details
    folder = context.folder / f"source-{do}"
    context.store.extract_tree(str(context.model.sha256), folder)
    other = "penstock-other.txt"
    if text is not None:
        (folder / other).write_text(text)
    seen = str(folder) if context.settings.fence == "off" else MODEL
    request = {
        "do": do, "main": f"{seen}/{details['file']}", "top": details["function"], "clock_mhz": _clock(context),
        "part": _part(context), "other": f"{seen}/{other}", **(more or {}),
    }  # fmt: skip
    behind = Behind(
        do, ("-m", _PROGRAM, json.dumps(request)), outputs, folder, _WORDS[do],
        fence_limits(context.settings, _LONGER if do == "improve" else 1), (COMPILER, PROFILING),
        find_compiler() if text is not None else "",
    )  # fmt: skip
    out = behind.run(context, watch)
    source, counts = context.model.source, _COUNTS if do == "compare" else ()
    return {name: read_answer(out / name, _WORDS[do], source, counts) for name in outputs}


def read_answer(path: Path, subject: str, where: str, counts: Sequence[str] = ()) -> dict[str, Any]:
    """What a command gave out. A comparison executes the kernel, which may leave anything in its place."""
    why, said = "", cast("Any", None)
    if path.stat().st_size > MOST_ANSWER_BYTES:
        why = f"it has {path.stat().st_size:,} bytes"
    else:
        try:
            said = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            why = "it is no JSON"
    if not why and not isinstance(said, dict):
        why = "it is no object"
    why = why or next((f"{name} is no count" for name in counts if not isinstance(said.get(name), int)), "")
    if why:
        raise PenstockError(
            code="kernel-answer", what=f"{subject} left something else than its answer: {why}", where=where,
            limit=f"an object of JSON, at most {MOST_ANSWER_BYTES >> 20} MiB",
            hint="a kernel computes from its arguments and writes to them alone",
        )  # fmt: skip
    return cast("dict[str, Any]", said)


def _trials(context: StepContext) -> int:
    return RunOptions.stored(context.options).trials or TRIALS


def _part(context: StepContext) -> str:
    return load_platform(RunOptions.stored(context.options).platform).part


def _clock(context: StepContext) -> float:
    return load_platform(RunOptions.stored(context.options).platform).clock_mhz
