"""A tool run that ended badly, as the typed failure that a measurement raises."""

from __future__ import annotations

from penstock.profiling.protocol import FailureKind, ProfilingError
from penstock.profiling.tool_runner import ToolOutcome, ToolResult

_KINDS: dict[ToolOutcome, FailureKind] = {
    ToolOutcome.TIMEOUT: "timeout",
    ToolOutcome.CANCELLED: "cancelled",
    ToolOutcome.OUT_OF_MEMORY: "out-of-memory",
    ToolOutcome.NOT_FOUND: "tool-missing",
    ToolOutcome.NOT_STARTED: "tool-missing",
}


def failed(tool: str, result: ToolResult, hint: str = "") -> ProfilingError:
    """The failure of a tool, with the end of its log."""
    error = result.error(tool, hint)
    return ProfilingError(
        _KINDS.get(result.outcome, "tool-failed"), what=error.what, where=tool, limit=error.limit,
        hint=error.hint or "see the end of its log", log_tail=result.tail,
    )  # fmt: skip
