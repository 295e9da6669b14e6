"""Turns what frameworks and libraries raise into problem documents; nothing else reaches a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from sqlalchemy.exc import SQLAlchemyError, TimeoutError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import Scope

from penstock.compiler.errors import nearest
from penstock.db.database import is_transient
from penstock.db.repositories.base import BadCursorError
from penstock.services.api.answers.params import bad_cursor
from penstock.services.api.answers.problems import RETRY_SOON_SECONDS, Problem
from penstock.services.api.answers.schemas import OPTION_NAMES
from penstock.services.api.plumbing.logs import get_logger
from penstock.services.jobs.refused import RefusedError
from penstock.web.render import render_problem

log = get_logger()
_UNDEFINED_TABLE = "42P01"
# a connection that was refused has no SQLSTATE, only words
_NO_CONNECTIONS = ("too many clients", "too many connections", "remaining connection slots")

_HTTP_CODES = {
    400: "malformed-body",
    401: "unauthenticated",
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    415: "unsupported-media-type",
    416: "range-not-satisfiable",
}

_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")
_OF_FILES = ("GET", "HEAD")

# After how many seconds what was refused may well be done.
_TRY_AGAIN = {"too-many-runs": 60, "quota-exceeded": 300, "storage-full": 300}

# Errors raised by our own validators carry the code of their problem in their type.
_OWN_TYPES = {
    "unknown_platform": "unknown-platform",
    "unknown_objective": "unknown-objective",
    "unknown_limit": "unknown-limit",
    "contradictory_limits": "contradictory-limits",
    "bad_cursor": "bad-cursor",
    "extra_forbidden": "unknown-option",
}


def place(location: Sequence[Any]) -> str:
    """('body', 'objectives', 0) as `body.objectives[0]`."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _one_error(error: Mapping[str, Any]) -> dict[str, str]:
    where = place(error["loc"])
    context = error.get("ctx") or {}
    fields = {"where": where, "what": str(error["msg"]), "code": str(error["type"]).replace("_", "-")}
    if error["type"] == "extra_forbidden":
        name = str(error["loc"][-1])
        fields["what"] = f"there is no option '{name}'"
        fields["limit"] = "the options are " + ", ".join(OPTION_NAMES)
        fields["hint"] = nearest(name, OPTION_NAMES, "remove it")
    for key in ("limit", "hint"):
        if isinstance(context.get(key), str):
            fields[key] = context[key]
    return fields


def from_validation(error: RequestValidationError) -> Problem:
    """The problem for a request that does not fit its schema; never repeats the input."""
    found = error.errors()
    if any(entry["type"] == "json_invalid" for entry in found):
        entry = next(entry for entry in found if entry["type"] == "json_invalid")
        reason = str((entry.get("ctx") or {}).get("error", "syntax error"))
        offset = entry["loc"][-1]
        return Problem(
            "malformed-body",
            f"this is not JSON: {reason}",
            where=f"body, character {offset}",
            hint="send JSON",
        )
    errors = [_one_error(entry) for entry in found]
    first = errors[0]
    code = _OWN_TYPES.get(str(found[0]["type"]), "invalid-request")
    return Problem(
        code,
        first["what"],
        where=first["where"],
        limit=first.get("limit", ""),
        hint=first.get("hint", ""),
        errors=errors,
    )


def from_http(error: HTTPException, request: Request) -> Problem:
    """The problem for an error that the framework raised on its own."""
    if isinstance(error, Problem):
        return error
    if error.status_code == 404:
        return Problem("not-found", f"{request.url.path} leads nowhere", hint="see /openapi.json for what exists")
    if error.status_code == 405:
        allowed = ", ".join(_methods_of(request))
        return Problem(
            "method-not-allowed",
            f"{request.url.path} does not take {request.method}",
            limit=f"allowed: {allowed}" if allowed else "",
            headers={"Allow": allowed} if allowed else None,
        )
    code = _HTTP_CODES.get(error.status_code, "bad-request" if error.status_code < 500 else "internal")
    return Problem(code, str(error.detail))


def _methods_of(request: Request) -> list[str]:
    """What the address takes: the framework names the methods of the first of its routes only."""
    routes = request.app.router.routes
    found = [way for way in _METHODS if any(_takes(route, {**request.scope, "method": way}) for route in routes)]
    return found or list(_OF_FILES)  # below a mount no route of ours matches, and all that is mounted is files


def _takes(route: BaseRoute, scope: Scope) -> bool:
    return not isinstance(route, Mount) and route.matches(scope)[0] is Match.FULL


def from_refusal(error: RefusedError) -> Problem:
    """The problem for what the service does not do."""
    seconds = _TRY_AGAIN.get(error.code)
    headers = None if seconds is None else {"Retry-After": str(seconds)}
    return Problem(
        error.code, error.what, where=error.where, limit=error.limit, hint=error.hint, headers=headers
    )  # fmt: skip


def database_unavailable(error: Exception | None = None) -> Problem:
    """The problem while Postgres does not answer: nothing is lost, try again."""
    full = isinstance(error, TimeoutError) or any(words in str(error) for words in _NO_CONNECTIONS)
    return Problem(
        "database-unavailable",
        "the database has no connection left" if full else "the database does not answer",
        limit="max_connections of Postgres, or the limit of its role" if full else "",
        hint="nothing was lost: try again in a few seconds; /healthz says when it is back",
        headers={"Retry-After": str(RETRY_SOON_SECONDS)},
    )


def respond(problem: Problem, request: Request) -> Response:
    """The response for a problem, tied to the request it answers: a page for people, else a document."""
    request_id = str(getattr(request.state, "request_id", ""))
    if wants_page(request):
        document = problem.document(instance=request.url.path, request_id=request_id)
        page = render_problem(document)
        return HTMLResponse(page, status_code=problem.status_code, headers=dict(problem.headers or {}))
    return problem.response(instance=request.url.path, request_id=request_id)


def wants_page(request: Request) -> bool:
    """Whether a person in a browser waits for the answer; below /v1 it is always a program's."""
    return not request.url.path.startswith("/v1") and "text/html" in request.headers.get("accept", "")


def install(app: FastAPI) -> None:
    """Registers the handlers of the application."""

    def on_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return respond(from_validation(error), request)

    def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 303:  # a page that asks to sign in first
            return RedirectResponse((error.headers or {})["Location"], 303)
        return respond(from_http(error, request), request)

    def on_refusal(request: Request, error: Exception) -> Response:
        assert isinstance(error, RefusedError)
        return respond(from_refusal(error), request)

    def on_cursor(request: Request, error: Exception) -> Response:
        return respond(bad_cursor(str(error)), request)

    def on_database(request: Request, error: Exception) -> Response:
        if not is_transient(error) and not _has_no_tables(error):
            raise error  # a bug of ours: the outermost middleware logs it and answers
        log.warning("the database does not answer", reason=str(getattr(error, "orig", error)).strip())
        return respond(database_unavailable(error), request)

    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RefusedError, on_refusal)
    app.add_exception_handler(BadCursorError, on_cursor)
    app.add_exception_handler(SQLAlchemyError, on_database)


def _has_no_tables(error: Exception) -> bool:
    """Whether the service was started before its database was migrated."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) == _UNDEFINED_TABLE
