"""Runs external tools so that nothing of them outlives their end, a cancel, or the death of the worker."""

from penstock.profiling.tool_runner.command import Outcome, ToolCommand, ToolResult, clean_environment
from penstock.profiling.tool_runner.runner import ToolProcess, ToolRunner

__all__ = ["Outcome", "ToolCommand", "ToolProcess", "ToolResult", "ToolRunner", "clean_environment"]
