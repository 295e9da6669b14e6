"""Runs external tools so that nothing of them outlives their end, a cancel, or the death of the worker."""

from penstock.profiling.tool_runner.command import ToolCommand, ToolOutcome, ToolResult, clean_environment
from penstock.profiling.tool_runner.runner import Cancellable, ToolProcess, ToolRunner

__all__ = ["Cancellable", "ToolOutcome", "ToolCommand", "ToolProcess", "ToolResult", "ToolRunner", "clean_environment"]
