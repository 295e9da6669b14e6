"""The ways in for people with a browser: a token typed into a form, or a link that is good once; and the way out.

Either begins a session of its own: the browser keeps a secret that is no token, which scripts cannot read and other
sites cannot send.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from penstock.db.schema.ids import is_id
from penstock.services.api.plumbing.auth import begin_session, end_session, usable_token
from penstock.services.api.plumbing.context import Ctx
from penstock.services.api.plumbing.tokens import digest
from penstock.web.render import render_login

router = APIRouter(include_in_schema=False)

_PAGES = ("/runs", "/measurements", "/submit", "/compare", "/service")
_PLAIN = re.compile(r"[a-z0-9_/]{1,100}")


@router.get("/login")
def login_page(next_page: Annotated[str, Query(alias="next", max_length=200)] = "/runs") -> Response:
    """The form that takes a token."""
    return _form(own_page(next_page))


@router.post("/login")
def login(
    request: Request,
    context: Ctx,
    token: Annotated[str, Form(max_length=200)],
    next_page: Annotated[str, Form(alias="next", max_length=200)] = "/runs",
) -> Response:
    """Begins a session of the token's holder."""
    target = own_page(next_page)
    response = RedirectResponse(target, status_code=303)
    with context.database.begin() as tx:
        known = usable_token(tx, token.strip(), context.token_key) if context.options.auth else None
        if known is None:
            return _form(target, failure="This token is not valid: it was mistyped, revoked, or has expired.")
        begin_session(tx, request, response, context, known.id)
    return response


@router.get("/enter/{ticket}")
def enter(ticket: Annotated[str, Path(max_length=100)], request: Request, context: Ctx) -> Response:
    """Begins a session by a link, once."""
    response = RedirectResponse("/runs", status_code=303)
    with context.database.begin() as tx:
        token_id = tx.sessions.redeem(digest(ticket, context.token_key)) if context.options.auth else None
        if token_id is None and context.options.auth:
            return _form("/runs", failure="This link was used before, or is too old: `penstock login` gives another.")
        if token_id is not None:
            begin_session(tx, request, response, context, token_id)
    return response


@router.get("/logout")
def logout(request: Request, context: Ctx) -> Response:
    """Ends the session, for the service too. Other sites cannot do it: they cannot send the cookie."""
    response = RedirectResponse("/login", status_code=303)
    with context.database.begin() as tx:
        end_session(tx, request, response, context)
    return response


def own_page(target: str) -> str:
    """Where to go after signing in: one of our own pages, whatever the link said."""
    path = target.partition("?")[0]
    begin, _, rest = path.removeprefix("/").partition("/")
    known = path in _PAGES or (begin == "runs" and is_id(rest.partition("/")[0], "run") and _PLAIN.fullmatch(rest))
    return target if known and target.isascii() and target.isprintable() else "/runs"


def _form(target: str, failure: str = "") -> Response:
    html = render_login(failure=failure, next_page=target)
    return HTMLResponse(html, status_code=403 if failure else 200, headers={"Cache-Control": "no-store"})
