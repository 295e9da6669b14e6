"""What happens to every request before its handler: an id, headers, limits, and who may send it.

Pure ASGI, so that event streams and downloads pass through unbuffered.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.services.api.answers.problems import Problem
from penstock.services.api.plumbing.logs import get_logger
from penstock.services.api.plumbing.tokens import is_well_formed

log = get_logger()

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_TOKEN = re.compile(r"penstock_[0-9A-Za-z]+")
_WAY_IN = "/enter/"
_NOT_LOGGED = ("/static/", "/healthz")
BODY_SECONDS = 20.0
LEAST_BYTES_A_SECOND = 16 * 1024
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


async def _send_problem(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    response = problem.response(instance=scope["path"], request_id=str(scope.get("state", {}).get("request_id", "")))
    await response(scope, receive, send)


class RequestContext:
    """Outermost: names the request, adds security headers, turns a bug into a problem document, and logs the request.

    The log has no query and no header: either may hold a secret.
    """

    def __init__(self, app: ASGIApp, access_log: bool = False) -> None:
        self.app = app
        self.access_log = access_log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        started, status, began = False, 0, time.monotonic()

        async def send_with_headers(message: Message) -> None:
            nonlocal started, status
            if message["type"] == "http.response.start":
                started, status = True, int(message["status"])
                headers = MutableHeaders(scope=message)
                headers["X-Request-Id"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Problem as problem:
            # Raised by a limit while a response, not a handler, was reading the body.
            if started:
                raise
            await _send_problem(problem, scope, receive, send_with_headers)
        except Exception:
            # The last line of defence: the trace goes to the log, the client gets its id.
            log.exception("request failed", request_id=request_id, method=scope["method"], path=_logged(scope["path"]))
            if started:
                raise
            problem = Problem(
                "internal",
                "the service made a mistake while it answered this request",
                hint=f"report it with request id {request_id}, under which the log tells more",
            )
            await _send_problem(problem, scope, receive, send_with_headers)
        finally:
            if self.access_log and not scope["path"].startswith(_NOT_LOGGED):
                client, who = scope.get("client"), scope["state"].get("who")
                log.info(
                    "request", request_id=request_id, method=scope["method"], path=_logged(scope["path"]),
                    status=status, ms=round((time.monotonic() - began) * 1000, 1), client=client[0] if client else None,
                    actor=getattr(who, "actor", None),
                )  # fmt: skip


def _logged(path: str) -> str:
    """An address as logs keep it: what lets a browser in is good until it is used, and for an hour."""
    return _WAY_IN + "…" if path.startswith(_WAY_IN) else path[:300]


class BodyLimit:
    """Refuses bodies over a limit: at once by Content-Length, else while they stream in; and those that do not come.

    The connection stays open, so that a client that is still sending can read why it was refused.
    """

    def __init__(self, app: ASGIApp, limit_for: Callable[[str, str, str], int]) -> None:
        self.app = app
        self.limit_for = limit_for

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        kind = Headers(scope=scope).get("content-type", "").strip().lower()
        limit = self.limit_for(scope["method"], scope["path"], kind)
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared[:19]) > limit:
            await _send_problem(self._problem(limit, f"{declared[:19]} bytes"), scope, receive, send)
            return
        received, whole, began = 0, False, time.monotonic()

        async def counted() -> Message:
            nonlocal received, whole
            if whole:  # from here on it is about whether the client is still there
                return await receive()
            left = began + BODY_SECONDS + received / LEAST_BYTES_A_SECOND - time.monotonic()
            try:
                async with asyncio.timeout(left):
                    message = await receive()
            except TimeoutError:
                raise self._too_slow(received) from None
            if message["type"] == "http.request":
                whole = not message.get("more_body", False)
                received += len(message.get("body", b""))
                if received > limit:
                    raise self._problem(limit, f"over {received} bytes")
            return message

        await self.app(scope, counted, send)

    @staticmethod
    def _too_slow(received: int) -> Problem:
        return Problem(
            "too-slow",
            f"only {received} bytes of the body came in time",
            where="body",
            limit=f"{BODY_SECONDS:.0f} s, and a second more for each {LEAST_BYTES_A_SECOND} bytes",
            hint="send it again over a better connection",
        )

    @staticmethod
    def _problem(limit: int, size: str) -> Problem:
        return Problem(
            "too-large",
            f"the body has {size}",
            where="body",
            limit=f"at most {limit} bytes here",
            hint="send a smaller file, or have the operator raise the limit",
        )


class NoTokenInUrl:
    """Refuses a token in an address: addresses are logged, remembered and passed on."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _holds_token(scope):
            problem = Problem(
                "token-in-url",
                "the address of this request holds a token",
                where="address",
                hint="send it as `Authorization: Bearer …`, and have this one replaced: `penstock token rotate ID`",
            )
            scope["path"] = "/(held a token)"  # what logs the request around this must not keep it either
            await problem.response(instance="", request_id=scope["state"]["request_id"])(scope, receive, send)
            return
        await self.app(scope, receive, send)


def _holds_token(scope: Scope) -> bool:
    address = unquote(scope["path"] + "?" + scope.get("query_string", b"").decode("latin-1"))
    return any(is_well_formed(word) for word in _TOKEN.findall(address))


class SameSite:
    """Keeps other web sites from acting through a visitor's browser.

    A page of another origin can send simple POSTs to a service on loopback, and can rebind its own name to
    127.0.0.1; browsers tell on both (Sec-Fetch-Site and Origin; Host). Programs send none of these headers.
    """

    def __init__(self, app: ASGIApp, allowed_hosts: Iterable[str]) -> None:
        self.app = app
        self.allowed_hosts = frozenset(host.lower() for host in allowed_hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            problem = self._check(scope["method"], Headers(scope=scope))
            if problem is not None:
                await _send_problem(problem, scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _check(self, method: str, headers: Headers) -> Problem | None:
        host = headers.get("host", "")
        if self.allowed_hosts and "*" not in self.allowed_hosts and _name(host) not in self.allowed_hosts:
            return Problem(
                "unknown-host",
                f"this service does not answer to the name '{_name(host)[:100]}'",
                where="header Host",
                hint="use the address that `penstock up` printed, or have the operator allow this name",
            )
        if method in SAFE_METHODS:
            return None
        site = headers.get("sec-fetch-site", "")
        origin = headers.get("origin", "")
        foreign = site not in ("", "same-origin", "none")
        if not site and origin:
            foreign = origin.partition("://")[2].lower() != host.lower()
        if not foreign:
            return None
        return Problem(
            "cross-site-request",
            "a page of another site sent this request",
            where="header Sec-Fetch-Site" if site else "header Origin",
            hint="use the pages of this service, or send the request from a program",
        )


def _name(host: str) -> str:
    """The name in a Host header, without its port and the brackets of IPv6."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()
