"""What `penstock` ends with, as docs/cli.md promises; for commands with and without a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.compiler.errors import PenstockError

OK, FAILED, USAGE, CONSTRAINTS_UNMET, CANCELLED, TIMEOUT, SERVICE_ERROR = range(7)
INTERRUPTED = 130

UNMET = frozenset({"nothing-fits", "does-not-fit", "contradictory-limits", "memory-short", "memory-too-large"})
"""Errors that mean: everything works, and no design meets what was asked for."""

MISTAKES = {
    "clock-out-of-range",
    "no-open-route",
    "no-vitis-route",
    "evidence-not-available",
    "design-conflict",
    "unsafe-depth",
    "grid-too-large",
}
MISTAKEN = ("unknown-", "bad-", "model-", "output-")  # how the codes of what a user can mistake begin


@contextmanager
def documented_exit_codes() -> Iterator[None]:
    """Gives every error the exit code that docs/cli.md promises; what is not named here ends with 1."""
    try:
        yield
    except PenstockError as error:
        error.__dict__["exit_code"] = exit_code_of(error.code)
        raise


def exit_code_of(code: str) -> int:
    """What a command ends with that ends with this error."""
    if code in MISTAKES or code.startswith(MISTAKEN):
        return USAGE
    return CONSTRAINTS_UNMET if code in UNMET else FAILED
