"""/v1/workers: who works here, and the order to a worker to begin nothing more."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request

from penstock.services.api.answers.health import WorkerList
from penstock.services.api.answers.params import PROBLEMS
from penstock.services.api.answers.problems import RETRY_SOON_SECONDS, Problem
from penstock.services.api.plumbing.auth import Caller
from penstock.services.api.plumbing.broker import BrokerAwayError, drain
from penstock.services.api.plumbing.context import Ctx
from penstock.services.api.plumbing.health import workers_of

router = APIRouter(prefix="/v1/workers", tags=["upkeep"], responses=PROBLEMS)


@router.get("", summary="List workers")
def list_workers(request: Request, context: Ctx, caller: Caller) -> WorkerList:
    """Workers that gave a sign of life within the last hour, with the queues that they serve."""
    return WorkerList(items=workers_of(context.database, request.app.state.broker.latest()))


@router.post("/{name}/drain", status_code=202, summary="Have a worker begin nothing more")
def drain_worker(
    name: Annotated[str, Path(max_length=200, description="its name in the list")],
    request: Request,
    context: Ctx,
    caller: Caller,
) -> WorkerList:
    """Its steps come to their end, it takes no others, and then it ends. Within seconds; needs scope `admin`."""
    look = request.app.state.broker.latest()
    if not any(sign.name == name and sign.alive for sign in look.workers):
        raise Problem(
            "worker-not-found", f"no worker alive is called '{name[:100]}'", where="path",
            hint="GET /v1/workers lists them; `penstock workers` prints them",
        )  # fmt: skip
    try:
        drain(context.settings, name)
    except BrokerAwayError as error:
        raise Problem(
            "broker-unavailable", str(error), hint="try again in a moment",
            headers={"Retry-After": str(RETRY_SOON_SECONDS)},
        ) from None  # fmt: skip
    return WorkerList(items=workers_of(context.database, look))
