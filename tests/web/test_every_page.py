"""Every page at three widths, light and dark: nothing sticks out, nothing is cut off, nobody is kept out.

What is measured: the console and the hosts that are asked, the width of the page, text that its box hides, words of
drawings outside the screen, and what axe-core calls serious.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.db.lifecycle import StepOutcome
from penstock.db.schema.records import Run
from penstock.services.api.app import create_app
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.settings import Settings
from tests.api.conftest import served
from tests.api.seeding import Seeder
from tests.web.browser import BROWSER_MARKS, chromium, quiet_page
from tests.web.reports import KERNEL, kernel_record, report_of
from tests.web.states import seed_states

pytestmark = BROWSER_MARKS
AXE = gzip.decompress((Path(__file__).parent / "vendor" / "axe-4.14.1.min.js.gz").read_bytes()).decode()

CUT_OFF = """() => {
  const found = [];
  const isScrolled = (one) => one.closest('.flow, .timeline, .scroll, .tall, pre, [hidden], .visually-hidden');
  for (const one of document.querySelectorAll('body *')) {
    if (one.closest('.visually-hidden, .skip, svg, thead') || one.title || !one.innerText?.trim()) continue;
    const style = getComputedStyle(one);
    const hides = (value) => value === 'hidden' || value === 'clip';
    const isCut = hides(style.overflowX) && one.scrollWidth > one.clientWidth + 1;
    if (isCut) found.push(`${one.className}: ${one.innerText}`);
  }
  for (const one of document.querySelectorAll('svg text')) {
    const box = one.getBoundingClientRect();
    if (!box.width || isScrolled(one)) continue;
    if (box.left < -1 || box.right > innerWidth + 1) found.push(`drawn: ${one.textContent}`);
  }
  return found;
}"""
SERIOUS = """async () => {
  const found = await axe.run(document, { resultTypes: ['violations'] });
  return found.violations.filter((one) => ['serious', 'critical'].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`);
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


def _write_beside(seeder: Seeder, done: Run, going: Run) -> None:
    """Tags, notes and a view as long as they may be, and a tool that says long lines."""
    step = seeder.claim(going, "trial/0006")
    line = f"INFO: [HLS 200-10] Analyzing design file '{'a-very-long-path/' * 9}x.cpp' ...\n"
    with seeder.database.begin() as tx:
        tx.step_logs.write(step.id, step.fence, line * 30)
        tx.runs.lock(done.id)
        tx.runs.set_labels(done.id, ["paper", "w" * 40, *(f"t{n}" for n in range(18))], "Fits.\n" + "word " * 200)
        tx.views.save(owner=None, name="those of the paper: " + "n" * 40, query={"tag": "paper"})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1440])
def test_every_page(browser: Any, settings: Settings, seeder: Seeder, width: int, scheme: str) -> None:
    done = seeder.finished_run(
        24, report=report_of(24), name="a-name-without-any-blank-in-it-that-is-longer-than-every-column-of-every-table"
    )
    going = seeder.run(trials=12, name="attention, with a limit", limits=["latency_us<=5"])
    seeder.explore(going, 12)
    for number in range(5):
        seeder.trial(going, number)
    seeder.claim(going, "trial/0005")
    states = seed_states(seeder)
    failed = states["failed"]
    kernel = seeder.run(seeder.kernel(KERNEL), name="a kernel in C++")
    other = seeder.run(seeder.kernel(KERNEL.replace("* 3", "* 5")), name="the same with a change")
    record = json.dumps(kernel_record()).encode()
    for one in (kernel, other):
        seeder.finish(one, "import", StepOutcome(result={}, artifacts=[seeder.file("kernel.json", record)]))
    _write_beside(seeder, done, going)
    run = f"/runs/{done.id}"
    pages = (
        "/runs", run, f"{run}/trials", f"{run}/trials?where=fc1.unroll>=4#parallel", f"{run}/trials/0",
        f"{run}/trials/3", f"{run}/slices", f"{run}/over-time",
        f"{run}/design?kernel=blocks.0.layer2", f"/runs/{kernel.id}/design",
        f"/runs/{kernel.id}/design?what_if={other.id}", f"{run}/log",
        f"/runs/{going.id}", f"/runs/{going.id}/trials", f"/runs/{going.id}/design",
        *(f"/runs/{one.id}" for one in states.values()),
        f"/runs/{failed.id}/log", "/compare", f"/compare?run={done.id}&run={going.id}", "/submit",
        f"/submit?run={done.id}", "/service",
        "/service/storage", "/service/machine", "/measurements", "/login", "/runs?words=nothing-like-this",
    )  # fmt: skip
    faults: list[str] = []
    with (
        served(create_app(settings, ApiOptions())) as url,
        served(create_app(settings, ApiOptions(low_disk_bytes=1 << 60))) as full,
        quiet_page(
            browser, viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        ) as page,
    ):
        for path in (*(url + path for path in pages), f"{full}/runs", f"{full}/service", f"{full}{run}"):
            page.goto(path)
            page.wait_for_load_state("load")
            wide = page.evaluate("document.documentElement.scrollWidth")
            faults += [f"{path}: {wide} pixels wide"] if wide > width else []
            faults += [f"{path}: cut off: {text[:120]}" for text in page.evaluate(CUT_OFF)]
            page.evaluate(AXE)
            faults += [f"{path}: {text}" for text in page.evaluate(SERIOUS)]
    assert not faults, "\n".join(faults)
