"""Each operation of the API as a value: what to send and what comes back. Both clients only carry these."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from penstock.compiler.search_space import SpaceInfo
from penstock.services.api.answers.health import HealthOut, WorkerList
from penstock.services.api.answers.labels import ViewList, ViewOut
from penstock.services.api.answers.schemas import (
    ArtifactList,
    AskedTrials,
    LoginLink,
    MeOut,
    ModelList,
    ModelOut,
    PlatformList,
    RunDetail,
    RunList,
    TrialDetail,
    TrialFront,
    TrialList,
)
from penstock.services.api.answers.upkeep import (
    Collected,
    DeliveryList,
    FreedOut,
    WebhookList,
    WebhookSecret,
)
from penstock.services.client.errors import NotPenstockError
from penstock.services.client.model_source import ModelSource

D = TypeVar("D", bound=BaseModel)

LONGEST_POLL_SECONDS = 30
_PAGE, _TRIALS_A_PAGE = 100, 500
_UPLOAD_SECONDS = 600.0


class Nothing(BaseModel):
    """An answer without a body."""


@dataclass(frozen=True)
class ApiCall(Generic[D]):
    """One request and the type of its answer. `accept` names statuses that are answers too."""

    method: str
    path: str
    answer: type[D]
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None
    form: Mapping[str, str] = field(default_factory=dict[str, str])
    files: tuple[tuple[str, Path], ...] = ()
    """Each by the name that it is sent under."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: float = 30.0
    accept: tuple[int, ...] = ()

    def read(self, response: httpx.Response) -> D:
        try:
            return self.answer.model_validate_json(
                response.content if response.content not in (b"", b"null") else b"{}"
            )
        except ValidationError:
            line = f"what answers at {response.url} is not a Penstock service of this version"
            raise NotPenstockError(line, code="not-penstock", status=response.status_code) from None


def health() -> ApiCall[HealthOut]:
    return ApiCall("GET", "/v1/health", HealthOut, accept=(503,))


def me() -> ApiCall[MeOut]:
    return ApiCall("GET", "/v1/me", MeOut)


def login_link() -> ApiCall[LoginLink]:
    return ApiCall("POST", "/v1/login-links", LoginLink)


def platforms() -> ApiCall[PlatformList]:
    return ApiCall("GET", "/v1/platforms", PlatformList)


def submit_model(source: ModelSource, name: str, key: str) -> ApiCall[ModelOut]:
    once = _once(key)
    said = {"entry": source.entry, "options": source.options, "name": name}
    form = {field: value for field, value in said.items() if value}
    files = (*(one for one in (source.path, source.program) if one is not None), *source.weights)
    named = (*source.sources, *((path.name, path) for path in files))
    if named:
        return ApiCall("POST", "/v1/models", ModelOut, form=form, files=named, headers=once, seconds=_UPLOAD_SECONDS)
    if source.reference:
        body = {"reference": source.reference, "name": name}
        return ApiCall("POST", "/v1/models", ModelOut, body=body, headers=once)
    body = {"zoo": source.zoo, "arguments": dict(source.arguments or {}), "name": name}
    return ApiCall("POST", "/v1/models", ModelOut, body=body, headers=once)


def model(model_id: str) -> ApiCall[ModelOut]:
    return ApiCall("GET", f"/v1/models/{_word(model_id)}", ModelOut)


def models(cursor: str | None) -> ApiCall[ModelList]:
    return ApiCall("GET", "/v1/models", ModelList, params=_present({"limit": _PAGE, "cursor": cursor}))


def check_model(model_id: str, options: Mapping[str, Any], key: str) -> ApiCall[RunDetail]:
    return ApiCall("POST", f"/v1/models/{_word(model_id)}/check", RunDetail, body=dict(options), headers=_once(key))


def make_array(model_id: str, asked: Mapping[str, Any], key: str) -> ApiCall[RunDetail]:
    return ApiCall("POST", f"/v1/models/{_word(model_id)}/array", RunDetail, body=dict(asked), headers=_once(key))


def submit_run(model_id: str, options: Mapping[str, Any], key: str) -> ApiCall[RunDetail]:
    return ApiCall("POST", "/v1/runs", RunDetail, body={"model": model_id, **options}, headers=_once(key))


def run(run_id: str, wait: int, after: int | None) -> ApiCall[RunDetail]:
    query = _present({"wait": wait or None, "after": after if wait else None})
    return ApiCall("GET", _run(run_id), RunDetail, params=query, seconds=wait + 30.0)


def runs(limit: int, state: str, model_id: str, tag: str, cursor: str | None) -> ApiCall[RunList]:
    asked = {"state": state or None, "model": model_id or None, "tag": tag or None}
    query = {"limit": min(limit, _PAGE), **asked, "cursor": cursor}
    return ApiCall("GET", "/v1/runs", RunList, params=_present(query))


def change(run_id: str, what: str) -> ApiCall[RunDetail]:
    """cancel, pause, resume, pin or unpin."""
    return ApiCall("POST", f"{_run(run_id)}/{what}", RunDetail)


