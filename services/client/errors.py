"""What can go wrong between a program and a service: one class for each way to react to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

BUSY_STATUS = frozenset({429, 503})
"""The same request may well succeed in a moment."""


class ServiceError(Exception):
    """The service refused, failed or cannot be reached. `code` is for programs, the text is one line for people."""

    def __init__(
        self, line: str, *, code: str, status: int | None = None, problem: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(line)
        self.code = code
        self.status = status
        """Of the HTTP answer; None if there was none, or not a usable one."""
        said = problem or {}
        self.what, self.where, self.limit, self.hint, self.request_id = (
            str(said.get(name, "")) for name in ("what", "where", "limit", "hint", "request_id")
        )

    def one_line(self) -> str:
        return " ".join(str(self).split())

    @property
    def is_outage(self) -> bool:
        """Whether the same request may well succeed in a moment."""
        return self.status in BUSY_STATUS


class UnreachableError(ServiceError):
    """No service answered, or the connection to it broke."""

    @property
    def is_outage(self) -> bool:
        return True


class NotPenstockError(ServiceError):
    """Something else answers at this address, or another version of Penstock."""


class NotAllowedError(ServiceError):
    """401 and 403: a token is missing, is not valid, or may not do this."""


class NotFoundError(ServiceError):
    """404 and 410: it is not there, or not any more."""


class ConflictError(ServiceError):
    """409: it cannot be done in the state that things are in."""


class LimitReachedError(ServiceError):
    """429: too many runs, streams, trials or bytes; after the client's own patience."""


class InvalidRequestError(ServiceError):
    """The other 4xx: what was sent is not acceptable; the text says which value and why."""


class ServerFailedError(ServiceError):
    """5xx: the service made a mistake, or lacks what it needs."""


class DamagedDownloadError(ServiceError):
    """The bytes that came do not have the hash that the service named; nothing was kept."""


class StillRunningError(ServiceError):
    """The run was not over in time. It goes on."""


class UsageError(Exception):
    """What was asked for cannot be sent at all."""

    def one_line(self) -> str:
        return " ".join(str(self).split())


_BY_STATUS: Mapping[int, type[ServiceError]] = {
    401: NotAllowedError, 403: NotAllowedError, 404: NotFoundError, 410: NotFoundError, 409: ConflictError,
    429: LimitReachedError,
}  # fmt: skip


def refusal(response: httpx.Response) -> ServiceError:
    """The error for a response that is not a success; problem documents speak for themselves."""
    status = response.status_code
    try:
        document = response.json()
    except ValueError:
        document = None
    problem = document if isinstance(document, dict) else {}
    code = str(problem.get("code", ""))
    if not code:
        line = f"what answers at {response.url} is not a Penstock service (HTTP {status})"
        return NotPenstockError(line, code="not-penstock", status=status)
    line = str(problem.get("detail", ""))
    if status == 401:
        line += ": set PENSTOCK_TOKEN"
    kind = _BY_STATUS.get(status, ServerFailedError if status >= 500 else InvalidRequestError)
    return kind(line, code=code, status=status, problem=problem)


def unreachable(url: str, error: httpx.HTTPError) -> UnreachableError:
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        line = f"no service answers at {url}: is it up? run `penstock up`, or set PENSTOCK_URL"
    elif isinstance(error, httpx.TimeoutException):
        line = f"the service at {url} took too long to answer: see `penstock doctor` and its log"
    else:
        line = f"the connection to {url} broke ({type(error).__name__}): try again"
    return UnreachableError(line, code="unreachable")


def damaged(name: str) -> DamagedDownloadError:
    line = f"{name} arrived damaged (its hash differs): fetch it again"
    return DamagedDownloadError(line, code="damaged-download")
