"""How a step of the tools ended, by what its log says. Exit codes are not believed: failed runs return 0."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from penstock.profiling.protocol import FailureKind, ProfilingError
from penstock.profiling.vitis.deadlock import ReportedDeadlock, find_deadlock
from penstock.profiling.vitis.reading import LogWindow

ToolStep = Literal["csim", "csynth", "cosim", "export", "implement", "compile", "link", "package"]
STEPS: tuple[ToolStep, ...] = get_args(ToolStep)
LogEnding = Literal["ok"] | FailureKind

# What a step prints when it has done its work.
_DONE: dict[ToolStep, str] = {
    "csim": r"CSim done with 0 errors",
    "csynth": r"\[HLS 200-789\]|\[HLS 200-790\]|Finished Command csynth_design",
    "cosim": r"co-simulation finished: PASS",
    "export": r"Finished Command export_design|\[IMPL 213-8\]|\[HLS 200-802\]",
    "implement": r"Finished Command export_design|Implementation completed successfully|route_design completed",
    "compile": r"\[v\+\+ 60-791\]|\[v\+\+ 60-586\]|\[vitis-run 60-791\]",
    "link": r"\[v\+\+ 60-586\]|\[v\+\+ 60-791\]",
    "package": r"\[v\+\+ 60-2256\]|\[v\+\+ 60-586\]|\[v\+\+ 60-791\]",
}
_ERROR = re.compile(r"^\s*ERROR: \[([\w+ -]{1,40}?)\][ \t]*(.*)$", re.M)
_PLACE = re.compile(r"([\w./+-]{1,300}\.(?:cpp|cc|cxx|c|hpp|hh|h)):(\d{1,7})(?::\d{1,5})?")

_DISK = re.compile(r"No space left on device|[Dd]isk quota exceeded|disk is full|not enough (?:disk )?space", re.I)
_MEMORY = re.compile(
    r"Out of memory|bad_alloc|Cannot allocate memory|virtual memory exhausted|MemoryError|ENOMEM"
    r"|unable to (?:re)?alloc|Killed process \d+|^\S*: line \d+:\s+\d+ Killed|^Killed$|terminated by signal 9"
    r"|child killed|signal SIGKILL|Abnormal program termination \(9\)",
    re.I | re.M,
)
_LICENCE = re.compile(
    r"\[Common 17-345\]|valid licen[sc]e was not found|licen[sc]e (?:checkout|check-out) (?:failed|denied)"
    r"|failed to (?:get|check ?out|obtain|acquire)[^\n]{0,40}licen[sc]e|no such feature exists"
    r"|lost (?:the |connection to (?:the )?)?licen[sc]e"
    r"|licen[sc]e[^\n]{0,60}(?:has expired|not available|not found|is invalid|was lost|in use|could not be)"
    r"|cannot connect to licen[sc]e server|licensed number of users already reached|no (?:valid )?licen[sc]e",
    re.I,
)
# A tool that does without one feature because it has another has not failed for a licence.
_SPARED = re.compile(
    r"^WARNING: \[[\w+]{1,10} 17-3\d\d\] Failed to get [^\n]*\n"
    r"(?=(?:[^\n]*\n){0,6}?(?:Feature available|INFO: \[Common 17-349\]))",
    re.M,
)
_TIMING = re.compile(
    r"did not meet timing|timing constraints are not met|\[Route 35-39\]|failed to meet timing|Timing NOT met", re.I
)
# v++ slows a kernel clock that misses its period, unless the platform fixes it; the bitstream is good.
_SLOWED = re.compile(r"frequency is being automatically changed to [\d.]{1,12} ?MHz", re.I)
_TARGET = re.compile(
    r"[Pp]art '?[\w-]{3,80}'? (?:is not installed|not found|is not (?:valid|supported|available)|does not exist)"
    r"|(?:failed to find|could not find|cannot find|unable to find)[^\n]{0,60}(?:platform|device)"
    r"|[Pp]latform[^\n]{0,200}(?:not found|does not exist|is not valid|is not supported|non-accelerated)"
    r"|Failed to open platform|No valid platform was found"
    r"|[Cc]lock period[^\n]{0,60}(?:invalid|not valid|out of range)",
    re.I,
)
_COMMAND = re.compile(r"invalid command name|unrecogni[sz]ed (?:option|command)|unknown option|bad option", re.I)
_CSIM = re.compile(r"'csim_design' failed: nonzero return value|@E Simulation failed|CSim failed with errors", re.I)
_CSIM_BUILD = re.compile(r"'csim_design' failed: compilation error", re.I)
_COSIM = re.compile(r"co-simulation finished: FAIL|\[COSIM 212-(?:4|303|344|361|359)\]|C TB post check failed")
_SOURCE = re.compile(
    r"\[(?:HLS|v\+\+) (?:200-1715|200-70|200-970|200-1471|20[789]-\d+|21[0-9]-\d+)\]|Pre-synthesis failed"
    r"|\[SYNCHK \d+-\d+\]"
)

_HINTS: dict[FailureKind, str] = {
    "licence": "it is tried again later; check XILINXD_LICENSE_FILE and the licence server",
    "disk-full": "free space in the work folder, or set it to another disk",
    "out-of-memory": "give the worker more memory, or make the kernel smaller",
    "deadlock": "make the FIFOs of the cycle deeper",
    "timing-not-met": "ask for a slower clock, or unroll less",
    "bad-target": "check platform, part and clock against what the tool has installed and its licence covers",
    "csim-mismatch": "the C++ does not compute what the test bench expects: report this design",
    "cosim-failed": "the RTL does not do what the C++ does: look at the simulation's log",
    "source-error": "report this design: generated C++ must synthesise",
    "timeout": "raise the time limit, or make the kernel smaller",
}


@dataclass(frozen=True)
class SourcePlace:
    """A place in generated C++, and the layer that it belongs to."""

    file: str
    line: int
    layer: str | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" (layer {self.layer})" if self.layer else "")


@dataclass(frozen=True)
class ToolStepOutcome:
    """`kind` "ok" means that the log says so; whether the report is there is for the caller to see."""

    step: ToolStep
    kind: LogEnding
    message: str
    codes: tuple[str, ...]
    place: SourcePlace | None
    deadlock: ReportedDeadlock | None
    log_tail: str

    @property
    def ok(self) -> bool:
        return self.kind == "ok"

    @property
    def retry(self) -> bool:
        """Whether the same job may succeed later: that attempt does not count."""
        return self.kind == "licence"

    def error(self) -> ProfilingError:
        """The failure for the user."""
        assert self.kind != "ok", "a step that succeeded has no error"
        where = f"{self.step}, {self.place}" if self.place else self.step
        return ProfilingError(
            self.kind, what=self.message, where=where, hint=_HINTS.get(self.kind, "look at the end of the tool's log"),
            log_tail=self.log_tail,
        )  # fmt: skip


def judge_log(step: ToolStep, log: LogWindow, source: str | None = None) -> ToolStepOutcome:
    """What a log says of its step. `source` is the C++ that was synthesised, to name the layer of an error."""
    text = log.text
    errors = [(code, message.strip()[:2000]) for code, message in _ERROR.findall(text)]
    codes = tuple(dict.fromkeys(code for code, _ in errors))[:16]
    deadlock = find_deadlock(text) if step == "cosim" else None
    kind, message = _judge(step, text, errors, deadlock)
    place = _place(text, errors, source) if kind in ("source-error", "csim-mismatch", "tool-failed") else None
    return ToolStepOutcome(step, kind, message[:2000], codes, place, deadlock, log.last_lines())


def _judge(
    step: ToolStep, text: str, errors: list[tuple[str, str]], deadlock: ReportedDeadlock | None
) -> tuple[LogEnding, str]:
    failing = bool(errors) or re.search(_DONE[step], text) is None
    timing = _TIMING.search(text) if step in ("implement", "link") else None
    slowed = _SLOWED.search(text) if timing is not None else None
    if not failing and deadlock is None and (timing is None or slowed is not None):
        return "ok", _line(text, slowed) if slowed is not None else f"{step} finished"
    resource: tuple[tuple[FailureKind, re.Pattern[str]], ...] = (
        ("disk-full", _DISK), ("licence", _LICENCE), ("out-of-memory", _MEMORY),
    )  # fmt: skip
    spared = _SPARED.sub("", text)
    for kind, pattern in resource:
        if failing and (found := pattern.search(spared)):
            lines = (_line(spared, one) for one in pattern.finditer(spared))
            return kind, next((line for line in lines if line.startswith("ERROR")), _line(spared, found))
    if deadlock is not None:
        return "deadlock", str(deadlock)
    own: tuple[tuple[FailureKind, re.Pattern[str]], ...] = (
        ("bad-target", _TARGET), ("source-error", _CSIM_BUILD), ("csim-mismatch", _CSIM),
        ("cosim-failed", _COSIM), ("source-error", _SOURCE),
    )  # fmt: skip
    for kind, pattern in own:
        if found := pattern.search(text):
            return kind, _cause(text, errors, found)
    if timing is not None:
        return "timing-not-met", _line(text, timing)
    if found := _COMMAND.search(text):
        return "tool-failed", _line(text, found)
    if errors:
        return "tool-failed", f"[{errors[0][0]}] {errors[0][1]}"
    return "tool-failed", f"the log ends without saying that {step} finished"


def _line(text: str, found: re.Match[str]) -> str:
    begin = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    return text[begin : end if end >= 0 else len(text)].strip()[:1000]


# Errors that say only that there were errors; the one before them has the cause.
_EMPTY_WORDS = re.compile(
    r"Encountered problem during source synthesis|Pre-synthesis failed|Failed building synthesis|'csim_design' failed"
)


def _cause(text: str, errors: list[tuple[str, str]], found: re.Match[str]) -> str:
    telling = [(code, message) for code, message in errors if message and not _EMPTY_WORDS.search(message)]
    if telling:
        code, message = telling[0]
        return f"[{code}] {message}"
    compiler = re.search(r"^.{0,300}: (?:fatal )?error: .{1,500}$", text, re.M)
    bench = re.search(r"^error: .{1,500}$", text, re.M)  # our test bench says what differs, the tool only that it ended
    own = compiler or bench
    return own.group(0).strip() if own else _line(text, found)


def _place(text: str, errors: list[tuple[str, str]], source: str | None) -> SourcePlace | None:
    """Where in the generated C++ the first error that names a place has it."""
    lines = [message for _, message in errors]
    compiler = re.search(r"^.{0,300}: (?:fatal )?error: ", text, re.M)
    for line in [*lines, *([compiler.group(0)] if compiler else [])]:
        if found := _PLACE.search(line):
            number = int(found.group(2))
            return SourcePlace(found.group(1).rsplit("/", 1)[-1], number, layer_at(source, number) if source else None)
    return None


_HEAD = re.compile(r"// (?:Layer|Loads|Stores) (\S+)")
_OTHER_HEAD = re.compile(r"// (?:Reorders|Cuts|Puts|Copies|Joins)\b.{0,200}")


def layer_at(source: str, line: int) -> str | None:
    """The layer whose function holds a line: every function of generated C++ has a comment that names it."""
    above = source.splitlines()[:line]
    for text in reversed(above):
        if found := _HEAD.match(text):
            return found.group(1)
        if found := _OTHER_HEAD.match(text):
            return found.group(0)[3:]
    return None
