"""The pages as a browser has them: ten thousand trials, twenty tabs that follow a run, a real design's drawings.

A private service, the pages over loopback, a Chromium where there is one; without one, what only a browser can say is
null. `--only trials`, `--only tabs` and `--only design` do a part. The runs of the first two take steps that compute
nothing (service_load/noop.py); that of the last one is a GPT-2 block of real size by the real steps.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx

from benchmarks.registry import WALL_CLOCK, Figures, Value
from benchmarks.service_load import SLOW
from benchmarks.service_load.requests import ANSWERING, CpuMeter
from penstock.compiler.errors import PenstockError
from penstock.services.client.blocking import Client
from penstock.services.client.states import is_over
from penstock.services.supervisor.borrowed import borrowed_stack

TRIALS, TABS, FOLLOWED = 10_000, 20, 60
DESIGN = "zoo:gpt2?size=real&mode=decode"
KEPT_SECONDS = 1.2
"""Longer than the service keeps a page that it has drawn: each answer is made anew."""
TIMES, DESIGN_SECONDS, PATIENCE_SECONDS, END_SECONDS = 7, 3600.0, 60.0, 15.0
POLL_SECONDS = 5
_NOOP = {
    "PENSTOCK_STEP_MODULES": "benchmarks.service_load.noop",
    "PYTHONPATH": str(Path(__file__).resolve().parents[1]),
}
_UNKNOWN = (
    "first_byte_10k_ms", "page_10k_kb", "page_10k_cpu_ms", "dom_nodes_10k", "interactive_10k_ms", "tabs_live",
    "tabs_event_to_screen_p95_ms", "event_to_screen_p95_ms", "design_tasks", "graph_ms", "timeline_ms",
)  # fmt: skip

_SEEN = """() => {
  window.seen = [];
  const look = () => {
    for (const small of document.querySelectorAll('.tile .value small')) {
      if (!small.textContent.startsWith('of ')) continue;
      const shown = Number(small.parentElement.firstChild.textContent.replace(/\\D/g, ''));
      if (shown !== window.seen.at(-1)?.[1]) window.seen.push([Date.now(), shown]);
    }
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
}"""
_DRAWN = """() => {
  window.drawn = {};
  const parts = { graph: '#flow svg .flow-node', timeline: '#timeline svg.lane' };
  new MutationObserver(() => {
    for (const [name, part] of Object.entries(parts))
      if (!window.drawn[name] && document.querySelector(part)) window.drawn[name] = performance.now();
  }).observe(document, { subtree: true, childList: true });
}"""


@dataclass(frozen=True)
class _Service:
    """A private one, and a client of it."""

    url: str
    token: str
    client: Client


def run(only: str = "") -> Figures:
    rows: list[Mapping[str, Value]] = []
    summary: dict[str, Value] = dict.fromkeys(_UNKNOWN)
    for name, measure, settings in (("trials", _trials, _NOOP), ("tabs", _tabs, _NOOP), ("design", _design, {})):
        if only in ("", name):
            with borrowed_stack(**settings) as stack, Client(stack.url, stack.token) as client:
                service = _Service(stack.url, stack.token, client)
                with _signed_in(service) as context:
                    summary |= measure(context, service, rows)
    return Figures(WALL_CLOCK, rows, summary)


@contextmanager
def _signed_in(service: _Service) -> Iterator[Any]:
    """A browser that the service knows; None where there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None or find_spec("playwright") is None:
        yield None
        return
    playwright = import_module("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.goto(service.client.login_link())
        page.close()
        yield context
        browser.close()


def _trials(context: Any, service: _Service, rows: list[Mapping[str, Value]]) -> Mapping[str, Value]:
    """The page of a run, and the table of its trials."""
    started = service.client.submit("zoo:mlp", trials=TRIALS)
    service.client.wait(started.id, timeout=DESIGN_SECONDS)
    found = [_asked(context, service, path) for path in (started.page, f"{started.page}/trials")]
    rows += found
    return {
        "first_byte_10k_ms": _most(found, "first_byte_ms"), "page_10k_kb": _most(found, "kb"),
        "page_10k_cpu_ms": _most(found, "cpu_ms"), "dom_nodes_10k": _most(found, "dom_nodes"),
        "interactive_10k_ms": _most(found, "interactive_ms"),
    }  # fmt: skip


def _most(found: Sequence[Mapping[str, Value]], name: str) -> Value:
    """Of the worse page."""
    known = [value for one in found if isinstance(value := one[name], int | float)]
    return max(known, default=None)


def _asked(context: Any, service: _Service, path: str) -> Mapping[str, Value]:
    """Medians; the first answer, which loads what later ones have, is left out."""
    url = f"{service.url}{path}"
    headers = {"Authorization": f"Bearer {service.token}", "Accept": "text/html"}
    first_bytes: list[float] = []
    size = 0
    with httpx.Client(headers=headers, timeout=120.0, trust_env=False) as asking:
        asking.get(url).raise_for_status()
        with CpuMeter() as meter:
            for _ in range(TIMES):
                time.sleep(KEPT_SECONDS)
                began = time.monotonic()
                with asking.stream("GET", url) as answer:
                    first_bytes.append((time.monotonic() - began) * 1000)
                    size = len(answer.read())
    nodes, interactive = (None, None) if context is None else _opened(context, url)
    return {
        "measure": f"{path.split('/')[-1] if path.endswith('/trials') else 'run'}, {TRIALS} trials",
        "first_byte_ms": round(statistics.median(first_bytes), 1), "kb": round(size / 1000, 1),
        "cpu_ms": round(meter.of(ANSWERING) / TIMES * 1000, 1), "dom_nodes": nodes, "interactive_ms": interactive,
    }  # fmt: skip


def _opened(context: Any, url: str) -> tuple[int, float]:
    """Elements, and when all scripts had run, from the click on."""
    page = context.new_page()
    taken: list[float] = []
    for _ in range(TIMES):
        page.goto(url, wait_until="load")
        taken.append(page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
    nodes = int(page.evaluate("document.querySelectorAll('*').length"))
    page.close()
    return nodes, round(statistics.median(taken[1:]), 1)


def _tabs(context: Any, service: _Service, rows: list[Mapping[str, Value]]) -> Mapping[str, Value]:
    """One tab, and then twenty of one browser, while trials end by the dozen a second."""
    if context is None:
        return {}
    _followed(context, service, 1, rows)  # what a first follower loads is not what is measured
    rows.clear()
    alone, many = (_followed(context, service, tabs, rows) for tabs in (1, TABS))
    return {
        "event_to_screen_p95_ms": alone["p95_ms"], "tabs_live": many["live"],
        "tabs_event_to_screen_p95_ms": many["p95_ms"],
    }  # fmt: skip


def _followed(context: Any, service: _Service, tabs: int, rows: list[Mapping[str, Value]]) -> Mapping[str, Value]:
    """How late each end of a trial was on each screen. A tab is live if its screen came to show the last one."""
    started = service.client.submit("zoo:mlp", trials=FOLLOWED, name=f"{SLOW} {tabs}")
    service.client.pause(started.id)
    while not any(step.key == "explore" and step.state == "succeeded" for step in service.client.run(started.id).steps):
        time.sleep(0.2)
    pages = [context.new_page() for _ in range(tabs)]
    for page in pages:
        page.add_init_script(f"({_SEEN})()")
        page.goto(f"{service.url}{started.page}", wait_until="load")
    pages[0].wait_for_timeout(2000)
    service.client.resume(started.id)
    service.client.wait(started.id, timeout=DESIGN_SECONDS)
    for page in pages:
        _wait(page, f"window.seen.at(-1)?.[1] >= {FOLLOWED}", END_SECONDS)
    ends = _ends_of_trials(service, started.id)
    late: list[float] = []
    live = 0
    for page in pages:
        seen = page.evaluate("window.seen")
        reached = [next((at for at, shown in seen if shown > index), None) for index in range(len(ends))]
        live += reached[-1] is not None
        late += [at - end for at, end in zip(reached, ends, strict=True) if at is not None]
        page.close()
    ordered = sorted(late)
    found: Mapping[str, Value] = {
        "measure": f"{FOLLOWED} trials on {tabs} screens", "live": live, "ends": len(late),
        "p50_ms": round(statistics.median(ordered), 1) if ordered else None,
        "p95_ms": round(ordered[int(0.95 * (len(ordered) - 1))], 1) if ordered else None,
    }  # fmt: skip
    rows.append(found)
    return found


def _wait(page: Any, condition: str, seconds: float) -> bool:
    """Until it holds, or for so long. Playwright's own way evaluates text inside the page, which our pages forbid."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        if time.monotonic() > end:
            return False
        page.wait_for_timeout(50)
    return True


def _ends_of_trials(service: _Service, run_id: str) -> list[float]:
    """When each trial ended, in milliseconds, the first one first."""
    ends: list[float] = []
    after = 0
    address = f"{service.url}/v1/runs/{run_id}/history"
    with httpx.Client(headers={"Authorization": f"Bearer {service.token}"}, trust_env=False) as asking:
        while True:
            items = asking.get(address, params={"limit": 500, "after": after}).raise_for_status().json()["items"]
            ends += [
                datetime.fromisoformat(event["at"]).timestamp() * 1000
                for event in items
                if event["kind"] == "step.succeed" and event["data"]["key"].startswith("trial/")
            ]
            if not items:
                return sorted(ends)
            after = items[-1]["id"]


def _ended_well(service: _Service, run_id: str) -> float:
    """The seconds that a run took, which are minutes: what it is at is said meanwhile. One that failed has no page of a
    design, and would be waited for in vain."""
    began, said = time.monotonic(), ""
    found = service.client.run(run_id)
    while not is_over(found):
        doing = ", ".join(f"{one.key}: {one.progress_text}" for one in found.steps if one.state == "running")
        if doing and doing != said:
            said = doing
            print(f"dashboard: {time.monotonic() - began:.0f} s, {doing}", file=sys.stderr, flush=True)
        if time.monotonic() - began > DESIGN_SECONDS:
            raise _failed(f"the run is not over after {DESIGN_SECONDS:g} s", said or found.state)
        found = service.client.run(run_id, wait=POLL_SECONDS, after=found.last_event_id)
    if found.state != "succeeded":
        raise _failed(f"the run of {DESIGN} {found.state}", found.error.what if found.error else run_id)
    return round(time.monotonic() - began, 1)


def _failed(what: str, where: str) -> PenstockError:
    return PenstockError(code="benchmark-failed", what=what, where=where, hint="penstock doctor says what is amiss")


def _design(context: Any, service: _Service, rows: list[Mapping[str, Value]]) -> Mapping[str, Value]:
    """From the click to the drawn graph, and to the drawn timeline."""
    if context is None:
        return {}
    started = service.client.submit(DESIGN, trials=2, quantize="w8a8")
    run_s = _ended_well(service, started.id)
    taken: list[Mapping[str, float]] = []
    page = context.new_page()
    page.add_init_script(f"({_DRAWN})()")
    for _ in range(TIMES):
        page.goto(f"{service.url}{started.page}/design", wait_until="load")
        if not _wait(page, "window.drawn.graph && window.drawn.timeline", PATIENCE_SECONDS):
            raise _failed(
                f"the page of the design was not drawn within {PATIENCE_SECONDS:g} s", f"{service.url}{started.page}"
            )
        taken.append(page.evaluate("window.drawn"))
    lanes = page.locator("#timeline svg.lane").count()
    drawn = {f"{name}_ms": round(statistics.median(one[name] for one in taken[1:]), 1) for name in taken[0]}
    rows.append({"measure": f"the design of {DESIGN}", "design_tasks": lanes, "run_s": run_s, **drawn})
    return {"design_tasks": lanes, **drawn}
