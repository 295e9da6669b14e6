"""What if, in a real browser with a real worker: lanes or a kernel's source are changed, the effect seen, and run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.services.api.app import create_app
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.run_summary import RunSummary
from penstock.services.settings import Settings
from penstock.services.supervisor.postgres import EmbeddedPostgres
from tests.api.conftest import served
from tests.fixtures.service import Service, fresh_service
from tests.web.browser import BROWSER_MARKS, chromium, quiet_page
from tests.web.reports import KERNEL
from tests.worker.test_run import MODEL, submit

pytestmark = BROWSER_MARKS
WAIT_MS = 120_000


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


def test_a_changed_source_of_a_kernel_is_seen_and_run(service: Service, tmp_path: Path) -> None:
    (tmp_path / "chain.cpp").write_text(KERNEL)
    settings = Settings(home=service.home, database_url=service.database.url)
    with (
        served(create_app(settings, ApiOptions(auth=False))) as url,
        chromium() as browser,
        quiet_page(browser, viewport={"width": 1280, "height": 900}) as page,
    ):
        page.goto(f"{url}/submit")
        page.get_by_label("a kernel in HLS C++").check()
        page.locator("#sources").set_input_files(tmp_path / "chain.cpp")
        page.locator("#top").fill("chain")
        page.get_by_role("button", name="Start the run").click()
        page.get_by_role("heading", name="Done", exact=True).wait_for(timeout=WAIT_MS)
        page.get_by_role("link", name="See the design").click()
        page.locator("#flow .flow-node").first.wait_for(timeout=WAIT_MS)
        assert page.locator("#flow .flow-node").count() == 2
        _change(page, "b[i] = sum;", "b[i] = sum * sum;")
        page.locator("#what-if table").wait_for(timeout=WAIT_MS)
        assert page.locator("#what-if tr", has_text="DSP").locator(".change").inner_text().endswith("more")
        asked = page.url
        _change(page, "b[i] = sum * sum;", "b[i] = sum * sum")
        page.locator("#what-if .notice", has_text="chain.cpp:").wait_for(timeout=WAIT_MS)
        assert page.get_by_role("button", name="Run this source").count() == 0
        page.goto(asked)
        page.get_by_role("button", name="Run this source").click()
        page.get_by_role("heading", name="Done", exact=True).wait_for(timeout=WAIT_MS)
        page.get_by_role("link", name="See the design").click()
        assert "sum * sum" in page.locator("#now-source").inner_text()


def _change(page: Any, old: str, new: str) -> None:
    source = page.locator("#what-if textarea")
    if not source.is_visible():
        page.locator("#what-if summary").click()
    text = source.input_value()
    assert text.count(old) == 1
    source.fill(text.replace(old, new))
    page.get_by_role("button", name="See the effect").click()
