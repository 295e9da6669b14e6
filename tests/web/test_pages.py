"""What people see: every state of a run has a page that says what is going on, without a script."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping

import httpx
import pytest

from penstock.compiler.package.report_timing import ListTiming
from penstock.db.lifecycle import StepOutcome
from penstock.db.schema.records import NewProfile, RungPair
from penstock.services.run_summary import RunSummary
from penstock.services.steps.bodies.package import layers_by_one_start
from penstock.services.steps.graph import measure_steps
from tests.api.conftest import MakeClient
from tests.api.seeding import Seeder, summary_of


def page(client: httpx.Client, path: str) -> str:
    response = client.get(path, headers={"Accept": "text/html"})
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    return html.unescape(response.text)


def drawings(text: str) -> list[ElementTree.Element]:
    """Every SVG of a page, parsed: broken markup is an error."""
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def test_the_empty_list_says_what_to_do(client: httpx.Client) -> None:
    assert client.get("/").headers["location"] == "/runs"
    text = page(client, "/runs")
    assert "No runs yet" in text
    assert "penstock submit zoo:mlp" in text
    assert "No worker is alive" in text
    assert "No failed runs" in page(client, "/runs?state=failed")
    assert "No runs yet" in page(client, "/runs?state=nonsense")


def test_the_list_shows_state_progress_and_labelled_figures(client: httpx.Client, seeder: Seeder) -> None:
    done = seeder.finished_run(6, name="digits")
    failed = seeder.run(name="lstm", platform="zcu104")
    seeder.fail(failed, "import", code="export-failed", what="torch cannot export it")
    running = seeder.run(name="mnist")
    seeder.explore(running, 24)
    seeder.trial(running, 0)
    text = page(client, "/runs")
    rows = re.findall(r'<tr id="run_.*?</tr>', text, re.DOTALL)
    assert [re.search(r'id="(run_\w+)"', row).group(1) for row in rows] == [running.id, failed.id, done.id]  # type: ignore[union-attr]
    assert "torch cannot export it" in rows[1]
    assert "zcu104" in rows[1]
    assert "1 / 24" in rows[0]
    latency = '7.50 µs<br><span class="evidence simulated"'
    assert latency in rows[2], "the chosen design, not the best trial as modelled"
    assert 'class="evidence modelled"' in rows[2], "its share of a limit"
    assert 'class="badge succeeded' in rows[2]
    filtered = page(client, "/runs?state=failed")
    assert failed.id in filtered
    assert done.id not in filtered


def test_the_list_is_paged(client: httpx.Client, seeder: Seeder) -> None:
    model = seeder.model()
    runs = [seeder.run(model).id for _ in range(52)]
    first = page(client, "/runs")
    older = re.search(r'href="(/runs\?state=all&cursor=\w+)">Older', first)
    assert older is not None
    second = page(client, older.group(1))
    assert runs[-1] in first
    assert runs[0] not in first
    assert runs[0] in second
    assert "Newest" in second


def test_a_finished_run(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(24)
    text = page(client, f"/runs/{run.id}")
    chosen = run.summary["chosen_trial"]
    assert "<h2>Done</h2>" in text
    assert 'data-live="still"' in text
    assert "Stop the run" not in text
    assert "all layers by one start" not in text, "it has none"
    stages = re.findall(r'<span class="stage-name">.*?</svg>\s*([^<]+)</span>', text, re.DOTALL)
    assert stages == ["import", "explore", "trials", "select", "verify", "package"]
    infeasible = sum(summary_of(number).state == "infeasible" for number in range(24))
    assert infeasible > 0
    assert f"{infeasible} outside the limits, 0 failed" in text
    points = json.loads(re.search(r'data-points="(.*?)" data-axes', text).group(1))  # type: ignore[union-attr]
    assert sorted(point[0] for point in points) == list(range(24))
    assert sum("outside the limits" in point[3] for point in points) == infeasible
    assert any(f"trial {chosen}:" in point[3] and "(modelled)" in point[3] for point in points)
    misfits = re.search(r'<path class="misfit" d="([^"]*)"', text)
    assert misfits
    assert misfits.group(1).count("M") == infeasible
    assert text.count('class="chosen-ring"') == 2, "the mark, and its legend"
    deliver = text.split("deliverables")[1].split("</section>")[0]
    assert re.search(r'href="/v1/artifacts/art_\w+" download title="digits_mlp.penstock.zip"', deliver)
    assert re.search(r'href="/v1/artifacts/art_\w+\?inline=true">Read the report', deliver)
    assert "<dt>float accuracy</dt><dd>97.2 %" in text
    log = page(client, f"/runs/{run.id}/log")
    for name in ("digits_mlp.penstock.zip", "report.json", "report.html"):
        assert f"download>{name}</a>" in log
    assert "done: every step succeeded" in log
    assert "trial/0003" not in log, "what every trial does is in their table"


def test_layers_by_one_start_have_their_time_beside_one_layers(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=1)
    seeder.explore(run, 1)
    seeder.trial(run, 0)
    whole = ListTiming(
        evidence="modelled", layers=24, moved=33, overhead_cycles=2464, latency_cycles=216256, latency_us=865.02
    )
    seeder.complete(run, 0, packaged=RunSummary(all_layers=layers_by_one_start(whole)).written())
    shown = page(client, f"/runs/{run.id}").split('id="chosen"')[1].split("</section>")[0]
    words = re.sub(r"<[^>]*>|\s+", " ", shown.split("all layers by one start")[1].split("</div>")[0])
    assert re.match(r" *865.0 µs +216,256 cycles for 24 layers +modelled", words), words


def test_measurements_by_tools_are_one_box_and_a_line_each(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(platform="u55c", evidence="csynth")
    seeder.explore(run, 2)
    for number in range(2):
        seeder.trial(run, number)
    seeder.finish(run, "shortlist", StepOutcome(result={}, new_steps=measure_steps([0, 1])))
    seeder.finish(run, "measure/0000", StepOutcome(result={}))
    seeder.fail(run, "measure/0001", code="profile-timeout", what="the tool was stopped", log_tail="INFO: waiting")
    text = page(client, f"/runs/{run.id}")
    stages = re.findall(r'<span class="stage-name">.*?</svg>\s*([^<]+)</span>', text, re.DOTALL)
    assert stages == ["import", "explore", "trials", "shortlist", "measure", "select", "verify", "link", "package"]
    assert "1 of 2, 1 failed" in text
    assert "the tool was stopped" in text
    text = page(client, f"/runs/{run.id}/log")
    rows = re.findall(r"<td[^>]*>\s*(measure/\d+|shortlist|select|package)\s*<", text)
    assert rows == ["shortlist", "measure/0000", "measure/0001", "select", "package"]
    assert "the tool was stopped" in text


def test_the_chosen_design_has_its_figures_with_their_evidence_and_its_pictures(
    client: httpx.Client, seeder: Seeder
) -> None:
    run = seeder.finished_run(6)
    card = page(client, f"/runs/{run.id}").split('id="chosen"')[1].split("</section>")[0]
    assert f"trial {run.summary['chosen_trial']}" in card
    assert 'class="evidence simulated"' in card
    for shown in ("7.50 µs", "2,250 cycles, modelled 2,100", "1,400 cycles", "3,840 bit", "12,800 without sizing"):
        assert shown in card
    urls = re.findall(r'<img class="drawing" src="(/v1/artifacts/\w+\?inline=true)" alt="([^"]+)"', card)
    assert [alt.split()[0] for _, alt in urls] == ["What", "Which", "What"]
    assert "<li>fc1 sets the pace.</li>" in card
    for url, _ in urls:
        answer = client.get(url)
        assert answer.headers["content-type"] == "image/svg+xml"
        assert answer.headers["content-disposition"].startswith("inline")
    running = seeder.run(trials=8)
    assert 'id="chosen"' not in page(client, f"/runs/{running.id}"), "nothing was chosen yet"


def test_a_trial_stands_beside_the_chosen_one(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(12)
    chosen = run.summary["chosen_trial"]
    number = next(n for n in range(12) if n != chosen and summary_of(n).state == "complete")
    text = page(client, f"/runs/{run.id}/trials/{number}")
    its, own = summary_of(chosen).params, summary_of(number).params
    rows = dict(re.findall(r'<tr><td class="mono small">([^<]+)</td><td class="mono small">([^<]+)</td>', text))
    assert set(rows) == {name for name in own if own[name] != its[name]}
    assert f"that of trial {chosen}, the chosen one" in text
    assert "It was chosen." in page(client, f"/runs/{run.id}/trials/{chosen}")
    misfit = next(n for n in range(12) if summary_of(n).state == "infeasible")
    assert "It cannot be taken: does not fit: " in page(client, f"/runs/{run.id}/trials/{misfit}")
    assert client.get(f"/runs/{run.id}/trials/99").status_code == 404


def test_the_table_has_a_column_a_parameter_and_is_sorted_and_filtered_in_its_address(
    client: httpx.Client, seeder: Seeder
) -> None:
    run = seeder.finished_run(12)
    address = f"/runs/{run.id}/trials"

    def order(query: str) -> list[int]:
        return [int(n) for n in re.findall(r'<tr id="trial-(\d+)"', page(client, address + query))]

    text = page(client, address)
    assert re.search(r'aria-sort="none"><a href="[^"]*sort=fc1\.unroll', text)
    assert "clock_mhz=300" in text, "what is the same in all has no column"
    params = {n: summary_of(n).params for n in range(12)}
    by_unroll = order("?sort=fc1.unroll&state=complete")
    assert [params[n]["fc1.unroll"] for n in by_unroll] == sorted(params[n]["fc1.unroll"] for n in by_unroll)
    assert order("?sort=fc1.unroll&state=complete&falling=1")[0] != by_unroll[0]
    few = {n for n in range(12) if params[n]["fc2.unroll"] <= 4 and summary_of(n).figures["resource_share"] >= 0.1}
    assert set(order("?where=fc2.unroll<%3D4+resource_share>%3D0.1")) == few
    assert order("?where=nonsense=1") == []
    assert "is no condition" in page(client, address + "?where=fc1")
    rows = list(csv.DictReader(io.StringIO(client.get(address + ".csv?sort=latency_us").text)))
    assert len(rows) == 12
    assert {row["trial"]: row["fc1.unroll"] for row in rows} == {str(n): str(params[n]["fc1.unroll"]) for n in params}


def test_what_runs_share_has_a_page(client: httpx.Client, seeder: Seeder) -> None:
    text = page(client, "/measurements")
    assert "No design was looked at twice yet" in text
    assert "No tool has measured anything yet" in text
    run = seeder.finished_run(2)
    with seeder.database.begin() as tx:
        pairs = [RungPair("m", f"d{n}", "modelled", "csynth", "f", "II = 1", 100.0, 100.0 + n) for n in range(5)]
        tx.rung_pairs.add(run.id, pairs)
        tx.profiles.put([NewProfile("k", "u55c", "vitis-csynth", "csynth", {"ii": 1}, 90.0)])
        tx.profiles.count({"hits": 3, "misses": 1, "seconds_saved": 270.0})
    text = page(client, "/measurements")
    assert "half are off by at most 2.0 %, the worst by 3.8 %" in text
    assert drawings(text)
    for words in ("75 %", "4 min 30 s", "vitis-csynth", "1 min 30 s"):
        assert words in text
    assert "exact" in page(client, f"/runs/{run.id}").split("How far its figures were off")[1]


def test_a_running_run_tells_what_is_being_done_and_can_be_stopped(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=8)
    seeder.explore(run, 8)
    seeder.trial(run, 0)
    seeder.claim(run, "trial/0001")
    text = page(client, f"/runs/{run.id}")
    assert "<h2>Working</h2>" in text
    assert "1 of 8 trials done, 1 being tried. Last news" in text
    assert f'data-events="/v1/runs/{run.id}/events?after=' in text
    form = re.search(r'<form method="post" action="([^"]+/cancel)" data-api', text)
    assert form is not None
    own = str(client.base_url).rstrip("/")
    assert client.post(form.group(1), headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post(form.group(1), headers={"Origin": own}).status_code == 202
    stopping = page(client, f"/runs/{run.id}")
    assert "<h2>Stopping</h2>" in stopping
    assert "Somebody stopped this run; what is still running is being ended" in stopping


def test_waiting_is_told_from_working(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run()
    text = page(client, f"/runs/{run.id}")
    assert "<h2>Waiting: no worker is alive</h2>" in text
    assert "Nothing moves until one starts; nothing is lost meanwhile." in text
    seeder.cancel(run)
    assert "<h2>Stopped</h2>" in page(client, f"/runs/{run.id}")


def test_a_failed_run_shows_what_where_limit_hint_and_log(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run()
    seeder.lose(run, "import")
    seeder.fail(run, "import", code="x", what="no <branches> on data", where="lstm.py:41", limit="static graphs",
                hint="use torch.where", log_tail="UserError: <b>dynamic</b>")  # fmt: skip
    response = client.get(f"/runs/{run.id}")
    assert "no &lt;branches&gt; on data" in response.text
    assert "<branches>" not in response.text
    text = html.unescape(response.text)
    for words in (
        "lstm.py:41",
        "static graphs",
        "use torch.where",
        "UserError: <b>dynamic</b>",
        "went silent",
    ):
        assert words in text
    log = html.unescape(client.get(f"/runs/{run.id}/log").text)
    assert '<li id="event-' in log
    assert "2 of 3" in log


def test_sorting_keeps_unfinished_trials_last(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=6)
    seeder.explore(run, 6)
    for number in range(4):
        seeder.trial(run, number)

    def order(sort: str) -> list[int]:
        return [int(n) for n in re.findall(r'<tr id="trial-(\d+)"', page(client, f"/runs/{run.id}/trials?sort={sort}"))]

    done = [number for number in range(4) if summary_of(number).state == "complete"]
    by_latency = sorted(done, key=lambda number: summary_of(number).figures["latency_us"])
    assert order("number") == list(range(6))
    assert order("latency_us")[: len(by_latency)] == by_latency
    assert order("latency_us")[-2:] == [4, 5]
    assert order("nonsense") == list(range(6))


def test_the_trade_off_is_drawn_over_any_objectives(client: httpx.Client, seeder: Seeder) -> None:
    address = f"/runs/{seeder.finished_run(12).id}/trials"

    def figures(asked: str) -> list[str]:
        found = re.findall(r'data-axes="(.*?)"', client.get(address + asked).text)
        return [axis[0] for axis in json.loads(html.unescape(found[0]))]

    assert figures("") == ["latency_us", "resource_share"]
    assert figures("?axis=energy&axis=throughput&axis=") == ["energy_uj", "interval_us"]
    two = page(client, f"{address}?axis=energy&axis=throughput&axis=&where=dsp_share<=0.9")
    assert "&axis=energy&axis=throughput" in two  # headings and further pages keep the drawing
    assert '<input type="hidden" name="where" value="dsp_share<=0.9">' in two
    assert "no other is better in all three" in page(client, f"{address}?axis=latency&axis=resources&axis=energy")
    assert "no other is better in both" in page(client, f"{address}?axis=nonsense&axis=latency")
    nothing = page(client, f"{address}?axis=traffic&axis=latency")  # no trial tells its traffic
    assert "No trial has all of these figures." in nothing
    assert '<select name="axis">' in nothing
    assert client.get(f"{address}?axis=a&axis=b&axis=c&axis=d").status_code == 422


def test_every_trial_of_a_long_search_has_a_page(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=120)
    seeder.explore(run, 120)
    assert "0 / 120" in page(client, "/runs")
    seen: list[int] = []
    address = f"/runs/{run.id}/trials?sort=latency_us"
    while address:
        text = page(client, address)
        seen += [int(n) for n in re.findall(r'<tr id="trial-(\d+)"', text)]
        following = re.search(r'href="([^"]*)">next trials', text)
        address = following[1] if following else ""
    assert seen == list(range(120))


def test_the_front_of_ten_thousand_trials_is_drawn_whole_on_a_small_page(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=10_000)
    figures = seeder.many_trials(run, 10_000)
    text = page(client, f"/runs/{run.id}")
    drawn = {int(n) for n in re.findall(r'data-trial="(\d+)"', text)}
    assert drawn == not_beaten(figures)
    assert drawn <= {point[0] for point in json.loads(re.search(r'data-points="(.*?)" data-axes', text).group(1))}  # type: ignore[union-attr]
    for path in ("", "/trials", "/log"):
        whole = client.get(f"/runs/{run.id}{path}").text
        assert len(whole) < 300_000
        assert len(re.findall(r"<[a-z]", whole)) < 2_000, "elements"
    found = client.get(f"/v1/runs/{run.id}/front").json()
    assert {item["number"] for item in found["items"]} == drawn
    assert found["compared"] == 10_000


def not_beaten(figures: Mapping[int, tuple[float, float]]) -> set[int]:
    """By the definition, over the distinct points."""
    best: dict[float, float] = {}
    for x, y in figures.values():
        best[x] = min(y, best.get(x, y))
    front = {(x, y) for x, y in best.items() if not any(a < x and b <= y for a, b in best.items())}
    return {number for number, point in figures.items() if point in front}


@pytest.mark.parametrize(
    "path", ["/runs/run_01m7xngjf73j71t75hyx4msfc9", "/runs/nonsense", "/nothing", "/runs?cursor=x"]
)
def test_errors_are_pages_too(shared_client: httpx.Client, path: str) -> None:
    response = shared_client.get(path, headers={"Accept": "text/html"})
    assert response.status_code in (404, 422)
    assert "what to do" in response.text
    assert "Request " in response.text


def test_pages_need_nothing_but_this_service(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(3)
    for path in (
        "/runs",
        *(f"/runs/{run.id}{part}" for part in ("", "/trials", "/trials/0", "/log")),
        "/measurements",
        "/login",
    ):
        response = client.get(path)
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert not re.search(r"""(src|href|action|hx-get)=["'](https?:)?//""", response.text)
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", response.text)
        for asset in set(re.findall(r'(?:src|href)="(/static/[^"]+)"', response.text)):
            assert client.get(asset).status_code == 200


def test_signed_in_pages_offer_to_sign_out(make_client: MakeClient) -> None:
    assert "Sign in" in make_client(auth=True).get("/login").text
