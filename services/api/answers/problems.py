"""Every error the API can give, as RFC 9457 problem documents with a stable `type`.

The catalogue below is the contract: clients switch on `code`, people read `detail`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:penstock:problem:"
RETRY_SOON_SECONDS = 5


@dataclass(frozen=True)
class Kind:
    """One sort of problem: what HTTP calls it and what people call it."""

    status: int
    title: str


KINDS: Mapping[str, Kind] = {
    # the request itself
    "malformed-body": Kind(400, "The body cannot be read"),
    "bad-request": Kind(400, "The request cannot be read"),
    "token-in-url": Kind(400, "A token stands in the address"),
    "unauthenticated": Kind(401, "A valid token is needed"),
    "forbidden": Kind(403, "The token may not do this"),
    "not-yours": Kind(403, "It is somebody else's"),
    "cross-site-request": Kind(403, "The request comes from another site"),
    "python-models-refused": Kind(403, "This service takes no Python models"),
    "bodies-refused": Kind(403, "The token may not send bodies in other languages"),
    "not-found": Kind(404, "There is nothing at this address"),
    "run-not-found": Kind(404, "There is no such run"),
    "model-not-found": Kind(404, "There is no such model"),
    "artifact-not-found": Kind(404, "There is no such artifact"),
    "content-not-found": Kind(404, "There is no such content"),
    "trial-not-found": Kind(404, "There is no such trial"),
    "worker-not-found": Kind(404, "There is no such worker"),
    "view-not-found": Kind(404, "There is no such view"),
    "webhook-not-found": Kind(404, "There is no such webhook"),
    "method-not-allowed": Kind(405, "The address does not take this method"),
    "too-slow": Kind(408, "The body did not come in time"),
    "idempotency-in-flight": Kind(409, "The same request is still being worked on"),
    "run-going": Kind(409, "The run is not over"),
    "run-pinned": Kind(409, "The run is pinned"),
    "model-in-use": Kind(409, "There are runs of the model"),
    "no-search-yet": Kind(409, "The search of the run has not begun"),
    "trial-told": Kind(409, "The trial was told before"),
    "trial-not-asked": Kind(409, "Nobody asked for the trial"),
    "no-design": Kind(409, "The run has no design"),
    "run-finished": Kind(409, "The run has already finished"),
    "artifact-gone": Kind(410, "The content of this artifact has been removed"),
    "too-large": Kind(413, "The body is too large"),
    "unsupported-media-type": Kind(415, "The body has a type that this address does not take"),
    "range-not-satisfiable": Kind(416, "The range lies outside the file"),
    "unknown-host": Kind(421, "The request is addressed to another host"),
    # what was asked for
    "content-differs": Kind(422, "The content is not what its hash says"),
    "invalid-request": Kind(422, "A value is not acceptable"),
    "unknown-option": Kind(422, "There is no such option"),
    "unknown-platform": Kind(422, "There is no such platform"),
    "unknown-objective": Kind(422, "There is no such objective"),
    "unknown-limit": Kind(422, "There is no figure of that name to limit"),
    "unknown-parameter": Kind(422, "The space has no such parameter"),
    "bad-parameter": Kind(422, "The parameter has no such value"),
    "contradictory-limits": Kind(422, "Two limits cannot both be met"),
    "bad-length": Kind(422, "The model takes no such size"),
    "bad-cursor": Kind(422, "The cursor is not one of ours"),
    "bad-event-id": Kind(422, "The event id is not one of ours"),
    "idempotency-key-invalid": Kind(422, "The Idempotency-Key is not acceptable"),
    "idempotency-mismatch": Kind(422, "The Idempotency-Key was used for another request"),
    "model-file-missing": Kind(422, "No model file was sent"),
    "model-file-unsupported": Kind(422, "This kind of file is not a model"),
    "model-file-invalid": Kind(422, "The file is not the model it claims to be"),
    "entry-missing": Kind(422, "The name of a function is missing"),
    "not-a-tile-program": Kind(422, "An array is made for Triton kernels"),
    "not-of-kernels": Kind(422, "C++ kernels do not take that"),
    "entry-not-found": Kind(422, "The file does not define the entry function"),
    "zoo-reference-invalid": Kind(422, "The zoo reference cannot be read"),
    "file-options-invalid": Kind(422, "The file takes no such options"),
    "model-reference-invalid": Kind(422, "The reference names no model of a library"),
    "webhook-target-refused": Kind(422, "Webhooks may not be sent there"),
    "too-many-streams": Kind(429, "Too many event streams are open"),
    "too-many-runs": Kind(429, "Too many runs are waiting"),
    "quota-exceeded": Kind(429, "Your share of the service is used up"),
    # the service
    "internal": Kind(500, "The service made a mistake"),
    "database-unavailable": Kind(503, "The database does not answer"),
    "broker-unavailable": Kind(503, "The broker does not answer"),
    "storage-full": Kind(503, "The disk of the service is nearly full"),
}


class Problem(HTTPException):
    """An error with everything a user needs: what, where, which limit, what to do next."""

    def __init__(
        self,
        code: str,
        what: str,
        *,
        where: str = "",
        limit: str = "",
        hint: str = "",
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.code = code
        self.what = what
        self.where = where
        self.limit = limit
        self.hint = hint
        self.errors = tuple(errors)
        super().__init__(status_code=KINDS[code].status, detail=self.sentence(), headers=dict(headers or {}))

    def sentence(self) -> str:
        """The whole problem as one line of prose."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.limit:
            text += f" ({self.limit})"
        if self.hint:
            text += f" - {self.hint}"
        return text

    def document(self, *, instance: str, request_id: str) -> dict[str, Any]:
        """The members of the problem document; empty ones are left out."""
        kind = KINDS[self.code]
        members: dict[str, Any] = {
            "type": TYPE_PREFIX + self.code,
            "title": kind.title,
            "status": kind.status,
            "detail": self.detail,
            "instance": instance,
            "code": self.code,
            "what": self.what,
            "where": self.where,
            "limit": self.limit,
            "hint": self.hint,
            "errors": list(self.errors),
            "request_id": request_id,
        }
        return {name: value for name, value in members.items() if value not in ("", [])}

    def response(self, *, instance: str, request_id: str) -> JSONResponse:
        """The problem document with its media type and headers."""
        return JSONResponse(
            self.document(instance=instance, request_id=request_id),
            status_code=self.status_code,
            headers=dict(self.headers or {}),
            media_type=MEDIA_TYPE,
        )
