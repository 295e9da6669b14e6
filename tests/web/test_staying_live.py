"""Pages that stay open: tabs that share one stream, a connection that is lost and found, a token that ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.db import Database
from penstock.db.schema.records import Run
from penstock.services.api.app import create_app
from penstock.services.api.plumbing.accounts import create
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.settings import Settings
from tests.api.conftest import served
from tests.api.seeding import Seeder
from tests.web.browser import BROWSER_MARKS, chromium, quiet_page

pytestmark = BROWSER_MARKS
WAIT_MS = 120_000
TASKS = Path(__file__).resolve().parents[2] / "examples" / "tasks" / "producer_consumer.py"
AWAY = ("ERR_INTERNET_DISCONNECTED", "status of 401")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    with quiet_page(browser, provoked=AWAY, viewport={"width": 1280, "height": 900}) as opened:
        yield opened


@pytest.fixture
def run(seeder: Seeder) -> Run:
    started = seeder.run(trials=9)
    seeder.explore(started, 9)
    return started


def _says(page: Any, done: int) -> None:
    page.get_by_text(f"{done} of 9", exact=True).first.wait_for(timeout=WAIT_MS)


def test_tabs_of_one_browser_share_a_stream_and_its_answers(
    page: Any, settings: Settings, seeder: Seeder, run: Run
) -> None:
    asked: list[str] = []
    page.context.on("request", lambda request: asked.append(request.url))
    with served(create_app(settings, ApiOptions())) as url:
        tabs = [page, *(page.context.new_page() for _ in range(7))]
        for tab in tabs:
            tab.goto(f"{url}/runs/{run.id}")
            tab.get_by_text("live", exact=True).or_(tab.get_by_text("refreshes")).first.wait_for(timeout=WAIT_MS)
        asked.clear()
        for number in range(3):
            seeder.trial(run, number)
            for tab in tabs:
                _says(tab, number + 1)
        pages = [address for address in asked if address.endswith(run.id)]
        assert len(pages) < 3 * len(tabs), "one asks, and the others are told"
        for tab in tabs:
            tab.get_by_text("live", exact=True).wait_for(timeout=WAIT_MS)
        assert sum("/events" in address for address in asked) <= 1
        tabs[0].close()  # it had the stream: another takes its place
        seeder.trial(run, 3)
        for tab in tabs[1:]:
            _says(tab, 4)


def test_a_lost_connection_is_told_and_taken_up_again(page: Any, settings: Settings, seeder: Seeder, run: Run) -> None:
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/runs/{run.id}")
        page.get_by_text("live", exact=True).wait_for(timeout=WAIT_MS)
        page.context.set_offline(True)
        page.get_by_text("no answer from the service").wait_for(timeout=WAIT_MS)
        seeder.trial(run, 0)
        page.context.set_offline(False)
        _says(page, 1)
        page.get_by_text("live", exact=True).wait_for(timeout=WAIT_MS)


def test_who_may_no_longer_read_is_asked_to_sign_in(
    page: Any, settings: Settings, seeder: Seeder, database: Database, run: Run
) -> None:
    token = create(database, settings, "reads", owner="somebody", scope="read").secret
    with served(create_app(settings, ApiOptions(auth=True))) as url:
        page.goto(f"{url}/runs/{run.id}")
        page.locator("input[name=token]").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("live", exact=True).wait_for(timeout=WAIT_MS)
        page.context.clear_cookies()
        seeder.trial(run, 0)
        page.locator("input[name=token]").wait_for(timeout=WAIT_MS)
        assert f"next=/runs/{run.id}" in page.url


def test_a_task_program_is_started_by_the_form(page: Any, settings: Settings, seeder: Seeder) -> None:
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/submit")
        page.get_by_label("a file: a model or a task program").check()
        page.locator("#file").set_input_files(TASKS)
        page.get_by_role("button", name="Start the run").click()
        page.wait_for_url("**/runs/run_*", timeout=WAIT_MS)
        page.get_by_text("(tasks)").wait_for(timeout=WAIT_MS)
    with seeder.database.begin() as tx:
        assert tx.models.list(limit=1, cursor=None).items[0].kind == "tasks"
