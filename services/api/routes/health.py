"""/healthz, /v1/health and /v1/platforms: what the service is, and whether it can work."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from penstock.compiler.platforms import load_platform, platform_names
from penstock.services.api.answers.health import HealthOut
from penstock.services.api.answers.params import PROBLEMS
from penstock.services.api.answers.problems import RETRY_SOON_SECONDS
from penstock.services.api.answers.schemas import PlatformList, PlatformOut
from penstock.services.api.plumbing.auth import Caller, caller_of
from penstock.services.api.plumbing.context import Ctx
from penstock.services.api.plumbing.health import check, schema_problem
from penstock.services.api.plumbing.metrics import CONTENT_TYPE, measured

router = APIRouter(tags=["service"], responses=PROBLEMS)


@router.get("/healthz", response_class=PlainTextResponse, summary="Whether requests can be taken")
def ready(context: Ctx) -> PlainTextResponse:
    """200 `ok` if the database answers and has a schema that this process knows, else 503: for load balancers."""
    problem = schema_problem(context.database)
    if not problem:
        return PlainTextResponse("ok\n")
    headers = {"Retry-After": str(RETRY_SOON_SECONDS)}
    return PlainTextResponse(f"the database {problem}\n", status_code=503, headers=headers)


@router.get(
    "/v1/health",
    response_model=HealthOut,
    summary="Health, part by part",
    responses={503: {"model": HealthOut, "description": "`status` is `down`"}},
)
def health(request: Request, context: Ctx) -> JSONResponse:
    """What works and what does not. Names of workers and queues need a token where tokens are asked for."""
    public = check(context, request.app.state.broker, in_full=not context.options.auth)
    if context.options.auth and public.status != "down" and caller_of(request, context) is not None:
        public = check(context, request.app.state.broker, in_full=True)
    down = public.status == "down"
    headers = {"Retry-After": str(RETRY_SOON_SECONDS)} if down else {}
    return JSONResponse(public.model_dump(mode="json"), status_code=503 if down else 200, headers=headers)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    summary="Figures for a monitor",
    responses={200: {"description": "Prometheus' text format", "content": {"text/plain": {}}}},
)
def metrics(request: Request, context: Ctx, caller: Caller) -> PlainTextResponse:
    """Queues and how long they wait, workers, licences, what owners used, the disk: for Prometheus."""
    return PlainTextResponse(measured(context, request.app.state.broker.latest()), media_type=CONTENT_TYPE)


@router.get("/v1/platforms", summary="The platforms that can be compiled for")
def list_platforms(caller: Caller) -> PlatformList:
    """Every platform by the name that a run's `platform` option takes."""
    platforms = [load_platform(name) for name in platform_names()]
    return PlatformList(
        items=[
            PlatformOut(name=platform.name, title=platform.title, part=platform.part, clock_mhz=platform.clock_mhz)
            for platform in platforms
        ]
    )
