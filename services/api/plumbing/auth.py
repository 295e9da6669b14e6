"""Who is asking: nobody in particular on loopback, or the holder of a token that we made."""

from __future__ import annotations

import hmac
import threading
import time
from typing import Annotated

from fastapi import Depends, Request

from penstock.db import Transaction
from penstock.services.api.answers.problems import Problem
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.api.plumbing.tokens import digest, is_well_formed, public_part

COOKIE = "penstock_token"
_TOUCH_SECONDS = 60.0
_touched: dict[str, float] = {}
_touched_lock = threading.Lock()


def presented_token(request: Request) -> str:
    """The token of a request: the Authorization header of a program, or the cookie of a browser."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    return request.cookies.get(COOKIE, "")


def token_owner(tx: Transaction, token: str, key: bytes) -> str | None:
    """Whose a usable token is, or None."""
    if not is_well_formed(token):
        return None
    known = tx.tokens.by_prefix(public_part(token))
    if known is None or not hmac.compare_digest(known.digest, digest(token, key)):
        return None
    if _is_due(known.id):
        tx.tokens.touch(known.id)
    return known.owner


def authenticate(request: Request, context: Ctx) -> str | None:
    """Whose token the caller has; None where the service asks for none. Everything else is a 401."""
    if not context.options.auth:
        return None
    caller = caller_of(request, context)
    if caller is None:
        given = presented_token(request)
        raise Problem(
            "unauthenticated",
            "the token is not valid" if given else "this service asks for a token",
            where="header Authorization",
            hint="send `Authorization: Bearer penstock_…`; an operator makes tokens with "
            "`python -m penstock.services.api.token_admin create NAME`",
            headers={"WWW-Authenticate": 'Bearer realm="penstock"'},
        )
    return caller


def caller_of(request: Request, context: Context) -> str | None:
    """Whose token the request carries, if it is usable."""
    token = presented_token(request)
    if not token:
        return None
    with context.database.begin() as tx:
        return token_owner(tx, token, context.token_key)


Caller = Annotated[str | None, Depends(authenticate)]


def _is_due(token: str) -> bool:
    """Whether the token's last use is worth writing down again: once a minute is enough."""
    now = time.monotonic()
    with _touched_lock:
        if now - _touched.get(token, -_TOUCH_SECONDS) < _TOUCH_SECONDS:
            return False
        _touched[token] = now
        return True
