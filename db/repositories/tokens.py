"""Access tokens: a public prefix to find the row, and the whole token's HMAC-SHA256, never the token."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, insert, select, update

from penstock.db.repositories.base import Repository
from penstock.db.schema.ids import new_id
from penstock.db.schema.records import Page, Token, TokenScope
from penstock.db.schema.tables import tokens


class Tokens(Repository):
    def create(
        self,
        *,
        name: str,
        prefix: str,
        digest: bytes,
        owner: str,
        scope: TokenScope,
        expires_at: datetime | None = None,
    ) -> Token:
        row = {
            "id": new_id("tok"),
            "name": name,
            "prefix": prefix,
            "digest": digest,
            "expires_at": expires_at,
            "owner": owner,
            "scope": scope,
        }
        return self._only(Token, insert(tokens).values(row).returning(tokens))

    def by_prefix(self, prefix: str) -> Token | None:
        """The token's row if it can be used now; the caller compares digests in constant time."""
        usable = tokens.c.revoked_at.is_(None) & (tokens.c.expires_at.is_(None) | (tokens.c.expires_at > func.now()))
        return self._first(Token, select(tokens).where(tokens.c.prefix == prefix, usable))

    def get(self, token_id: str) -> Token | None:
        return self._first(Token, select(tokens).where(tokens.c.id == token_id))

    def touch(self, token_id: str) -> None:
        self.connection.execute(update(tokens).where(tokens.c.id == token_id).values(last_used_at=func.now()))

    def revoke(self, token_id: str) -> bool:
        revoked = update(tokens).where(tokens.c.id == token_id, tokens.c.revoked_at.is_(None))
        return self.connection.execute(revoked.values(revoked_at=func.now())).rowcount == 1

    def expire(self, token_id: str, at: datetime) -> bool:
        """Let a token end at that time if it does not end before."""
        usable = tokens.c.revoked_at.is_(None) & (tokens.c.expires_at.is_(None) | (tokens.c.expires_at > at))
        ended = update(tokens).where(tokens.c.id == token_id, usable).values(expires_at=at)
        return self.connection.execute(ended).rowcount == 1

    def list(self, *, cursor: str | None = None, limit: int = 50) -> Page[Token]:
        return self._newest_first(Token, tokens, [], cursor, limit)
