"""Builds the application: REST API, pages, and what stands in front of both.

Run it with `uvicorn penstock.services.api.app:create_app --factory`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles

from penstock import web
from penstock.db import Database
from penstock.services.api import sign_in
from penstock.services.api.answers.description import describe
from penstock.services.api.pages import compare as compare_pages
from penstock.services.api.pages import design as design_pages
from penstock.services.api.pages import run as run_pages
from penstock.services.api.pages import runs as runs_pages
from penstock.services.api.pages import service as service_pages
from penstock.services.api.pages import shared as shared_pages
from penstock.services.api.pages import submit as submit_pages
from penstock.services.api.pages import trials as trials_pages
from penstock.services.api.pages import upkeep as upkeep_pages
from penstock.services.api.pages.drawn import DrawnTrials
from penstock.services.api.plumbing import errors
from penstock.services.api.plumbing.audit import AuditTrail
from penstock.services.api.plumbing.auth import authenticate
from penstock.services.api.plumbing.broker import look_at_workers
from penstock.services.api.plumbing.context import Context
from penstock.services.api.plumbing.health import BrokerWatch
from penstock.services.api.plumbing.hub import EventHub
from penstock.services.api.plumbing.logs import get_logger
from penstock.services.api.plumbing.middleware import BodyLimit, NoTokenInUrl, RequestContext, SameSite
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.api.plumbing.turns import Turns
from penstock.services.api.routes import (
    accounts,
    agents,
    arrays,
    contents,
    designs,
    events,
    health,
    labels,
    models,
    profiles,
    removal,
    results,
    runs,
    searches,
    webhooks,
    workers,
)
from penstock.services.secret_key import load_key
from penstock.services.settings import Settings
from penstock.services.store import ContentStore
from penstock.services.version import version
from penstock.web.templating import compile_templates

log = get_logger()

DESCRIPTION = (
    "Submit a model, follow its run, fetch its accelerator. Every error is an RFC 9457 problem document "
    "with a stable `type`. Lists are paged with cursors. POSTs take an Idempotency-Key."
)
DATABASE_CONNECTIONS = 10
ROUTERS = tuple(
    part.router
    for part in (
        *(health, models, runs, labels, searches, agents, arrays, designs, removal),
        *(events, results, profiles, contents, webhooks, workers, accounts),
        *(runs_pages, run_pages, trials_pages, design_pages, compare_pages),
        *(submit_pages, shared_pages, service_pages, upkeep_pages, sign_in),
    )
)
"""Everything that answers, but for static files and the description itself."""


def create_app(settings: Settings | None = None, options: ApiOptions | None = None) -> FastAPI:
    """The application for these settings; without any, for those of the environment."""
    settings = settings or Settings.from_environment()
    options = options or ApiOptions.from_environment(settings)
    settings.home.mkdir(parents=True, exist_ok=True)
    database = Database(settings.require_database_url(), application="penstock-api", pool_size=DATABASE_CONNECTIONS)
    context = Context(
        settings=settings,
        options=options,
        database=database,
        store=ContentStore(settings.store_folder),
        hub=EventHub(database, options.max_streams, events.message),
        intake_turns=Turns(),
        token_key=load_key(settings.secret_file) if options.auth else b"",
    )
    broker = BrokerWatch(look_at_workers(settings))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if not options.auth:
            log.warning("no tokens are asked for", reachable_at=f"{settings.api_host}:{settings.api_port}")
        Thread(target=compile_templates, name="templates", daemon=True).start()  # nobody waits for it
        yield
        await context.hub.close()
        broker.close()
        database.close()

    app = bare_app(lifespan)
    app.state.context = context
    app.state.broker = broker
    app.state.drawn = DrawnTrials()
    app.add_middleware(AuditTrail, database=database)
    app.add_middleware(BodyLimit, limit_for=options.body_limit)
    app.add_middleware(SameSite, allowed_hosts=options.allowed_hosts)
    app.add_middleware(NoTokenInUrl)
    app.add_middleware(RequestContext, access_log=options.access_log)  # added last: it stands in front of the others
    return app


def bare_app(lifespan: Any = None) -> FastAPI:
    """The routes and error handlers, without a machine to run on: what openapi.json is made from."""
    app = FastAPI(
        title="Penstock",
        version=version(),
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # these pages load scripts from other machines
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        redirect_slashes=False,
        dependencies=[Depends(authenticate)],
    )
    for router in ROUTERS:
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=Path(web.__file__).parent / "static"), name="static")
    errors.install(app)
    app.openapi = partial(describe, app)
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name
