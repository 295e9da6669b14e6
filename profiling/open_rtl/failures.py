"""A tool run that ended badly, as the typed failure that a measurement raises."""

from __future__ import annotations

from penstock.profiling.protocol import FailureKind, ProfilingError
from penstock.profiling.tool_runner import Outcome, ToolResult

_KINDS: dict[Outcome, FailureKind] = {
    Outcome.TIMEOUT: "timeout",
    Outcome.CANCELLED: "cancelled",
    Outcome.OUT_OF_MEMORY: "out-of-memory",
    Outcome.NOT_FOUND: "tool-missing",
    Outcome.NOT_STARTED: "tool-missing",
}


def failed(tool: str, result: ToolResult, hint: str = "") -> ProfilingError:
    """The failure of a tool, with the end of its log."""
    error = result.error(tool, hint)
    return ProfilingError(
        _KINDS.get(result.outcome, "tool-failed"), what=error.what, where=tool, limit=error.limit,
        hint=error.hint or "see the end of its log", log_tail=result.tail,
    )  # fmt: skip
