"""What every page needs: who may enter, the state of the service, and the tables of what there is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, Response

from penstock.compiler.evidence import EVIDENCE_KINDS
from penstock.services.api.plumbing.auth import caller_of
from penstock.services.api.plumbing.context import Ctx
from penstock.services.api.plumbing.health import check
from penstock.web.render import PageFrame


def enter(request: Request, context: Ctx) -> None:
    """Lets in whoever may read; others are sent to the form that takes a token, and back again."""
    if not context.options.auth or caller_of(request, context) is not None:
        return
    query = f"?{request.url.query}" if request.url.query else ""
    target = f"/login?next={quote(request.url.path + query)}"
    raise HTTPException(303, headers={"Location": target})


def frame(request: Request, context: Ctx) -> PageFrame:
    """What stands around every page, for somebody who may see it."""
    enter(request, context)
    return PageFrame(
        evidence_kinds=EVIDENCE_KINDS,
        service=check(context, request.app.state.broker, in_full=True).model_dump(mode="json"),
        has_login=context.options.auth,
        now=datetime.now(UTC),
    )


Framed = Annotated[PageFrame, Depends(frame)]
Entered = Depends(enter)
"""For what is no page, but for the same people."""


def page(html: str, status: int = 200) -> Response:
    return HTMLResponse(html, status_code=status, headers={"Cache-Control": "no-store"})
