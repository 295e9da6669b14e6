"""A Chromium for the tests of pages: found on PATH, skipped with a reason where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")
BROWSER_MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH"),
]
EXPECTED = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "Failed to fetch")
"""What a browser's console says while a service is away."""


@contextmanager
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@contextmanager
def quiet_page(browser: Any, *, provoked: Sequence[str] = (), **options: Any) -> Iterator[Any]:
    """A page whose console must stay free of errors but those that are provoked, and that asks only the service."""
    context = browser.new_context(**options)
    opened = context.new_page()
    errors: list[str] = []
    hosts: set[str] = set()
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("request", lambda request: hosts.add(request.url.split("/")[2].split(":")[0]))
    yield opened
    context.close()
    assert [text for text in errors if not any(word in text for word in (*EXPECTED, *provoked))] == []
    assert hosts <= {"127.0.0.1"}
