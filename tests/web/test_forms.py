"""Starting a run by the form, comparing runs, and the service's own page."""

from __future__ import annotations

import html
import re

import httpx

from penstock.compiler.platforms import platform_names
from penstock.services.run_options import RunOptions
from tests.api.conftest import MakeClient
from tests.api.seeding import Seeder


def test_the_form_has_every_option_of_the_table(client: httpx.Client) -> None:
    text = html.unescape(client.get("/submit").text)
    asked = set(re.findall(r'name="(\w+)"', text))
    assert set(RunOptions.model_fields) <= asked
    for name in platform_names():
        assert f'value="{name}"' in text
    assert re.search(r'name="trials" data-kind="number" value="" min="1" max="10000" step="1"', text)


def test_the_form_says_what_each_model_of_the_zoo_takes(client: httpx.Client) -> None:
    text = html.unescape(client.get("/submit").text)
    takes = {name: said for said, name in re.findall(r'<option data-takes="([^"]*)">(\w+)</option>', text)}
    assert takes["lenet5"] == "batch=1 side=28 outputs=10 seed=0"


def test_a_run_is_asked_for_again_as_it_was(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=31, limits=["dsp<=0.5"], objectives=["resources", "latency"], platform="zcu104")
    text = html.unescape(client.get(f"/submit?run={run.id}").text)
    assert f'name="model" value="{run.model_id}"' in text
    assert 'value="31"' in text
    assert 'value="dsp<=0.5"' in text
    assert 'value="zcu104" checked' in text
    ranks = re.search(r'<div class="ranks">(.*?)</div>', text, re.DOTALL)
    assert ranks is not None
    assert re.findall(r"<option selected>(\w+)", ranks.group(1)) == ["resources", "latency"]
    assert client.get("/submit?run=run_nothing", headers={"Accept": "text/html"}).status_code == 404


def test_runs_side_by_side_show_differences_first(client: httpx.Client, seeder: Seeder) -> None:
    model = seeder.model()
    runs = []
    for trials, platform in ((4, "u55c"), (6, "zcu104")):
        run = seeder.run(model, trials=trials, platform=platform)
        seeder.explore(run, trials)
        for number in range(trials):
            seeder.trial(run, number)
        runs.append(run)
    address = "/compare?" + "&".join(f"run={run.id}" for run in runs)
    text = html.unescape(client.get(address).text)
    rows = dict(re.findall(r'<tr><th scope="row">([^<]+)</th>(.*?)</tr>', text, re.DOTALL))
    assert "u55c" in rows["platform"]
    assert "zcu104" in rows["platform"]
    assert "seed" not in rows, "what is the same in all stands below"
    assert "seed=7" in text
    assert "none is called the best" not in text
    assert text.count('class="course course-') == 2 * 2, "a line and its sign in the legend for each"
    assert "best latency so far: digits_mlp 4.99 µs by trial 0" in text
    assert "as it was sent" not in rows
    assert 'data-live="poll"' in text, "while one of them is going"
    over = [seeder.finished_run(2, model=model) for _ in range(2)]
    assert 'data-live="poll"' not in client.get(f"/compare?run={over[0].id}&run={over[1].id}").text
    other = seeder.run(seeder.model("another"))
    mixed = client.get(f"/compare?run={runs[0].id}&run={other.id}").text
    assert "These runs are of different models" in mixed
    assert 'id="courses"' not in mixed
    assert "choose 2 to 6" in client.get(f"/compare?run={other.id}").text
    assert f'value="{other.id}"' in client.get("/compare").text


def test_the_list_is_searched_and_keeps_side_runs_apart(client: httpx.Client, seeder: Seeder) -> None:
    plain = seeder.finished_run(2, name="digits 100%")
    again = client.post(f"/v1/runs/{plain.id}/trials/0/replay").json()
    other = seeder.run(name="mnist", platform="zcu104")

    def listed(query: str = "") -> set[str]:
        return set(re.findall(r'<tr id="(run_\w+)"', client.get(f"/runs{query}").text))

    assert listed() == {plain.id, other.id}
    assert listed("?state=questions") == {again["id"]}
    assert listed("?words=100%25") == {plain.id}
    assert listed(f"?words={other.id}") == {other.id}
    assert listed("?platform=zcu104") == {other.id}
    assert listed("?words=_") == set()
    assert client.get("/v1/runs?words=MNIST").json()["items"][0]["id"] == other.id
    assert client.get("/runs?words=%00", headers={"Accept": "text/html"}).status_code == 422


def test_the_service_has_a_page_and_tokens_are_for_administrators(
    client: httpx.Client, make_client: MakeClient, seeder: Seeder
) -> None:
    text = client.get("/service").text
    assert "Who asked for what" in text
    assert "Database" in text
    asked = make_client(auth=True).get("/service")
    assert asked.status_code == 303
    assert asked.headers["location"] == "/login?next=/service"


def test_names_with_markup_or_turned_text_stay_names(client: httpx.Client, seeder: Seeder) -> None:
    name = "<b>x</b>\u202eevil\u2066"
    run = seeder.run(name=name)
    for path in ("/runs", f"/runs/{run.id}", "/compare"):
        text = client.get(path).text
        assert "<b>x" not in text
        assert "<bdi>&lt;b&gt;x&lt;/b&gt;[U+202E]evil\u2066</bdi>" in text, path


def test_the_form_takes_kernels_and_asks_them_for_what_they_take(client: httpx.Client) -> None:
    text = client.get("/submit").text
    sources = re.search(r'<input type="file" id="sources"[^>]*>', text)
    assert sources is not None
    assert "multiple" in sources.group(0)
    assert ".cpp" in sources.group(0)
    assert 'name="top"' in text
    fields = re.findall(r'<div class="field"( data-not-of-kernels)?>(.*?)</div>', text, re.DOTALL)
    shown = {name for hidden, body in fields if not hidden for name in re.findall(r'name="(\w+)" data-kind', body)}
    assert {"trials", "objectives", "limits", "name"} <= shown
    assert not {"quantize", "evidence", "sampler"} & shown


def test_a_run_of_a_kernel_is_asked_for_again_as_one(client: httpx.Client) -> None:
    source = "void top(int a[4]) { a[0] = 1; }\n"
    model = client.post("/v1/models", files={"file": ("k.cpp", source)}, data={"entry": "top"}).json()
    run = client.post("/v1/runs", json={"model": model["id"], "trials": 7}).json()
    assert set(run["options"]) == {"platform", "trials", "objectives", "limits", "priority"}
    text = client.get(f"/submit?run={run['id']}").text
    assert 'data-again="kernel"' in text
    assert 'value="7"' in text
