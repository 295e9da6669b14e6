"""Browsers' sessions and the one-time tickets that begin them: a keyed digest and a time, bound to a token.

A session is good as long as its token is: revoking the token ends it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from sqlalchemy import delete, func, insert, select

from penstock.db.repositories.base import Repository
from penstock.db.schema.records import Token
from penstock.db.schema.tables import sessions, tokens

SessionKind = Literal["ticket", "session"]


class Sessions(Repository):
    def create(self, *, kind: SessionKind, digest: bytes, token_id: str, expires_at: datetime) -> None:
        row = {"kind": kind, "digest": digest, "token_id": token_id, "expires_at": expires_at}
        self.connection.execute(insert(sessions).values(row))

    def token(self, digest: bytes) -> Token | None:
        """The usable token behind a session that is not over."""
        usable = tokens.c.revoked_at.is_(None) & (tokens.c.expires_at.is_(None) | (tokens.c.expires_at > func.now()))
        alive = (sessions.c.digest == digest) & (sessions.c.kind == "session") & (sessions.c.expires_at > func.now())
        return self._first(Token, select(tokens).join(sessions).where(alive, usable))

    def redeem(self, digest: bytes) -> str | None:
        """Use a ticket up; the id of its token if the ticket was still good."""
        used = delete(sessions).where(sessions.c.digest == digest, sessions.c.kind == "ticket")
        row = self.connection.execute(used.returning(sessions.c.token_id, sessions.c.expires_at > func.now())).first()
        return row[0] if row is not None and row[1] else None

    def end(self, digest: bytes) -> None:
        self.connection.execute(delete(sessions).where(sessions.c.digest == digest))

    def sweep(self) -> None:
        """Remove what is over."""
        self.connection.execute(delete(sessions).where(sessions.c.expires_at < func.now()))
