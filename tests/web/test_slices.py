"""What a parameter does: shares of the spread, the best of each pair, and pages that stay small."""

from __future__ import annotations

import httpx
import pytest

from penstock.services.api.plumbing.accounts import create
from penstock.services.settings import Settings
from penstock.web import slices, text
from penstock.web.search_view import ObjectiveAxis
from penstock.web.slices import draw_slices, pair_table, varying
from tests.api.conftest import MakeClient
from tests.api.seeding import Seeder
from tests.api.test_accounts import bearer

AXIS = ObjectiveAxis("latency_us", "latency", text.microseconds)
SAMPLE = [({"lanes": lanes, "noise": n % 3, "same": 1}, 1000.0 / lanes + n) for lanes in (1, 4, 16) for n in range(9)]


def test_the_parameter_that_decides_comes_first() -> None:
    found = varying(SAMPLE)
    assert list(found) == ["lanes", "noise"], "what is the same everywhere is none"
    assert found["lanes"] > 0.9 > 0.1 > found["noise"]
    first = draw_slices(SAMPLE, AXIS)[0]
    assert (first.name, first.words) == ("lanes", "best 62.50 µs with 16")
    assert [tick.text for tick in first.x_ticks] == ["1", "4", "16"], "numbers by size"
    each = [({"id": n}, float(n + 1)) for n in range(20)]
    assert varying(each) == {"id": 0.0}, "a value for each trial explains nothing"


def test_a_pair_has_the_best_of_each() -> None:
    table = pair_table(SAMPLE, "lanes", "noise", AXIS)
    assert table is not None
    value, cells = table.rows[0]
    assert (value, [cell.text for cell in cells]) == ("0", [AXIS.show(found) for found in (1000.0, 250.0, 62.5)])
    assert cells[2].shade == 0
    assert pair_table(SAMPLE, "lanes", "lanes", AXIS) is None
    assert pair_table(SAMPLE, "lanes", "nothing", AXIS) is None


def test_the_page_of_many_trials_is_small(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(24)
    page = client.get(f"/runs/{run.id}/slices")
    assert page.status_code == 200
    assert "of the spread" in page.text
    assert len(page.content) < 150_000
    assert client.get(f"/runs/{run.id}/slices", params={"across": "<b>", "down": "x"}).status_code == 200
    assert client.get("/runs/run_nothing/slices").status_code == 404


@pytest.mark.parametrize("page", ["/service/storage", "/service/machine"])
def test_what_is_for_administrators_is_not_there_for_others(
    make_client: MakeClient, seeder: Seeder, settings: Settings, page: str
) -> None:
    client = make_client(auth=True)
    run = seeder.finished_run(2, name="large & <b>old</b>")
    reader = bearer(create(seeder.database, settings, "eve", scope="submit").secret)
    root = bearer(create(seeder.database, settings, "root", scope="admin").secret)
    assert client.get(page, headers=reader).status_code == 404
    html = client.get(page, headers=root).text
    assert (run.id in html and "large &amp; &lt;b&gt;old" in html) if page.endswith("storage") else "python" in html
    assert client.get(page, follow_redirects=False).status_code == 303


def test_each_value_is_looked_at_twice_however_many_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    counted = slices.squares
    monkeypatch.setattr(slices, "squares", lambda values: looked.append(len(values)) or counted(values))
    found = slices.varying([({"lanes": number % 4}, 1.0 + number % 4) for number in range(1000)])
    assert found == {"lanes": pytest.approx(1.0)}
    assert sum(looked) == 2 * 1000, "once as a whole, once in its group"
