"""Idempotency-Key: the same request again gives the same answer, for a day; so CI may retry without fear.

The key is written in the transaction that does the work: a crash takes both back. An advisory lock that goes
with the transaction tells a request that is in flight from one that is done.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Header
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from penstock.db import Transaction
from penstock.services.api.answers.problems import Problem
from penstock.services.api.plumbing.auth import Who

REPLAYED = "Idempotency-Replayed"
_FORM = re.compile(r"[\x21-\x7e]{1,200}")
_KEPT_HEADERS = ("location", "retry-after")

IdempotencyHeader = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="up to 200 visible characters; the same key and body give the same answer for 24 h",
        json_schema_extra={"pattern": f"^{_FORM.pattern}$"},
    ),
]


def check_key(key: str | None) -> None:
    """Refuses keys that cannot be kept."""
    if key is not None and not _FORM.fullmatch(key):
        raise Problem(
            "idempotency-key-invalid",
            "the key is empty, too long or has characters that cannot be seen",
            where="header Idempotency-Key",
            limit="1 to 200 visible ASCII characters",
            hint="use a random UUID",
        )


def request_hash(address: str, body: Any) -> str:
    """What makes two requests the same: where they went, and what their bodies say."""
    text = json.dumps([address, body], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def once(
    tx: Transaction,
    *,
    caller: Who,
    key: str | None,
    fingerprint: str,
    work: Callable[[], JSONResponse],
) -> JSONResponse:
    """The response of `work`, or the one that the same request got before."""
    if key is None:
        return work()
    scope = caller.actor
    if not tx.idempotency.try_lock(scope, key):
        raise Problem(
            "idempotency-in-flight",
            "a request with this key is still being worked on",
            where="header Idempotency-Key",
            hint="send it again in a second",
            headers={"Retry-After": "1"},
        )
    tx.idempotency.expire(scope, key)
    known = tx.idempotency.begin(scope, key, fingerprint)
    if known is None:
        response = work()
        headers = {name: value for name, value in response.headers.items() if name in _KEPT_HEADERS}
        body = json.loads(bytes(response.body))
        tx.idempotency.complete(scope, key, status=response.status_code, headers=headers, body=body)
        return response
    if known.request_hash != fingerprint:
        raise Problem(
            "idempotency-mismatch",
            "this key was used for another request",
            where="header Idempotency-Key",
            hint="use a fresh key for each new request",
        )
    assert known.status is not None, "the key and its answer are written in one transaction"
    return JSONResponse(known.body, status_code=known.status, headers={**(known.headers or {}), REPLAYED: "true"})


class _Written(JSONResponse):
    """A document written by its model, which takes a third of the time."""

    def render(self, content: BaseModel) -> bytes:
        return content.model_dump_json().encode()


def json_response(document: BaseModel, status: int, headers: dict[str, str]) -> JSONResponse:
    """A document as a response whose body can be kept for replay."""
    return _Written(document, status_code=status, headers=headers)
