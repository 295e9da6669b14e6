"""The service itself: its parts, workers, queues and licences, and for administrators tokens and the audit log."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request
from fastapi.responses import Response

from penstock.services.api.pages.frame import Framed, page
from penstock.services.api.plumbing.auth import Who, caller_of
from penstock.services.api.plumbing.context import Ctx
from penstock.web.render import render_service

router = APIRouter(include_in_schema=False)

_TOKENS, _ENTRIES = 100, 50


@router.get("/service")
def service_page(request: Request, framed: Framed, context: Ctx) -> Response:
    """What moves and what does not. Whose tokens there are is for administrators."""
    who = caller_of(request, context) if context.options.auth else Who()
    is_admin = who is not None and who.scope == "admin"
    with context.database.begin() as tx:
        used = tx.queues.licences_in_use()
        ages = [asdict(age) for age in tx.queues.ages()]
        tokens = tx.tokens.list(limit=_TOKENS).items if is_admin else ()
        audit = tx.audit.list(limit=_ENTRIES).items if is_admin else ()
    known = context.settings.licences
    licences = [
        {"name": name, "used": used.get(name, 0), "most": known.get(name)}
        for name in sorted(used.keys() | known.keys())
    ]
    secret = {"digest", "prefix"}
    html = render_service(
        framed,
        licences=licences,
        ages=ages,
        is_admin=is_admin,
        tokens=[{name: value for name, value in asdict(token).items() if name not in secret} for token in tokens],
        audit=[asdict(entry) for entry in audit],
    )
    return page(html)
