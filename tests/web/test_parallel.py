"""Parallel coordinates: a part of an axis holds the table and the marks, stands in the address, and is let go again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from penstock.services.api.app import create_app
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.settings import Settings
from penstock.web.parallel import draw_parallel
from penstock.web.trials_view import KnownTrials
from tests.api.conftest import served
from tests.api.seeding import Seeder
from tests.web.browser import BROWSER_MARKS, chromium, quiet_page

WAIT_MS = 120_000
SLOTS = ("a", "b", "a", "c")
TRIALS = [
    {"number": n, "state": "complete", "chosen": n == 3, "params": {"lanes": 4**n, "order": slot},
     "figures": {"latency_us": 10.0 / (n + 1)}}
    for n, slot in enumerate(SLOTS)
]  # fmt: skip


def test_a_part_of_an_axis_is_what_the_conditions_say() -> None:
    asked = [("lanes", ">=", "4"), ("lanes", "<=", "16"), ("order", "=", "a|b")]
    plot = draw_parallel(KnownTrials(rows=TRIALS[1:3], beside=TRIALS, kept=frozenset({1, 2}), conditions=asked))
    assert plot is not None
    rails = {rail.key: rail for rail in plot.rails}
    assert (rails["lanes"].top, rails["lanes"].bottom) == (33.3, 66.7), "of 1, 4, 16 and 64 the middle ones"
    assert (rails["lanes"].top_words, rails["lanes"].bottom_words) == ("16", "4")
    assert (rails["order"].top, rails["order"].bottom) == (0, 50)
    assert not rails["latency_us"].is_held
    assert [strand.number for strand in plot.strands] == [1, 2]
    assert [style for style, _ in plot.others] == ["faded"]
    everything = draw_parallel(KnownTrials(rows=TRIALS, beside=TRIALS))
    assert everything is not None
    assert [(rail.low, rail.high) for rail in everything.rails] == [(rail.low, rail.high) for rail in plot.rails]
    assert not everything.is_held
    assert not everything.others


def test_what_contradicts_itself_holds_nothing_to_an_axis() -> None:
    asked = [("lanes", ">=", "16"), ("lanes", "<=", "x"), ("lanes", "<=", "1")]
    plot = draw_parallel(KnownTrials(rows=TRIALS, beside=TRIALS, conditions=asked))
    assert plot is not None
    assert not plot.is_held


def test_one_of_several_words_is_asked_for(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(24)
    address = f"/runs/{run.id}/trials"

    def shown(where: str) -> set[str]:
        return set(re.findall(r'<tr id="(trial-\d+)"', client.get(address, params={"where": where}).text))

    assert shown("fc1.unroll=1|8") == shown("fc1.unroll=1") | shown("fc1.unroll=8")
    assert shown("fc1.unroll=1|8")
    assert shown("fc1.tile=[16,4]|[16,8]") == shown("fc1.tile=[16,4]") | shown("fc1.tile=[16,8]")
    assert shown("fc1.tile=[16,4]")
    page = client.get(address, params={"where": "fc1.unroll>=8"}).text
    assert 'class="faded"' in page, "marks that do not pass are pale"
    assert "not in the table" in page
    assert '<details class="inset" id="parallel" open>' in page
    assert "not in the table" not in client.get(address).text


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    with quiet_page(browser, viewport={"width": 1280, "height": 900}) as opened:
        yield opened


def _marked(test: Any) -> Any:
    for mark in BROWSER_MARKS:
        test = mark(test)
    return test


@_marked
def test_axes_are_held_by_mouse_and_keys(page: Any, settings: Settings, seeder: Seeder) -> None:
    run = seeder.finished_run(24)
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/runs/{run.id}/trials?sort=latency_us#parallel")
        rail = page.locator('.rail-part[data-key="fc1.unroll"]')
        box = rail.locator(".rail-room").bounding_box()
        everything = page.locator("#table tbody tr").count()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 1)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.5, steps=4)
        page.mouse.up()
        page.wait_for_url("**where=fc1.unroll*", timeout=WAIT_MS)
        assert "sort=latency_us" in page.url, "the order stays"
        assert page.locator('.rail-part[data-key="fc1.unroll"] .rail-held.set').count() == 1
        assert page.locator("svg.plot path.faded").count() == 1
        few = page.locator("#table tbody tr").count()
        assert 0 < few < everything
        handle = page.locator('.rail-part[data-key="fc2.unroll"] [data-end="high"]')
        handle.focus()
        before = handle.get_attribute("aria-valuetext")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        assert handle.get_attribute("aria-valuetext") != before, "said aloud before it is asked for"
        page.keyboard.press("Enter")
        page.wait_for_url("**fc2.unroll*", timeout=WAIT_MS)
        assert "fc1.unroll" in page.url, "two axes at a time"
        assert page.locator("#table tbody tr").count() <= few
        handle = page.locator('.rail-part[data-key="fc2.unroll"] [data-end="high"]')
        page.wait_for_function("document.activeElement?.dataset.end === 'high'")
        handle.press("Escape")
        page.wait_for_function("!location.search.includes('fc2')")
        assert page.locator("#table tbody tr").count() == few
        box = page.locator('.rail-part[data-key="fc1.unroll"] .rail-room').bounding_box()
        page.mouse.click(box["x"] + 3, box["y"] + box["height"] * 0.8)
        page.wait_for_function("!location.search.includes('where')")
        assert page.locator("#table tbody tr").count() == everything
        assert page.locator("#parallel").get_attribute("open") is not None
