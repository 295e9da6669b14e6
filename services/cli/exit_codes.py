"""What `penstock` ends with, as docs/cli.md promises; for commands with and without a service."""

from __future__ import annotations

OK, FAILED, USAGE, CONSTRAINTS_UNMET, CANCELLED, TIMEOUT, SERVICE_ERROR = range(7)
INTERRUPTED = 130

UNMET = frozenset({"nothing-fits", "does-not-fit", "contradictory-limits", "memory-short", "memory-too-large"})
"""Errors that mean: everything works, and no design meets what was asked for."""
