"""What all repositories share: rows into records, cursors, and the lock that orders a run's events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Executable, Select, Table

from penstock.db.schema.ids import is_id
from penstock.db.schema.records import Page

R = TypeVar("R")

MAX_PAGE = 500


class BadCursorError(ValueError):
    """The cursor was not made by this list."""


class RunNotLockedError(AssertionError):
    """A transition without the lock of its run: a bug in the caller, found at its first execution."""


class Scope:
    """One transaction's connection, who asked for it, and the runs whose rows it has locked.

    Every transaction that changes the state of a run or of its steps locks the run's row first. So two of
    them never wait for each other in a circle, fan-in counts never race, and the ids of a run's events rise
    in the order of commits.
    """

    def __init__(self, connection: Connection, actor: str | None = None) -> None:
        self.connection = connection
        self.actor = actor
        self.locked_runs: set[str] = set()

    def require_lock(self, run_id: str) -> None:
        if run_id not in self.locked_runs:
            raise RunNotLockedError(f"{run_id} changes without tx.runs.lock({run_id!r})")


class Repository:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.connection = scope.connection

    def _all(self, record: type[R], statement: Executable, values: Mapping[str, Any] | None = None) -> tuple[R, ...]:
        return tuple(_made(record, row) for row in self.connection.execute(statement, values).mappings())

    def _first(self, record: type[R], statement: Executable, values: Mapping[str, Any] | None = None) -> R | None:
        row = self.connection.execute(statement, values).mappings().first()
        return None if row is None else _made(record, row)

    def _only(self, record: type[R], statement: Executable, values: Mapping[str, Any] | None = None) -> R:
        return _made(record, self.connection.execute(statement, values).mappings().one())

    def _pairs(self, statement: Select[Any, Any]) -> dict[str, Any]:
        return {key: value for key, value in self.connection.execute(statement)}  # noqa: C416

    def _newest_first(
        self,
        record: type[R],
        table: Table,
        where: Sequence[ColumnElement[bool]],
        cursor: str | None,
        limit: int,
    ) -> Page[R]:
        """A page of rows from the newest to the oldest; ids sort by time, so an id is the cursor."""
        statement = table.select().where(*where).order_by(table.c.id.desc())
        if cursor is not None:
            if not is_id(cursor, cursor[:3]):
                raise BadCursorError(f"{cursor!r} is not a cursor of this list")
            statement = statement.where(table.c.id < cursor)
        return self._page(record, statement, limit, lambda row: row["id"])

    def _page(self, record: type[R], statement: Select[Any], limit: int, cursor_of: Callable[[Any], object]) -> Page[R]:
        limit = max(1, min(limit, MAX_PAGE))
        rows = self.connection.execute(statement.limit(limit + 1)).mappings().all()
        shown = rows[:limit]
        cursor = str(cursor_of(shown[-1])) if len(rows) > limit else None
        return Page(tuple(_made(record, row) for row in shown), cursor)


def _made(record: type[R], row: Mapping[Any, Any]) -> R:
    """A row as the record that this version knows. A newer version may have given the table further columns while this
    one still ends what it had begun."""
    known = _names_of(record)
    return record(**{name: value for name, value in row.items() if name in known})


@cache
def _names_of(record: type[Any]) -> frozenset[str]:
    return frozenset(field.name for field in fields(record))


def number_cursor(cursor: str | None) -> int | None:
    """The cursor of a list that is ordered by a number."""
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 18:
        raise BadCursorError(f"{cursor!r} is not a cursor of this list")
    return int(cursor)
