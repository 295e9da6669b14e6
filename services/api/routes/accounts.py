"""/v1/me, /v1/login-links, /v1/audit: who one is, a way in for one's browser, and who did what."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from penstock.db.repositories.base import BadCursorError
from penstock.services.api.answers.params import PROBLEMS, NumberCursor, PageLimit
from penstock.services.api.answers.problems import Problem
from penstock.services.api.answers.schemas import LoginLink, MeOut
from penstock.services.api.answers.upkeep import AuditList, AuditOut
from penstock.services.api.plumbing.accounts import LATER_LINK, make_ticket
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.context import Ctx
from penstock.services.run_options import PlainText

router = APIRouter(prefix="/v1", tags=["accounts"], responses=PROBLEMS)


@router.get("/me", summary="Who is asking")
def who_am_i(context: Ctx, caller: Caller) -> MeOut:
    """Whose token the request carries, and what it may do."""
    return MeOut(owner=caller.owner, scope=caller.scope)


@router.post("/login-links", status_code=201, summary="A way in for a browser")
def make_login_link(request: Request, context: Ctx, caller: Caller) -> LoginLink:
    """An address that signs a browser in as the caller, once and within ten minutes. It holds no token."""
    if caller.token_id is None:
        return LoginLink(url=f"{str(request.base_url).rstrip('/')}/runs", expires_at=None)
    with context.database.begin(caller.actor) as tx:
        ticket, until = make_ticket(tx, context.token_key, caller.token_id, LATER_LINK)
    return LoginLink(url=f"{str(request.base_url).rstrip('/')}/enter/{ticket}", expires_at=until)


@router.get("/audit", summary="Who asked for which change")
def list_audit(
    context: Ctx,
    caller: Caller,
    limit: PageLimit = 50,
    cursor: NumberCursor = None,
    actor: Annotated[PlainText | None, Query(max_length=200, description="only what this owner asked for")] = None,
) -> AuditList:
    """Every request that could change something, and how it ended, the newest first; needs scope `admin`."""
    try:
        with context.database.begin() as tx:
            page = tx.audit.list(cursor=cursor, limit=limit, actor=actor)
    except BadCursorError:
        raise Problem(
            "bad-cursor", "this is not a cursor of this list", where="query.cursor",
            hint="pass `next_cursor` of the page before, or leave it out to begin",
        ) from None  # fmt: skip
    return AuditList(items=[AuditOut.model_validate(entry) for entry in page.items], next_cursor=page.next_cursor)
