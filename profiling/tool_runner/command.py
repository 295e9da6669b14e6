"""What to run and how it ended, as plain records."""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from penstock.compiler.errors import PenstockError

_MEMORY_WORDS = re.compile(
    r"bad_alloc|MemoryError|[Cc]annot allocate memory|[Oo]ut of memory|virtual memory exhausted|ENOMEM"
)


class ToolOutcome(StrEnum):
    OK = "ok"
    EXIT = "exit"  # ended by itself with an exit code other than 0
    SIGNAL = "signal"  # ended by a signal that did not come from us
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    OUT_OF_MEMORY = "out-of-memory"  # suspected: killed from outside, or it said so
    NOT_FOUND = "not-found"
    NOT_STARTED = "not-started"
    LOST = "lost"  # the supervisor itself was killed: how the tool ended is not known


@dataclass(frozen=True)
class ToolCommand:
    """One run of a tool. `env` is the whole environment: nothing is inherited, so no secret leaks.

    `logs` gets stdout.log and stderr.log, each at most `log_limit` bytes: the first and the last half of it.
    `memory_limit` is of address space for each process of the tool (RLIMIT_AS), `tree_memory_limit` of what all of them
    hold together, `tree_cpu_limit` of the seconds that they compute together; with that, the time in which they waited
    for a processor is added to `timeout`, up to ten times that. `user` is a (uid, gid) to become, for root only.
    `plain_text`: somebody else decides what it writes, and the log gets ASCII without control characters.
    Folders may be relative to the caller's: they are made absolute, since tools are supervised from elsewhere.
    """

    argv: tuple[str, ...]
    folder: Path
    logs: Path
    env: Mapping[str, str] = field(default_factory=lambda: clean_environment())
    timeout: float | None = None
    memory_limit: int | None = None
    tree_memory_limit: int | None = None
    tree_cpu_limit: float | None = None
    log_limit: int = 16 << 20
    grace: float = 3.0
    user: tuple[int, int] | None = None
    plain_text: bool = False

    def __post_init__(self) -> None:
        for name in ("folder", "logs"):
            object.__setattr__(self, name, getattr(self, name).absolute())


@dataclass(frozen=True)
class ToolResult:
    outcome: ToolOutcome
    exit_code: int | None
    signal: int | None
    seconds: float
    cpu_seconds: float | None
    peak_rss: int | None
    stdout: Path
    stderr: Path
    tail: str
    """The end of what the tool wrote to stdout and stderr, in order of arrival."""
    left_behind: int
    """Processes that still ran when the tool's first one had ended; they were killed."""
    note: str = ""
    killed_inside: bool = False
    """One of its processes was killed from outside, whatever the first one's exit code says."""
    over_memory: bool = False
    """Its processes together held more than they may, and were killed for it."""

    @property
    def ok(self) -> bool:
        return self.outcome is ToolOutcome.OK

    def describe(self) -> str:
        """How it ended, in words."""
        if self.outcome is ToolOutcome.EXIT:
            words = f"ended with exit code {self.exit_code}"
        elif self.outcome is ToolOutcome.SIGNAL:
            words = f"was ended by {signal_name(self.signal)}"
        elif self.over_memory:
            words = "was stopped at its memory limit"
        elif self.outcome is ToolOutcome.OUT_OF_MEMORY:
            words = "ran out of memory, as it seems"
        else:
            words = _WORDS[self.outcome]
        return f"{words} after {self.seconds:.1f} s" + (f" ({self.note})" if self.note else "")

    def error(self, tool: str, hint: str = "") -> PenstockError:
        """This failure as an error for the user, with the last lines of the log."""
        last = "\n".join(self.tail.strip().splitlines()[-12:])
        return PenstockError(
            code=f"tool-{self.outcome}", what=f"{tool} {self.describe()}", where=tool,
            limit=last, hint=hint or _HINTS.get(self.outcome, ""),
        )  # fmt: skip


_WORDS = {
    ToolOutcome.OK: "succeeded",
    ToolOutcome.TIMEOUT: "was stopped at its time limit",
    ToolOutcome.CANCELLED: "was cancelled",
    ToolOutcome.NOT_FOUND: "was not found",
    ToolOutcome.NOT_STARTED: "could not be started",
    ToolOutcome.LOST: "was lost: its supervisor was killed",
}
_HINTS = {
    ToolOutcome.NOT_FOUND: "install it, or put it on PATH",
    ToolOutcome.TIMEOUT: "raise the time limit or make the job smaller",
    ToolOutcome.OUT_OF_MEMORY: "give the worker more memory or make the job smaller",
}


def clean_environment(**more: str) -> dict[str, str]:
    """What a tool needs to run at all and nothing that could be a secret."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "TZ") if name in os.environ}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": "/nonexistent"} | kept | more


def result_from(report: Mapping[str, Any], stdout: Path, stderr: Path) -> ToolResult:
    """Read the supervisor's report."""
    status = report["wait_status"]
    code = os.waitstatus_to_exitcode(status) if status is not None else None
    outcome, note = _judge(report, code)
    over_memory = report["ended"] == "memory"
    if over_memory:
        held, limit = report["tree_bytes"] >> 20, report["tree_memory_limit"] >> 20
        note = f"its processes held {held} MiB together; at most {limit} are allowed"
    if report["ended"] == "cpu":
        note = f"its processes computed for {report['tree_cpu']:.0f} s together"
    if report["unkillable"]:
        note = f"{report['unkillable']} processes could not be killed"
    if report["log_errno"]:
        note = f"its log could not be written: {os.strerror(report['log_errno'])}"
    return ToolResult(
        outcome=outcome,
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        seconds=report["seconds"],
        cpu_seconds=report["cpu_seconds"],
        peak_rss=report["peak_rss"],
        stdout=stdout,
        stderr=stderr,
        tail=report["tail"],
        left_behind=report["left_behind"],
        note=note,
        killed_inside=bool(report["foreign_kill"]),
        over_memory=over_memory,
    )


def _judge(report: Mapping[str, Any], code: int | None) -> tuple[ToolOutcome, str]:
    failed_exec = report["exec_errno"]
    if failed_exec in (errno.ENOENT, errno.ENOTDIR):
        return ToolOutcome.NOT_FOUND, ""
    if failed_exec is not None:
        return ToolOutcome.NOT_STARTED, os.strerror(failed_exec)
    if report["ended"] == "cpu":
        return ToolOutcome.TIMEOUT, ""
    if report["ended"] in ("timeout", "cancelled"):
        return ToolOutcome(report["ended"]), ""
    if report["ended"] == "memory":
        return ToolOutcome.OUT_OF_MEMORY, ""
    if code == 0:
        return ToolOutcome.OK, ""
    if code == -signal.SIGKILL or report["foreign_kill"]:
        return ToolOutcome.OUT_OF_MEMORY, "one of its processes was killed from outside"
    if _MEMORY_WORDS.search(report["tail"]):
        return ToolOutcome.OUT_OF_MEMORY, "it says so in its log"
    return (ToolOutcome.EXIT if code is not None and code > 0 else ToolOutcome.SIGNAL), ""


def signal_name(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"
