"""Writes down who asked for which change, and how it ended; when the answer is on its way, so that nobody waits for it.

What a change did to a run is in the run's events, under the same actor, in the transaction that made it.
"""

from __future__ import annotations

from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.db import Database
from penstock.services.api.plumbing.auth import Who
from penstock.services.api.plumbing.logs import get_logger
from penstock.services.api.plumbing.middleware import SAFE_METHODS

log = get_logger()
_LONGEST = 300


class AuditTrail:
    """One row for every request that could change something and whose sender is known."""

    def __init__(self, app: ASGIApp, database: Database) -> None:
        self.app = app
        self.database = database

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            await self.app(scope, receive, send)
            return
        status: int | None = None

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            who: Who | None = scope.get("state", {}).get("who")
            if who is not None:
                await run_in_threadpool(self._write, scope, who, status)

    def _write(self, scope: Scope, who: Who, status: int | None) -> None:
        route = scope.get("route")
        client = scope.get("client")
        try:
            with self.database.at_once() as tx:
                tx.audit.add(
                    actor=who.actor,
                    token_id=who.token_id,
                    action=f"{scope['method']} {getattr(route, 'path', scope['path'])}"[:_LONGEST],
                    target=str(scope["path"])[:_LONGEST].replace("\0", ""),
                    status=status,
                    request_id=scope.get("state", {}).get("request_id"),
                    client=client[0] if client else None,
                )
        except SQLAlchemyError as error:  # a database that is away has refused the change itself
            log.error("the audit log was not written", actor=who.actor, path=scope["path"], error=type(error).__name__)
