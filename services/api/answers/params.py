"""Parameters and look-ups that several addresses share."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic.fields import FieldInfo

from penstock.db.schema.ids import ID_PATTERN, is_id
from penstock.services.api.answers.problems import Problem
from penstock.services.api.answers.schemas import ProblemOut

POLL_AFTER_SECONDS = 2

PageLimit = Annotated[int, Query(ge=1, le=100, description="how many to give at most")]
_PAGE_BEFORE = "`next_cursor` of the page before"


def _cursor_of(pattern: str) -> FieldInfo:
    """The form is told, and not checked here: what refuses another one says more of it."""
    return Query(max_length=64, description=_PAGE_BEFORE, json_schema_extra={"pattern": pattern})


RunCursor = Annotated[str | None, _cursor_of(f"^run_{ID_PATTERN}$")]
ModelCursor = Annotated[str | None, _cursor_of(f"^mdl_{ID_PATTERN}$")]
TrialCursor = Annotated[str | None, _cursor_of(f"^(stp_{ID_PATTERN}|[012]:[0-9]{{1,18}}\\.[0-9]:[0-9]{{1,9}})$")]
MessageCursor = Annotated[str | None, _cursor_of(f"^msg_{ID_PATTERN}$")]
NumberCursor = Annotated[str | None, _cursor_of("^[0-9]{1,18}$")]
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
