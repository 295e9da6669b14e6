"""For administrators: what takes room, and what the machine of the service has and lacks."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response

from penstock.services.api.pages.frame import Framed, page
from penstock.services.api.plumbing.auth import Who, caller_of
from penstock.services.api.plumbing.context import Context, Ctx
from penstock.services.upkeep.machine import Check, examine
from penstock.web.render import render_machine, render_storage

router = APIRouter(include_in_schema=False)

LARGEST = 20
_FRESH_SECONDS = 60.0
_lock = threading.Lock()
_known: tuple[float, tuple[Check, ...]] = (0.0, ())


@router.get("/service/storage")
def storage_page(request: Request, framed: Framed, context: Ctx) -> Response:
    """What takes room, and whose it is."""
    check_admin(request, context)
    with context.database.begin() as tx:
        stored = [asdict(one) for one in tx.retention.stored()]
        largest = [asdict(run) for run in tx.retention.largest(LARGEST)]
    return page(render_storage(framed, stored=stored, largest=largest, quotas=asdict(context.options.quotas)))


@router.get("/service/machine")
def machine_page(request: Request, framed: Framed, context: Ctx) -> Response:
    """What `penstock doctor` says on the machine of the API; looked at again after a minute."""
    check_admin(request, context)
    return page(render_machine(framed, [asdict(check) for check in _checks()]))


def check_admin(request: Request, context: Context) -> None:
    """Whoever may not manage the service is told that there is nothing."""
    who = caller_of(request, context) if context.options.auth else Who()
    if who is None or who.scope != "admin":
        raise HTTPException(404)


def _checks() -> tuple[Check, ...]:
    """One look at a time: it starts programs to ask for their versions."""
    global _known
    with _lock:
        if not _known[1] or time.monotonic() - _known[0] > _FRESH_SECONDS:
            _known = (time.monotonic(), tuple(examine()))
        return _known[1]
