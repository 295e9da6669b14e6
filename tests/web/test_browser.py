"""The pages in a real browser: news arrives by itself, the stop button works, an outage is told, nothing is blocked.

Needs the Python package playwright and a Chromium on PATH; skipped without them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.services.api.app import create_app
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.settings import Settings
from penstock.services.store import ContentStore
from tests.api.conftest import served
from tests.api.seeding import Seeder
from tests.web.browser import BROWSER_MARKS, chromium, quiet_page
from tests.web.reports import report_of

pytestmark = BROWSER_MARKS
WAIT_MS = 120_000
CUT_LINES = """() => {
  const room = document.querySelector('#flow svg').viewBox.baseVal;
  const cut = (box) => box.x < room.x || box.x + box.width > room.x + room.width;
  return [...document.querySelectorAll('.flow-edge path')].filter((line) => cut(line.getBBox())).length;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """`param`: what the console says of answers that a test provokes."""
    with quiet_page(browser, provoked=getattr(request, "param", ()), viewport={"width": 1280, "height": 900}) as opened:
        yield opened


def test_news_arrives_and_open_details_stay_open(page: Any, settings: Settings, seeder: Seeder) -> None:
    run = seeder.run(trials=3)
    seeder.lose(run, "import")
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/runs/{run.id}")
        page.get_by_text("live", exact=True).wait_for(timeout=WAIT_MS)
        seeder.explore(run, 3)
        page.get_by_text("0 of 3", exact=True).first.wait_for(timeout=WAIT_MS)
        details = page.locator("details", has_text="earlier attempts")
        details.locator("summary").click()
        seeder.trial(run, 0)
        page.get_by_text("1 of 3", exact=True).first.wait_for(timeout=WAIT_MS)
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


def test_a_trial_is_pointed_at_and_opened(page: Any, settings: Settings, seeder: Seeder) -> None:
    run = seeder.finished_run(24)
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/runs/{run.id}")
        chart = page.locator(".chart[data-page]")
        number, x, y, said = chart.evaluate("chart => JSON.parse(chart.dataset.points)[0]")
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        page.mouse.move(box["x"] + x / 100 * box["width"], box["y"] + y / 100 * box["height"])
        page.get_by_text(said, exact=True).wait_for(timeout=WAIT_MS)
        chart.focus()
        page.keyboard.press("ArrowRight")
        named = page.locator(".chart-tip").inner_text()
        page.keyboard.press("Enter")
        page.get_by_role("heading", name=named.split(":")[0].capitalize()).wait_for(timeout=WAIT_MS)
        page.goto(f"{url}/runs/{run.id}/trials")
        page.get_by_role("link", name="fc1.unroll").click()
        page.locator('th[aria-sort="ascending"]').get_by_text("fc1.unroll").wait_for(timeout=WAIT_MS)
        page.get_by_label("Where").fill("fc1.unroll>=8")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**where=fc1*")
        assert "sort=fc1.unroll" in page.url, "the order stays"
        assert page.locator("tbody tr").count() < 24
        assert number >= 0


def test_a_frame_around_marks_fills_the_table(page: Any, settings: Settings, seeder: Seeder) -> None:
    run = seeder.finished_run(24)
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/runs/{run.id}/trials")
        plot = page.locator(".chart[data-page] > svg.plot")
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        page.mouse.move(box["x"] + 2, box["y"] + box["height"] * 0.5)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] - 2, steps=5)
        assert page.locator(".brush").is_visible()
        page.mouse.up()
        page.wait_for_url("**where=*", timeout=WAIT_MS)
        assert page.get_by_label("Where").input_value().count("latency_us") == 2
        shown = page.locator("#table tbody tr").count()
        points = json.loads(page.locator(".chart[data-page]").get_attribute("data-points"))
        inside = [one for one in points if one[1] <= 40 and one[2] >= 50]
        assert 0 < shown < 24
        assert shown == len(inside), "the trials of the frame and no others"


@pytest.mark.parametrize("page", [("status of 422",)], indirect=True, ids=[""])
def test_a_run_is_started_by_the_form(page: Any, settings: Settings, seeder: Seeder) -> None:
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/submit")
        page.get_by_label("name", exact=True).first.select_option("mlp")
        assert "hidden=32" in page.locator("#takes").inner_text()
        page.locator("#f-limits").fill("dsp<=oops")
        page.get_by_role("button", name="Start the run").click()
        page.locator("#said").wait_for(state="visible", timeout=WAIT_MS)
        assert page.locator("#f-limits").get_attribute("aria-invalid") == "true"
        page.locator("#f-limits").fill("dsp<=0.5")
        page.locator("#f-trials").fill("7")
        page.get_by_role("button", name="Start the run").click()
        page.wait_for_url("**/runs/run_*", timeout=WAIT_MS)
        assert page.get_by_text("dsp<=0.5").count() >= 1
        seeder.cancel(_only(seeder))
        page.get_by_role("heading", name="Stopped").wait_for(timeout=WAIT_MS)


