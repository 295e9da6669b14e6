"""Who is asking: the holder of a token that we made, or a browser with a session that such a token began."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import Response

from penstock.db import Transaction
from penstock.db.schema.records import Model, Run, Token, TokenScope
from penstock.services.api.answers.problems import Problem
from penstock.services.api.plumbing.access import holds, need_of
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.api.plumbing.tokens import digest, is_well_formed, public_part

COOKIE = "penstock_session"
SESSION_DAYS = 30
_TOUCH_SECONDS = 60.0
_touched: dict[str, float] = {}
_touched_lock = threading.Lock()


@dataclass(frozen=True)
class Who:
    """Whoever asks. Without an owner it is anyone at all, on a service that asks for no tokens."""

    owner: str | None = None
    token_id: str | None = None
    scope: TokenScope = "admin"

    @property
    def actor(self) -> str:
        """What events and the audit log call them."""
        return self.owner or "anyone"

    def check_may_change(self, owned: Run | Model, what: str = "run") -> None:
        """Refuses what is somebody else's, but for an administrator."""
        if self.scope == "admin" or (self.owner is not None and owned.owner == self.owner):
            return
        raise Problem(
            "not-yours",
            f"the {what} belongs to {owned.owner or 'nobody in particular'}, and your token to {self.owner}",
            where="path",
            limit="a token of scope submit changes what is its owner's",
            hint="ask them, or use a token of scope admin",
        )


def presented_token(request: Request) -> str:
    """The token of a request: the Authorization header of a program."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


def usable_token(tx: Transaction, token: str, key: bytes) -> Token | None:
    """What is known of a token that can be used now."""
    if not is_well_formed(token):
        return None
    known = tx.tokens.by_prefix(public_part(token))
    if known is None or not hmac.compare_digest(known.digest, digest(token, key)):
        return None
    return known


def authenticate(request: Request, context: Ctx) -> Who:
    """The caller, if they may do what they ask for. Every operation passes here; `access` says what it needs."""
    needed = need_of(request.scope["route"].name)
    if needed in ("nobody", "page"):
        return Who(scope="read")
    if not context.options.auth:
        return _remembered(request, Who())
    who = caller_of(request, context)
    if who is None:
        given = presented_token(request) or COOKIE in request.cookies
        raise Problem(
            "unauthenticated",
            "the token is not valid" if given else "this service asks for a token",
            where="header Authorization",
            hint="send `Authorization: Bearer penstock_…`; whoever runs the service makes tokens with "
            "`penstock token create NAME`",
            headers={"WWW-Authenticate": 'Bearer realm="penstock"'},
        )
    _remembered(request, who)
    if not holds(who.scope, needed):
        raise Problem(
            "forbidden",
            f"the token of {who.owner} may not do this",
            where="header Authorization",
            limit=f"its scope is {who.scope}, and {needed} is needed",
            hint="have whoever runs the service make another one: `penstock token create NAME --scope "
            f"{needed} --owner {who.owner}`",
        )
    return who


def caller_of(request: Request, context: Context) -> Who | None:
    """The holder of the token or of the session that the request carries, if it is usable."""
    token, session = presented_token(request), request.cookies.get(COOKIE, "")
    if not token and not session:
        return None
    with context.database.begin() as tx:
        known = usable_token(tx, token, context.token_key) if token else _of_session(tx, session, context.token_key)
        if known is None:
            return None
        if _is_due(known.id):
            tx.tokens.touch(known.id)
    return Who(known.owner, known.id, known.scope)


def begin_session(tx: Transaction, request: Request, response: Response, context: Context, token_id: str) -> None:
    """Give the browser a session: a secret of its own that dies with the token, and never is the token."""
    secret = secrets.token_urlsafe(32)
    until = tx.now() + timedelta(days=SESSION_DAYS)
    tx.sessions.sweep()
    tx.sessions.create(kind="session", digest=digest(secret, context.token_key), token_id=token_id, expires_at=until)
    token, client = tx.tokens.get(token_id), request.client
    assert token is not None, "a session's row refers to it"
    tx.audit.add(
        actor=token.owner, token_id=token_id, action="session.begin", target=request.url.path.split("/")[1],
        client=client.host if client else None,
    )  # fmt: skip
    tls = request.url.scheme == "https" or context.settings.url.startswith("https:")
    response.set_cookie(
        COOKIE, secret, max_age=SESSION_DAYS * 86400, httponly=True, samesite="strict", secure=tls, path="/"
    )


def end_session(tx: Transaction, request: Request, response: Response, context: Context) -> None:
    session = request.cookies.get(COOKIE, "")
    if session:
        tx.sessions.end(digest(session, context.token_key))
    response.delete_cookie(COOKIE, path="/")


def _of_session(tx: Transaction, session: str, key: bytes) -> Token | None:
    return tx.sessions.token(digest(session, key)) if session.isascii() and len(session) < 100 else None


def _remembered(request: Request, who: Who) -> Who:
    """For the audit log, which is written when the answer is known."""
    request.scope.setdefault("state", {})["who"] = who
    return who


Caller = Annotated[Who, Depends(authenticate)]


def _is_due(token: str) -> bool:
    """Whether the token's last use is worth writing down again: once a minute is enough."""
    now = time.monotonic()
    with _touched_lock:
        if now - _touched.get(token, -_TOUCH_SECONDS) < _TOUCH_SECONDS:
            return False
        _touched[token] = now
        return True
