"""The pages in a real browser: news arrives by itself, the stop button works, an outage is told, nothing is blocked.

Needs the Python package playwright and a Chromium on PATH; skipped without them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from penstock.services.api.app import create_app
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.settings import Settings
from tests.api.conftest import served
from tests.api.seeding import Seeder

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
playwright = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH"),
]
WAIT_MS = 120_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page whose console must stay free of errors: a blocked script or style would be one."""
    opened = browser.new_page()
    errors: list[str] = []
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    opened.close()
    expected = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "Failed to fetch")
    assert [text for text in errors if not any(word in text for word in expected)] == []


def test_news_arrives_and_open_details_stay_open(page: Any, settings: Settings, seeder: Seeder) -> None:
    run = seeder.run(trials=3)
    seeder.lose(run, "import")
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/runs/{run.id}")
        page.get_by_text("live", exact=True).wait_for(timeout=WAIT_MS)
        seeder.explore(run, 3)
        page.get_by_text("0 / 3").first.wait_for(timeout=WAIT_MS)
        details = page.locator("details", has_text="earlier attempts")
        details.locator("summary").click()
        seeder.trial(run, 0)
        page.locator("#trial-0 .badge.succeeded").wait_for(timeout=WAIT_MS)
        assert details.get_attribute("open") is not None
        seeder.trial(run, 1)
        seeder.trial(run, 2)
        seeder.complete(run, 0)
        page.get_by_role("heading", name="Done").wait_for(timeout=WAIT_MS)
        page.get_by_text("this run is over").wait_for(timeout=WAIT_MS)


def test_the_stop_button_asks_and_then_stops(page: Any, settings: Settings, seeder: Seeder) -> None:
    run = seeder.run()
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/runs/{run.id}")
        page.once("dialog", lambda dialog: dialog.dismiss())
        page.get_by_role("button", name="Stop the run").click()
        assert seeder.reload(run).state == "queued"
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Stop the run").click()
        page.get_by_role("heading", name="Stopped").wait_for(timeout=WAIT_MS)
    assert seeder.reload(run).state == "cancelled"


def test_the_list_refreshes_and_an_outage_is_told(page: Any, settings: Settings, seeder: Seeder) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(served(create_app(settings, ApiOptions())))
        page.goto(f"{url}/runs")
        page.get_by_text("No runs yet").wait_for(timeout=WAIT_MS)
        run = seeder.run(name="appears by itself")
        page.get_by_role("link", name="appears by itself").wait_for(timeout=WAIT_MS)
        stack.close()
        page.get_by_text("no answer from the service").wait_for(timeout=WAIT_MS)
        assert page.get_by_role("link", name="appears by itself").is_visible(), f"{run.id} stays on the screen"


def test_pages_read_in_the_dark_and_on_a_phone(browser: Any, settings: Settings, seeder: Seeder) -> None:
    run = seeder.finished_run(24)
    with served(create_app(settings, ApiOptions())) as url:
        context = browser.new_context(color_scheme="dark", viewport={"width": 390, "height": 800})
        opened = context.new_page()
        for path in ("/runs", f"/runs/{run.id}"):
            opened.goto(url + path)
            dark = opened.evaluate("getComputedStyle(document.body).backgroundColor")
            assert dark == "rgb(16, 21, 27)"
            assert opened.evaluate("document.documentElement.scrollWidth") <= 390, "nothing sticks out of the screen"
        context.close()