@pytest.mark.parametrize("page", [("status of 422",)], indirect=True, ids=[""])
def test_a_kernel_is_sent_by_the_form_with_its_header(page: Any, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "n.h").write_text("#define N 4\n")
    (tmp_path / "k.cpp").write_text('#include "n.h"\nvoid top(int a[N]) { a[0] = 1; }\n')
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/submit")
        assert page.locator("#f-quantize").is_visible()
        page.get_by_label("a kernel in HLS C++").check()
        assert not page.locator("#f-quantize").is_visible(), "a kernel keeps its own types"
        page.locator("#sources").set_input_files([tmp_path / "k.cpp", tmp_path / "n.h"])
        page.wait_for_function("document.getElementById('top').value === 'top'")  # the only function that it can be
        page.locator("#top").fill("")
        page.get_by_role("button", name="Start the run").click()
        page.locator("#said").wait_for(state="visible", timeout=WAIT_MS)
        assert page.locator("#top").get_attribute("aria-invalid") == "true"
        page.locator("#top").fill("top")
        page.locator("#f-limits").fill("dsp<=220")
        page.get_by_role("button", name="Start the run").click()
        page.wait_for_url("**/runs/run_*", timeout=WAIT_MS)
        assert page.get_by_text("k.top").count() >= 1
        assert page.get_by_text("dsp<=220").count() >= 1


@pytest.mark.parametrize("page", [()], indirect=True, ids=[""])
def test_an_onnx_file_is_sent_by_the_form_with_typical_inputs(page: Any, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"\x08\x08\x12\x07pytorch")
    (tmp_path / "mine.npz").write_bytes(b"PK")
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/submit")
        page.locator("input[name=source][value=file]").check()
        page.locator("#file").set_input_files(tmp_path / "net.onnx")
        page.locator("#typical").set_input_files(tmp_path / "mine.npz")
        page.get_by_role("button", name="Start the run").click()
        page.wait_for_url("**/runs/run_*", timeout=WAIT_MS)
        (model,) = httpx.get(f"{url}/v1/models").json()["items"]
    ContentStore(settings.store_folder).extract_tree(model["sha256"], tmp_path / "out")
    assert (tmp_path / "out" / "typical" / "inputs.npz").read_bytes() == b"PK"


@pytest.mark.parametrize("page", [("status of 422",)], indirect=True, ids=[""])
def test_a_model_of_a_library_is_sent_by_the_form_with_files(page: Any, settings: Settings, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("mine.npz", "model.safetensors")]
    for file in files:
        file.write_bytes(file.name.encode())
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/submit")
        page.get_by_label("one of a library").check()
        page.locator("#beside").set_input_files(files)
        page.get_by_role("button", name="Start the run").click()
        page.locator("#said").wait_for(state="visible", timeout=WAIT_MS)
        assert page.locator("#reference").get_attribute("aria-invalid") == "true", "it says which model they are of"
        page.locator("#reference").fill("hf:gpt2?cache=8#")
        page.get_by_role("button", name="Start the run").click()
        page.wait_for_url("**/runs/run_*", timeout=WAIT_MS)
        (model,) = httpx.get(f"{url}/v1/models").json()["items"]
    assert (model["kind"], model["source"]) == ("library", "hf:gpt2?cache=8#")
    ContentStore(settings.store_folder).extract_tree(model["sha256"], out := tmp_path / "out")
    found = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert found == {"typical/inputs.npz": b"mine.npz", "weights/model.safetensors": b"model.safetensors"}


def _only(seeder: Seeder) -> Any:
    with seeder.database.begin() as tx:
        return tx.runs.list().items[0]


@pytest.mark.parametrize("layers", [300, 5_000])
def test_a_large_design_is_folded_drawn_and_opened(page: Any, settings: Settings, seeder: Seeder, layers: int) -> None:
    run = seeder.finished_run(2, report=report_of(layers))
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/runs/{run.id}/design")
        page.locator("#flow svg").wait_for(timeout=WAIT_MS)
        assert page.locator(".flow-node.group").count() == layers // 10
        page.locator('.flow-node[data-group="blocks.0"]').click()
        page.locator('.flow-node[data-kernel="blocks.0.layer4"]').click()
        page.get_by_role("heading", name="blocks.0.layer4").first.wait_for(timeout=WAIT_MS)
        assert "kernel=blocks.0.layer4" in page.url
        if layers > 700:
            page.get_by_role("button", name="Unfold").click()
            page.get_by_text("too many to be told apart").wait_for(timeout=WAIT_MS)
        else:
            assert page.evaluate(CUT_LINES) == 0, "no line leaves the drawing"
            page.get_by_label("Find a layer").fill("layer7")
            page.get_by_label("Find a layer").press("Enter")
            page.get_by_label("Find a layer").blur()
            page.locator(".flow-node.selected").wait_for(timeout=WAIT_MS)


