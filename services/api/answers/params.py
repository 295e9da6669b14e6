"""Parameters and look-ups that several addresses share."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query

from penstock.db.schema.ids import is_id
from penstock.services.api.answers.problems import Problem
from penstock.services.api.answers.schemas import ProblemOut

POLL_AFTER_SECONDS = 2

PageLimit = Annotated[int, Query(ge=1, le=100, description="how many to give at most")]
Cursor = Annotated[str | None, Query(max_length=64, description="`next_cursor` of the page before")]
RunId = Annotated[str, Path(max_length=64, description="the id of a run")]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "model": ProblemOut,
        "description": "Every error is a problem document (RFC 9457) with a stable `type`.",
    }
}


def check_cursor(cursor: str | None, prefix: str) -> None:
    """Refuses a cursor that no list of ours has given out."""
    if cursor is not None and not is_id(cursor, prefix):
        raise bad_cursor(f"'{cursor}' is not a cursor of this list")


def bad_cursor(what: str) -> Problem:
    return Problem(
        "bad-cursor", what, where="query.cursor", hint="pass `next_cursor` of the page before, or leave it out to begin"
    )