def label(run_id: str, tags: Sequence[str] | None, notes: str | None) -> ApiCall[RunDetail]:
    body = _present({"tags": None if tags is None else list(tags), "notes": notes})
    return ApiCall("PATCH", _run(run_id), RunDetail, body=body)


def views() -> ApiCall[ViewList]:
    return ApiCall("GET", "/v1/views", ViewList)


def save_view(name: str, query: Mapping[str, str]) -> ApiCall[ViewOut]:
    return ApiCall("POST", "/v1/views", ViewOut, body={"name": name, **query})


def delete_view(view_id: str) -> ApiCall[Nothing]:
    return ApiCall("DELETE", f"/v1/views/{_word(view_id)}", Nothing)


def delete_run(run_id: str) -> ApiCall[FreedOut]:
    return ApiCall("DELETE", _run(run_id), FreedOut)


def delete_model(model_id: str) -> ApiCall[Nothing]:
    return ApiCall("DELETE", f"/v1/models/{_word(model_id)}", Nothing)


def collect(days: float, dry_run: bool) -> ApiCall[Collected]:
    body = {"older_than_days": days, "dry_run": dry_run}
    return ApiCall("POST", "/v1/gc", Collected, body=body, seconds=_UPLOAD_SECONDS)


def extend(run_id: str, trials: int, key: str) -> ApiCall[RunDetail]:
    return ApiCall("POST", f"{_run(run_id)}/extend", RunDetail, body={"trials": trials}, headers=_once(key))


def space(run_id: str) -> ApiCall[SpaceInfo]:
    return ApiCall("GET", f"{_run(run_id)}/space", SpaceInfo)


def ask(run_id: str, trials: int, key: str) -> ApiCall[AskedTrials]:
    return ApiCall("POST", f"{_run(run_id)}/ask", AskedTrials, body={"trials": trials}, headers=_once(key))


def tell(run_id: str, number: int, params: Mapping[str, Any] | None) -> ApiCall[TrialDetail]:
    body = {"params": None if params is None else dict(params)}
    return ApiCall("POST", f"{_run(run_id)}/trials/{number}/tell", TrialDetail, body=body)


def replay(run_id: str, number: int) -> ApiCall[RunDetail]:
    return ApiCall("POST", f"{_run(run_id)}/trials/{number}/replay", RunDetail)


def trials(run_id: str, cursor: str | None) -> ApiCall[TrialList]:
    query = _present({"limit": _TRIALS_A_PAGE, "cursor": cursor})
    return ApiCall("GET", f"{_run(run_id)}/trials", TrialList, params=query)


def trial(run_id: str, number: int) -> ApiCall[TrialDetail]:
    return ApiCall("GET", f"{_run(run_id)}/trials/{number}", TrialDetail)


def front(run_id: str, objectives: Sequence[str]) -> ApiCall[TrialFront]:
    query = {"objectives": list(objectives)} if objectives else {}
    return ApiCall("GET", f"{_run(run_id)}/front", TrialFront, params=query)


def artifacts(run_id: str) -> ApiCall[ArtifactList]:
    return ApiCall("GET", f"{_run(run_id)}/artifacts", ArtifactList)


def workers() -> ApiCall[WorkerList]:
    return ApiCall("GET", "/v1/workers", WorkerList)


def drain_worker(name: str) -> ApiCall[WorkerList]:
    return ApiCall("POST", f"/v1/workers/{_word(name)}/drain", WorkerList)


def create_webhook(url: str, kinds: Sequence[str], everybody: bool) -> ApiCall[WebhookSecret]:
    body = {"url": url, "everybody": everybody} | ({"kinds": list(kinds)} if kinds else {})
    return ApiCall("POST", "/v1/webhooks", WebhookSecret, body=body)


def webhooks() -> ApiCall[WebhookList]:
    return ApiCall("GET", "/v1/webhooks", WebhookList)


def delete_webhook(webhook_id: str) -> ApiCall[Nothing]:
    return ApiCall("DELETE", f"/v1/webhooks/{_word(webhook_id)}", Nothing)


def rotate_webhook(webhook_id: str) -> ApiCall[WebhookSecret]:
    return ApiCall("POST", f"/v1/webhooks/{_word(webhook_id)}/rotate", WebhookSecret)


def test_webhook(webhook_id: str) -> ApiCall[Nothing]:
    return ApiCall("POST", f"/v1/webhooks/{_word(webhook_id)}/test", Nothing)


def deliveries(webhook_id: str) -> ApiCall[DeliveryList]:
    return ApiCall("GET", f"/v1/webhooks/{_word(webhook_id)}/deliveries", DeliveryList)


def events_path(run_id: str) -> str:
    return f"{_run(run_id)}/events"


def new_key() -> str:
    """Under which a request that is sent twice is done once."""
    return str(uuid.uuid4())


def _once(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key or new_key()}


def _run(run_id: str) -> str:
    return f"/v1/runs/{_word(run_id)}"


def _word(text: str) -> str:
    return quote(text, safe="")


def _present(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}