@pytest.mark.parametrize("page", [("status of 404",)], indirect=True, ids=[""])
def test_a_run_that_is_gone_while_it_is_shown_is_told(page: Any, settings: Settings, seeder: Seeder) -> None:
    run = seeder.run(trials=3)
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/runs/{run.id}")
        page.get_by_text("live", exact=True).wait_for(timeout=WAIT_MS)
        page.route(f"**/runs/{run.id}", lambda route: route.fulfill(status=404, body="gone"))
        page.get_by_text("is not there any more").wait_for(timeout=WAIT_MS)


def test_what_is_written_beside_a_run_is_found_by_a_saved_view(page: Any, settings: Settings, seeder: Seeder) -> None:
    run, other = seeder.finished_run(2, name="the one"), seeder.finished_run(2, name="another")
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/runs/{run.id}")
        page.get_by_label("Tags").fill("paper-v2, baseline")
        page.get_by_label("Notes", exact=True).fill("<b>Fits</b>")
        page.locator("#labels").get_by_role("button", name="Save").click()
        page.get_by_role("link", name="paper-v2").click(timeout=WAIT_MS)
        page.wait_for_url("**/runs?*tag=paper-v2", timeout=WAIT_MS)
        assert page.get_by_role("link", name="another").count() == 0, other.id
        page.get_by_text("Save this view").click()
        page.get_by_label("Name", exact=True).fill("of the paper")
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_role("link", name="of the paper").wait_for(timeout=WAIT_MS)
        page.get_by_role("button", name="Delete the view of the paper").click()
        page.get_by_role("link", name="another").wait_for(timeout=WAIT_MS)
    assert seeder.reload(run).notes == "<b>Fits</b>"


def test_a_package_is_taken_home_and_two_runs_are_compared(page: Any, settings: Settings, seeder: Seeder) -> None:
    model = seeder.model()
    runs = [seeder.finished_run(6, name=name, model=model) for name in ("the first", "the second")]
    with served(create_app(settings, ApiOptions())) as url:
        page.goto(f"{url}/runs/{runs[0].id}")
        with page.expect_download() as taken:
            page.get_by_role("link", name="Download the package").click()
        assert taken.value.suggested_filename == "digits_mlp.penstock.zip"
        assert Path(taken.value.path()).stat().st_size == 76_804
        page.goto(f"{url}/runs")
        page.get_by_role("link", name="Compare").click()
        for run in runs:
            page.get_by_label(run.name).check()
        page.get_by_role("button", name="Compare").click()
        page.wait_for_url("**/compare?run=*&run=*", timeout=WAIT_MS)
        assert page.locator("#courses path.course-1").first.get_attribute("d")
        page.get_by_text("these runs are over").wait_for(timeout=WAIT_MS)
        going = seeder.run(model, trials=2, name="the third")
        page.goto(f"{url}/compare?run={runs[0].id}&run={going.id}")
        page.locator("th .badge", has_text="queued").wait_for(timeout=WAIT_MS)
        seeder.cancel(going)
        page.locator("th .badge", has_text="cancelled").wait_for(timeout=WAIT_MS)
        page.get_by_text("these runs are over").wait_for(timeout=WAIT_MS)
        assert page.locator("table.compare").is_visible(), "what is there stays there"


def test_pages_read_without_scripts(browser: Any, settings: Settings, seeder: Seeder) -> None:
    run = seeder.finished_run(24, report=report_of(12))
    with (
        served(create_app(settings, ApiOptions())) as url,
        quiet_page(browser, java_script_enabled=False, color_scheme="dark") as page,
    ):
        page.goto(f"{url}/runs/{run.id}")
        page.get_by_role("link", name="Trials 24").click()
        page.locator("#trial-3 a").first.click()
        page.get_by_role("link", name="Design", exact=True).click()
        page.locator("td a", has_text="blocks.0.layer1").first.click()
        assert page.locator("#kernel h2").inner_text() == "blocks.0.layer1"
        assert page.locator("#timeline svg.lane").count() == 14
