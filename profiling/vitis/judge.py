"""How a tool's run ended, for the user: by its log first, by how its process ended where the log does not say."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from penstock.profiling.protocol import FailureKind, ProfilingError
from penstock.profiling.tool_runner import ToolOutcome, ToolResult
from penstock.profiling.vitis.known import known_trouble
from penstock.profiling.vitis.log import ToolStep, ToolStepOutcome, judge_log
from penstock.profiling.vitis.reading import LogWindow, read_log
from penstock.profiling.vitis.watch import Watch

_STARTS = re.compile(r"\[HLS 200-1510\] Running: (?:csim|csynth|cosim|export)_design")
_ENDINGS: dict[ToolOutcome, FailureKind] = {
    ToolOutcome.CANCELLED: "cancelled",
    ToolOutcome.TIMEOUT: "timeout",
    ToolOutcome.NOT_FOUND: "tool-missing",
    ToolOutcome.NOT_STARTED: "tool-missing",
    ToolOutcome.LOST: "tool-failed",
}
_SHELL_SAYS = re.compile(r"Killed|\S*: line \d+:\s+\d+ Killed.*")
_KILLED = "one of the tool's processes was killed from outside, as the kernel does when memory runs out"
_HINTS: dict[FailureKind, str] = {
    "cancelled": "",
    "timeout": "raise the time limit or make the job smaller",
    "tool-missing": "`penstock doctor` says what is there",
    "disk-full": "raise the quota, free space in the work folder, or set it to another disk",
    "out-of-memory": "give the worker more memory, or make the kernel smaller",
    "tool-failed": "look at the end of the tool's log",
}


def check_run(
    result: ToolResult, steps: Sequence[ToolStep], watch: Watch, source: str | None = None
) -> list[ToolStepOutcome]:
    """The outcomes of a run's steps, all ok; raises what is not."""
    log = whole_log(result)
    where = steps[0] if len(steps) == 1 else ", ".join(steps)
    if watch.over_quota:
        raise _error("disk-full", watch.over_quota, where, log)
    if result.outcome in _ENDINGS:
        raise _error(_ENDINGS[result.outcome], f"the tool {result.describe()}", where, log)
    if result.over_memory:
        raise _error("out-of-memory", f"the tool {result.describe()}", where, log)
    if os.strerror(errno.ENOSPC) in result.note:
        raise _error("disk-full", result.note, where, log)
    outcomes: list[ToolStepOutcome] = []
    for step, window in zip(steps, _windows(log, len(steps)), strict=True):
        outcome = judge_log(step, window, source)
        killed = result.killed_inside or _SHELL_SAYS.fullmatch(outcome.message) is not None
        if outcome.kind in ("tool-failed", "out-of-memory") and killed:
            outcome = replace(outcome, kind="out-of-memory", message=_KILLED)
        elif outcome.kind == "tool-failed" and result.outcome is ToolOutcome.OUT_OF_MEMORY:
            outcome = replace(outcome, kind="out-of-memory")
        if not outcome.ok:
            raise _explained(outcome.error(), window)
        outcomes.append(outcome)
    return outcomes


def _explained(error: ProfilingError, log: LogWindow) -> ProfilingError:
    """With what helps, where the log shows a known trouble of the installation rather than of the design."""
    if error.kind not in ("tool-failed", "source-error", "csim-mismatch", "report-missing"):
        return error
    if not (hint := known_trouble(log.text)):
        return error
    return ProfilingError("tool-failed", what=error.what, where=error.where, hint=hint, log_tail=error.log_tail)


def whole_log(result: ToolResult) -> LogWindow:
    """What the tool wrote to stdout and, behind it, what it wrote to stderr."""
    out, err = read_log_or_empty(result.stdout), read_log_or_empty(result.stderr)
    if not err.text.strip():
        return out
    return LogWindow(out.head, f"{out.tail}\n{err.text}" if out.tail else f"\n{err.text}", out.skipped + err.skipped)


def read_log_or_empty(path: Path) -> LogWindow:
    """A tool that could not be started has no log."""
    return read_log(path) if path.exists() else LogWindow("", "", 0)


def _windows(log: LogWindow, count: int) -> list[LogWindow]:
    """The log of each step of a script, from where the tool says that it begins; of a cut log, the whole for each."""
    if count == 1 or log.skipped:
        return [log] * count
    text = log.text
    starts = [found.start() for found in _STARTS.finditer(text)][:count]
    bounds = [0, *starts[1:], len(text)]
    parts = [text[begin:end] for begin, end in pairwise(bounds)]
    parts += [""] * (count - len(parts))
    return [LogWindow(part, "", 0) for part in parts]


def _error(kind: FailureKind, what: str, where: str, log: LogWindow) -> ProfilingError:
    return ProfilingError(kind, what=what, where=where, hint=_HINTS[kind], log_tail=log.last_lines())
