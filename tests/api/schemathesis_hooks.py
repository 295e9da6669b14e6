"""What schemathesis is told of this API beside its description; it loads this file by SCHEMATHESIS_HOOKS."""

from __future__ import annotations

import uuid

import schemathesis  # pyright: ignore[reportMissingImports]
from schemathesis.specs.openapi.checks import positive_data_acceptance  # pyright: ignore[reportMissingImports]

LONGEST_WAIT = 5
"""Seconds: an answer may be waited for longer than a request is given here."""

BEYOND_A_SCHEMA = {
    "content-differs": "a body and its hash",
    "model-file-unsupported": "what is in a file",
    "model-file-missing": "a file has a name",
    "contradictory-limits": "two limits that no number meets",
    "unknown-limit": "names that are a table",
}
"""Problems of requests that a schema cannot tell from others."""


@schemathesis.hook
def before_call(context, case, kwargs):
    """A key is for one request: the same one with another body is rightly refused. Waits are cut."""
    if case.headers and "Idempotency-Key" in case.headers and case.meta.generation.mode == "positive":
        case.headers["Idempotency-Key"] = uuid.uuid4().hex
    wait = str((case.query or {}).get("wait"))
    if wait.isdecimal() and int(wait) > LONGEST_WAIT:
        case.query["wait"] = LONGEST_WAIT


@schemathesis.check
def valid_requests_are_taken(ctx, response, case):
    """No request that the description allows is refused, but for what a schema cannot say."""
    problem = response.json() if response.status_code == 422 else {}
    detail = str(problem.get("detail"))
    if problem.get("code") in BEYOND_A_SCHEMA or detail.startswith("body.limits"):
        return None
    if detail.startswith("body.reference: option ") and "is given twice" in detail:
        return None
    if problem.get("code") == "bad-cursor" and "sort" in (case.query or {}):
        return None  # a cursor is of the order that it was given for
    if problem.get("code") == "webhook-target-refused" and ("no address" not in detail or "//[" in case.body["url"]):
        return None  # which targets are allowed an administrator says; IPv6 has a grammar of its own
    return positive_data_acceptance(ctx, response, case)
