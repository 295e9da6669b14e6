"""Whatever is sent, the answer is a success or a problem document: never a 5xx, never a traceback."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

KNOWN_FORMS = [f"{kind}_01m7xngjf73j71t75hyx4msfc9" for kind in ("run", "mdl", "art", "stp")]
IDS = st.sampled_from([*KNOWN_FORMS, "latest", "0", "run_", "null"])
TEXT = st.text(max_size=40)
SEGMENT = st.one_of(IDS, TEXT.filter(lambda text: text not in ("", ".", "..") and "/" not in text))
NUMBER = st.one_of(st.integers(), st.floats(), st.integers(-(2**70), 2**70))
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
ADDRESSES = (
    "/v1/models", "/v1/models/{}", "/v1/runs", "/v1/runs/{}", "/v1/runs/{}/cancel", "/v1/runs/{}/trials",
    "/v1/runs/{}/artifacts", "/v1/runs/{}/events", "/v1/runs/{}/history", "/v1/artifacts/{}", "/v1/platforms",
    "/v1/health", "/v1/{}", "/runs", "/runs/{}", "/login", "/static/{}",
)  # fmt: skip
METHODS = st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
QUERY = st.dictionaries(
    st.sampled_from(["limit", "cursor", "state", "model", "after", "sort", "inline", "next", "x"]),
    st.one_of(TEXT, NUMBER.map(str), IDS),
    max_size=3,
)  # fmt: skip
VISIBLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30)
HEADERS = st.dictionaries(
    st.sampled_from(["Range", "If-None-Match", "Last-Event-ID", "Idempotency-Key", "Accept", "X-Request-Id", "Cookie"]),
    st.one_of(VISIBLE, st.sampled_from(["bytes=0-", "bytes=-1", "text/html", "*/*", "\u00e9"])),
    max_size=2,
)  # fmt: skip
RUN = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(("model", "platform", "trials", "quantize", "seed", "objectives", "name", "colour"), JSON),
)
MODEL = st.fixed_dictionaries({}, optional=dict.fromkeys(("zoo", "arguments", "name", "file"), JSON))
CHECKS = settings(max_examples=70, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def check(response: httpx.Response) -> None:
    assert response.status_code < 500, response.text
    assert "Traceback" not in response.text
    if response.status_code >= 400 and response.request.method != "HEAD":
        kind = response.headers["content-type"]
        if kind.startswith("text/html"):
            assert "</html>" in response.text
            return
        assert kind == "application/problem+json", response.text
        document = response.json()
        assert document["status"] == response.status_code
        assert document["type"].endswith(document["code"])
        assert document["what"]


@CHECKS
@given(st.sampled_from(ADDRESSES), SEGMENT, METHODS, QUERY, HEADERS, st.one_of(st.none(), st.binary(max_size=200)))
def test_any_request(
    shared_client: httpx.Client, address: str, segment: str, method: str, query: dict[str, str],
    headers: dict[str, str], body: bytes | None,
) -> None:  # fmt: skip
    path = address.format(_quoted(segment))
    url = path + (f"?{urlencode({name: _clean(value) for name, value in query.items()})}" if query else "")
    sent = [(name.encode(), value.encode()) for name, value in headers.items()]
    check(shared_client.request(method, url, headers=sent, content=body))


@CHECKS
@given(st.sampled_from(["/v1/runs", "/v1/models"]), st.one_of(RUN, MODEL, JSON))
def test_any_json(shared_client: httpx.Client, address: str, body: Any) -> None:
    content = json.dumps(body).encode()
    check(shared_client.post(address, content=content, headers={"Content-Type": "application/json"}))


@CHECKS
@given(
    st.one_of(st.just("model.py"), st.just("model.onnx"), TEXT.filter(bool)),
    st.one_of(st.binary(max_size=200), TEXT.map(lambda text: text.encode("utf-8", "replace"))),
    st.dictionaries(st.sampled_from(["entry", "name", "file", "colour"]), TEXT, max_size=3),
)
def test_any_upload(shared_client: httpx.Client, name: str, content: bytes, fields: dict[str, str]) -> None:
    data = {field: _clean(value) for field, value in fields.items()}
    check(shared_client.post("/v1/models", files={"file": (_clean(name), content)}, data=data))


@pytest.mark.parametrize(
    "path", ["/v1/runs/%ff", "/v1/runs/%00", "/%2e%2e/%2e%2e/etc/passwd", "/static/../app.py", "//x"]
)
def test_odd_paths(shared_client: httpx.Client, path: str) -> None:
    check(shared_client.get(path, headers={"Accept": "application/json"}))


def _clean(text: str) -> str:
    """Text as it can be sent: lone surrogates have no bytes."""
    return text.encode("utf-8", "replace").decode()


def _quoted(text: str) -> str:
    return quote(_clean(text), safe="")
