"""What if, in a real browser with a real worker: a lane count is changed, its effect seen, and the design run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.services.api.app import create_app
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.run_summary import RunSummary
from penstock.services.settings import Settings
from penstock.services.supervisor.postgres import EmbeddedPostgres
from tests.api.conftest import served
from tests.fixtures.service import Service, fresh_service
from tests.web.browser import BROWSER_MARKS, chromium, quiet_page
from tests.worker.test_run import MODEL, submit

pytestmark = BROWSER_MARKS
WAIT_MS = 60_000


@pytest.fixture
def service(tmp_path: Path, postgres: EmbeddedPostgres) -> Iterator[Service]:
    home = tmp_path / "home"
    home.mkdir()
    with fresh_service(home, postgres, "penstock.services.steps.bodies") as made:
        made.dispatcher()
        made.worker()
        yield made


def test_a_changed_design_is_seen_and_run(service: Service) -> None:
    run = submit(service, MODEL)
    assert service.wait(run).state == "succeeded", service.explain(run)
    settings = Settings(home=service.home, database_url=service.database.url)
    with (
        served(create_app(settings, ApiOptions(auth=False))) as url,
        chromium() as browser,
        quiet_page(browser, viewport={"width": 1280, "height": 900}) as page,
    ):
        page.goto(f"{url}/runs/{run.id}/design?kernel=first")
        lanes = page.locator('#what-if-form input[data-kind="unroll"]')
        wide = max(range(lanes.count()), key=lambda at: int(lanes.nth(at).input_value()))
        before = int(lanes.nth(wide).input_value())
        assert before > 1, "there is something to take away"
        lanes.nth(wide).fill("1")
        page.get_by_role("button", name="See the effect").click()
        page.locator("#what-if table").wait_for(timeout=WAIT_MS)
        asked = page.locator("#what-if").get_attribute("data-run")
        assert f"what_if={asked}" in page.url, "the question is in the address"
        found = RunSummary.read(page.request.get(f"{url}/v1/runs/{asked}").json()["summary"]).what_if
        assert found is not None
        assert found.before.evidence == found.after.evidence == "simulated"
        assert found.after.latency_cycles is not None
        assert found.before.latency_cycles is not None
        assert found.after.latency_cycles > found.before.latency_cycles, "fewer lanes take longer"
        assert found.before.latency_cycles == service.run_of(run).summary["latency_cycles"], "as the run says"
        page.get_by_role("button", name="Run this design").click()
        page.get_by_role("heading", name="Done").wait_for(timeout=WAIT_MS)
        taken = page.request.get(url + "/v1" + page.url.removeprefix(url)).json()
        assert taken["summary"]["latency_cycles"] == found.after.latency_cycles, "exactly the design that was seen"
        assert page.get_by_text("its design was given").is_visible()
