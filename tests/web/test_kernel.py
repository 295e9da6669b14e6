"""The page of a C++ kernel: figures before and after, who waits for whom, and what limits which line."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.db.lifecycle import StepOutcome
from penstock.db.schema.records import NewArtifact
from penstock.profiling.kernels.analysis import Analysis, analyse_kernel
from penstock.profiling.kernels.page import comparison_page
from penstock.web.kernel_flow import view_kernel_flow
from penstock.web.kernel_view import view_kernel_run
from tests.api.seeding import Seeder
from tests.web.reports import KERNEL, kernel_record


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return kernel_record()


def test_what_limits_a_loop_stands_at_its_line(record: dict[str, Any]) -> None:
    view = view_kernel_run(record)
    slow = next(loop for loop in record["before"]["loops"] if loop["ii"] > 1)
    number = int(slow["limit_at"].split(":")[1])
    line = view.before.lines[number - 1]
    assert line.limits
    assert f"II = {slow['ii']}: {slow['limit']}" in line.notes
    assert [row.ii for row in view.before.loops] == sorted((row.ii for row in view.before.loops), reverse=True)
    assert sum(row.limits for row in view.before.lines) == view.before.slow


def test_a_source_is_shown_as_a_compiler_reads_it(record: dict[str, Any]) -> None:
    """What turns the direction of a line would show it as another one; what a terminal obeys does not show at all."""
    odd = "int a; /* \u202e } \u2066 */\r\nint b; \x0c// \x1b[2J\n\tint c;\n"
    view = view_kernel_run({**record, "sent": odd})
    assert [line.text for line in view.before.lines] == [
        "int a; /* <U+202E> } <U+2066> */", "int b; <U+000C>// <U+001B>[2J", "\tint c;",
    ]  # fmt: skip


def test_tasks_say_whom_they_wait_for(record: dict[str, Any]) -> None:
    view = view_kernel_run(record)
    waits = {task.name: task.waits for task in view.before.tasks}
    told = [task for task in record["before"]["tasks"] if task["waits"]]
    assert told
    for task in told:
        channel, _, cycles = task["waits"][0]
        assert waits[task["name"]][0].startswith(f"{cycles:,} cycles for {channel}")
    assert all(0 <= bar.start + bar.width <= 100.5 for bar in view.before.tasks)


def test_figures_stand_side_by_side(record: dict[str, Any]) -> None:
    view = view_kernel_run(record)
    latency = view.changes[0]
    assert latency.before == f"{record['before']['latency']:,} cycles"
    assert latency.better is True
    assert latency.ratio.endswith("times as fast")
    assert view.done == ("chain.cpp:15:1: depth of between 32 -> 44",)
    undone = view_kernel_run({**record, "exploration": {**record["exploration"], "values": {"not": "no reason"}}})
    assert not undone.values_known
    assert "not tried: no reason" in undone.values


def test_tasks_and_fifos_are_drawn(record: dict[str, Any]) -> None:
    flow = view_kernel_flow(record["before"], "sent")
    assert flow is not None
    assert [(edge.source, edge.target, edge.depth) for edge in flow.edges] == [("first", "second", 32)]
    slow = next(loop for loop in record["before"]["loops"] if loop["ii"] > 1)
    node = flow.node(slow["task"])
    assert node is not None
    assert (node.ii, node.at) == (slow["ii"], f"#sent-{slow['where'].split(':')[1]}")
    alone = {**record["before"], "tasks": record["before"]["tasks"][:1]}
    assert view_kernel_flow(alone, "sent") is None, "one task is no dataflow"


def test_another_source_stands_beside_the_one_that_a_run_has(
    client: httpx.Client, seeder: Seeder, record: dict[str, Any]
) -> None:
    run, other = seeder.run(seeder.kernel(KERNEL)), seeder.run(seeder.kernel(KERNEL.replace("* 3", "* 5 + 0")))
    address = f"/runs/{run.id}/design?what_if={other.id}"
    assert "Not chosen yet" in client.get(address).text, "nothing is known of either"
    seeder.finish(run, "import", StepOutcome(result={}, artifacts=[_file(seeder, {**record["before"]})]))
    text = html.unescape(client.get(address).text)
    assert "data-going" in text
    assert "+    for (int i = 0; i < 64; i++) out.write(a[i] * 5 + 0);" in text
    found = {**record["before"], "latency": 7 * record["before"]["latency"]}
    seeder.finish(other, "import", StepOutcome(result={}, artifacts=[_file(seeder, found)]))
    text = html.unescape(client.get(address).text)
    assert "data-going" not in text
    assert "7 times as long" in text
    assert f'name="model" value="{other.model_id}"' in text, "and it can be run"
    both = f"/compare?run={run.id}&run={other.id}"
    assert f'href="{both}"' in text, "it is kept, and compared"
    assert all(one.id in client.get("/runs").text for one in (run, other))
    assert "as it was sent" in client.get(both).text, "of one name, but not as they were sent"
    assert html.escape(KERNEL.replace("* 3", "* 5 + 0")) in client.get(address).text, "the form goes on from there"


def test_a_source_that_cannot_be_read_says_where(client: httpx.Client, seeder: Seeder, record: dict[str, Any]) -> None:
    run, other = seeder.run(seeder.kernel(KERNEL)), seeder.run(seeder.kernel("void chain( {"))
    seeder.finish(run, "import", StepOutcome(result={}, artifacts=[_file(seeder, record["before"])]))
    seeder.fail(other, "import", code="cpp", what="expected ')'", where="chain.cpp:1:13", hint="close it")
    text = html.unescape(client.get(f"/runs/{run.id}/design?what_if={other.id}").text)
    assert "expected ')'" in text
    assert "chain.cpp:1:13" in text
    assert "Run this source" not in text
    model = seeder.run()
    assert "What if" in client.get(f"/runs/{run.id}/design?what_if={model.id}").text, (
        "of something else: as if not asked"
    )


def _file(seeder: Seeder, found: dict[str, Any]) -> NewArtifact:
    return seeder.file("analysis.json", json.dumps(found).encode())


def test_the_page_to_take_home_has_both_and_no_markup_of_the_source(record: dict[str, Any]) -> None:
    before = Analysis.read({**record["before"], "notes": ["<script>alert(1)</script>"]})
    page = comparison_page(before, Analysis.read(record["after"]), record["exploration"])
    assert "<script>" not in page
    assert len(re.findall(r"<h2>(?:Now|As sent): Loops</h2>", page)) == 2
    assert "32 -> 44" in html.unescape(page)


def test_an_analysis_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "chain.cpp"
    path.write_text(KERNEL)
    found = analyse_kernel(path, "chain")
    assert Analysis.read(json.loads(json.dumps(found.to_json()))) == found
