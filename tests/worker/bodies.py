"""Step bodies for tests of the core: loaded by real workers through PENSTOCK_STEP_MODULES."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.db.schema.records import NewStep, TrialSummary
from penstock.profiling.tool_runner import ToolCommand
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, RetryLaterError, StepResult


def note(context: StepContext, word: str) -> None:
    """Leave a trace of an execution, one line each, outside of the step's own folder."""
    with (context.settings.home / f"{context.payload.get('trace', 'trace')}.txt").open("a") as file:
        file.write(f"{context.step.key} {word}\n")


@step_kind("echo")
def echo(context: StepContext) -> StepResult:
    note(context, "ran")
    return StepResult({"said": context.payload.get("say")})


@step_kind("make", reuse_key=lambda context: {"say": context.payload["say"]})
def make(context: StepContext) -> StepResult:
    note(context, "ran")
    folder = context.folder / "tree"
    folder.mkdir()
    (folder / "a.txt").write_text(context.payload["say"])
    said = context.payload["say"].encode()
    return StepResult(
        {"length": len(said)}, {"said": Output(said, "text/plain"), "tree": Output(folder, "application/x-tar")}
    )


@step_kind("read")
def read(context: StepContext) -> StepResult:
    tree = context.input_tree("make", "tree")
    return StepResult({
        "file": context.input_file("make", "said").read_text(),
        "tree": (tree / "a.txt").read_text(),
        "length": context.result_of("make")["length"],
    })  # fmt: skip


@step_kind("sleep")
def sleep(context: StepContext) -> StepResult:
    note(context, "started")
    end = time.monotonic() + context.payload["seconds"]
    while time.monotonic() < end:
        context.check()
        time.sleep(0.02)
    note(context, "ended")
    return StepResult()


@step_kind("deaf")
def deaf(context: StepContext) -> StepResult:
    """Looks at nothing, as a long call into a C library."""
    note(context, str(os.getpid()))
    time.sleep(1000)
    return StepResult()


@step_kind("fan")
def fan(context: StepContext) -> StepResult:
    kind, count = context.payload["parts"], context.payload["count"]
    payload = dict(context.payload.get("each", {}))
    return StepResult(new_steps=tuple(
        NewStep(kind, f"part/{i}", "explore", payload | {"number": i}, needed_by=("sum",)) for i in range(count)
    ))  # fmt: skip


@step_kind("trial")
def trial(context: StepContext) -> StepResult:
    note(context, "ran")
    number = context.payload["number"]
    end = time.monotonic() + context.payload.get("seconds", 0)
    while time.monotonic() < end:
        context.progress(None, "measuring")
        time.sleep(0.02)
    summary = TrialSummary(number, "complete", {"x": number}, {"latency": float(number)}, "modelled", None, 0.1)
    return StepResult(trial=summary)


@step_kind("crash")
def crash(context: StepContext) -> StepResult:
    note(context, "ran")
    if context.payload.get("calm"):
        return StepResult()
    os.kill(os.getpid(), signal.SIGSEGV)  # as native code does
    raise AssertionError("not reached")


@step_kind("fill")
def fill(context: StepContext) -> StepResult:
    """Needs more room than there is until somebody says otherwise, and reads what it could not write whole."""
    if not (context.settings.home / "room").exists():
        with contextlib.suppress(OSError), (context.folder / "big.json").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 18))
        json.loads((context.folder / "big.json").read_bytes())
    return StepResult()


@step_kind("wrong")
def wrong(context: StepContext) -> StepResult:
    note(context, "ran")
    raise PenstockError(code="bad-model", what="it is not a model", where="x.py", hint="submit another")


@step_kind("flaky")
def flaky(context: StepContext) -> StepResult:
    """Fails by an unforeseen error until the attempt that its payload names."""
    note(context, "ran")
    if context.step.attempt < context.payload["good_from"]:
        raise RuntimeError("fell over")
    return StepResult()


@step_kind("licence")
def licence(context: StepContext) -> StepResult:
    note(context, "ran")
    if context.step.fence < 5:
        raise RetryLaterError("licence-taken", "all licences are taken", 0.2)
    return StepResult()


@step_kind("tool")
def tool(context: StepContext) -> StepResult:
    """A tool that traps TERM and forks a grandchild in a session of its own."""
    place = Path(context.payload["place"])
    script = """
        trap '' TERM
        setsid sh -c 'trap "" TERM; touch grandchild; sleep 1000' &
        touch ready
        while :; do sleep 1; done
    """
    result = context.tools.run(ToolCommand(("sh", "-c", script), place, place / "logs", grace=0.5))
    if not result.ok:
        raise result.error("tool")
    return StepResult()


@step_kind("make_part")
def make_part(context: StepContext) -> StepResult:
    """Hands on what it read of another host; from some number on, not before a file says so."""
    said = context.input_file("make", "said").read_bytes()
    held = context.payload["number"] >= context.payload["held_from"]
    while held and not Path(context.payload["until"]).exists():
        context.check()
        time.sleep(0.02)
    return StepResult(outputs={"part": Output(said + str(context.payload["number"]).encode(), "text/plain")})


@step_kind("read_parts")
def read_parts(context: StepContext) -> StepResult:
    for number in range(context.payload["count"]):
        assert context.input_file(f"part/{number}", "part").read_text().endswith(str(number))
    return StepResult()
