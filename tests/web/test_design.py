"""The design of a run as people see it: every layer is drawn once, groups are the model's, areas are to scale."""

from __future__ import annotations

import html
import inspect
import io
import json
import re
import zipfile

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.compiler.plan import names
from penstock.db.lifecycle import StepOutcome
from penstock.web.dataflow_view import HELPERS, group_of, view_dataflow
from penstock.web.design_view import view_design, view_kernel
from penstock.web.memory_map import view_memory_map
from penstock.web.treemap import lay_out
from penstock.web.what_if_view import fields_of
from tests.api.seeding import Seeder
from tests.web.reports import report_of

CPP = """#include <x>

// Layer blocks.0.layer0
static void blocks_0_layer0(int a) {
    for (;;) {
    }
}

static void other(int a) {
}
"""
IR = """builtin.module {
    stream.task "blocks_0_layer0" of "x" group 0 {
      nest.nest "c"
    }
    stream.task "other" of "y" group 0 {
    }
"""


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=40))
def test_areas_are_to_scale_and_fill_their_room(values: list[float]) -> None:
    areas = lay_out([(str(index), value) for index, value in enumerate(values)])
    assert {area.key for area in areas} == {str(index) for index in range(len(values))}
    assert sum(area.width * area.height for area in areas) == pytest.approx(10_000, rel=0.02)
    for area in areas:
        share = area.width * area.height / 10_000
        assert share == pytest.approx(area.value / sum(values), rel=0.05, abs=1e-3)
        assert -0.01 <= area.x <= area.x + area.width <= 100.01
        assert -0.01 <= area.y <= area.y + area.height <= 100.01


@pytest.mark.parametrize(
    ("label", "group"),
    [
        ("blocks.0.first.relu", "blocks.0"), ("convert.blocks.0.first", "blocks.0"), ("attn.mm", "attn"),
        ("x", "x"), ("output_0", "output_0"), ("load.x.group1", "x"),
    ],
)  # fmt: skip
def test_groups_are_parts_of_the_model(label: str, group: str) -> None:
    assert group_of(label) == group


TENSOR = "blocks.0.first"


@pytest.mark.parametrize(
    "label",
    [
        names.load_name(TENSOR), names.operand_load_name(TENSOR, 1), names.unpack_name(names.load_name(TENSOR)),
        names.spill_name(TENSOR), names.pack_name(names.spill_name(TENSOR)), names.fork_name(TENSOR),
        names.convert_name(TENSOR, ".group1"), names.converted_fork_name(TENSOR, ".group1"),
        names.chunk_name(TENSOR, 0), names.chunk_part_name(names.chunk_name(TENSOR, 0), 1), names.concat_name(TENSOR),
        names.slide_name(TENSOR, 2), names.reshaped_name(TENSOR, (2, 3)), names.load_name(names.stripe_name(TENSOR, 0)),
    ],
)  # fmt: skip
def test_what_moves_a_tensor_stands_with_what_makes_it(label: str) -> None:
    assert group_of(label) == "blocks.0"


def test_pages_know_every_word_that_the_plan_puts_before_a_tensor() -> None:
    """Pages may not import the compiler, so their list is held to its names here."""
    source = inspect.getsource(names)
    begun = {value.rstrip(".") for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}
    words = {*re.findall(r'f"(\w+)\.', source), *begun}
    assert set(HELPERS) == words - {names.shared_port_name("p").split(".")[0]}, "a port's task moves many tensors"


def test_every_layer_is_a_node_and_the_host_has_its_ends() -> None:
    report = report_of(30)
    flow = view_dataflow(report)
    keys = [node.key for node in flow.nodes]
    assert len(keys) == len(set(keys)) == 32
    assert {node.key for node in flow.nodes if node.kind == "host"} == {"x", "output_0"}
    assert {edge.source for edge in flow.edges} | {edge.target for edge in flow.edges} == set(keys)
    assert {edge.fill for edge in flow.edges} == {0.25, 1.0}
    assert flow.dies == ("slr0", "slr1")
    view = view_design(report, "dsp")
    assert view.tree_of == "dsp"
    assert all(0 <= bar.first + bar.width <= 100.5 for bar in view.bars)
    assert "for x (nothing came)" in {bar.waits.split(" cycles ")[-1] for bar in view.bars}
    assert view_design(report_of(3, simulated=False), "").bars == ()


def test_names_that_look_like_markup_stay_names() -> None:
    made = view_dataflow(report_of(3, name="</script><b>&")).as_json()
    assert "<" not in made
    assert json.loads(made)["nodes"][1]["id"] == "blocks.0.</script><b>&0"


def test_a_design_has_a_page_with_the_code_of_each_layer(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(6, report=report_of(12))
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("hls/penstock_top.cpp", CPP)
        archive.writestr("ir/3-stream.mlir", IR)
        archive.writestr("rtl/penstock_core.sv", "  task_of_equals blocks_0_layer0 (\n    .clk(clk)\n  );\n")
        archive.writestr("rtl/task_of_equals.sv", "module task_of_equals; endmodule")
    seeder.replace_file(run, ".penstock.zip", package.getvalue())
    address = f"/runs/{run.id}/design"
    text = html.unescape(client.get(address).text)
    data = re.search(r'id="flow-data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    drawn = json.loads(data[1])
    assert len(drawn["nodes"]) == 14
    assert text.count('class="lane"') == 14
    assert re.search(r"<td class=\"num\">266,666</td>", text)
    assert "33 %" in text
    assert "17 %" in text, "of the device"
    opened = html.unescape(client.get(address, params={"kernel": "blocks.0.layer0"}).text)
    card = opened.split('id="kernel"')[1].split("</section>")[0]
    for shown in ("64 (16 × 4)", "static void blocks_0_layer0(int a)", 'nest.nest "c"', "module task_of_equals"):
        assert shown in card
    assert "static void other" not in card
    assert "no layer of that name" in client.get(address, params={"kernel": "<b>"}).text


def test_a_layer_shows_its_line_in_the_model(client: httpx.Client, seeder: Seeder) -> None:
    report = report_of(12)
    report["design"]["written"][1] = {
        "kernel": "blocks.0.layer1", "file": "", "line": 0, "text": "", "layer": "Gemm_7", "operation": "ONNX Gemm",
    }  # fmt: skip
    again = report["design"]["written"][0]
    report["design"]["written"] += [
        {**again, "operation": "aten.add"}, {**again, "layer": "blocks.0.act", "operation": "aten.relu"},
    ]  # fmt: skip
    run = seeder.finished_run(6, report=report)

    def card(kernel: str) -> str:
        text = client.get(f"/runs/{run.id}/design", params={"kernel": kernel}).text
        return html.unescape(text.split('id="kernel"')[1].split("</section>")[0])

    own = card("blocks.0.layer0")
    assert "net.py:12" in own
    assert "aten.linear, aten.add in blocks.0.layer0; aten.relu in blocks.0.act" in own
    assert "x = self.layer0(x)  # <b>" in own
    assert "Gemm_7" in card("blocks.0.layer1")
    assert "ONNX Gemm" in card("blocks.0.layer1")
    assert "In the model" not in card("x"), "an input is no line of it"


def test_what_moves_a_tensor_shows_the_line_that_makes_it() -> None:
    report = report_of(3)
    report["timing"]["kernels"][0]["kernel"] = "convert.blocks.0.layer1.group1"
    flow = view_dataflow(report)
    shown = view_kernel(report, flow, "convert.blocks.0.layer1.group1", {})
    assert shown is not None
    assert (shown.lines_of, [line.where for line in shown.lines]) == ("blocks.0.layer1", ["net.py:13"])


def test_fifos_between_the_same_two_are_told_apart() -> None:
    report = report_of(3)
    second = {**report["design"]["channels"][1], "name": "rows_1"}
    report["design"]["channels"].append(second)
    labels = [one.label for one in fields_of(report, view_dataflow(report), "blocks.0.layer0", None)]
    assert "depth of the FIFO from x" in labels
    assert "depth of the FIFO to blocks.0.layer1, rows_1" in labels
    assert "depth of the FIFO to blocks.0.layer1, blocks_0_layer0__blocks_0_layer1" in labels


def test_the_memory_map_has_each_tensor_in_its_bank_and_each_memory_of_its_kind() -> None:
    report = report_of(12)
    flow = view_dataflow(report)
    found = view_memory_map(report, flow)
    assert found is not None
    assert [bank.name for bank in found.banks] == ["HBM[0]", "HBM[1]", "HBM[2]", "HBM[10]"]
    weights = found.banks[1].tensors
    assert [tensor.said for tensor in weights] == ["weights, share 1 of 2"] * 3
    assert [tensor.at for tensor in weights] == pytest.approx([0, 33.333, 66.667], abs=1e-3)
    assert sum(tensor.width for tensor in weights) == pytest.approx(100, abs=0.01), "the fullest fills its room"
    assert weights[0].last == "0xffff"
    assert found.banks[0].tensors[0].kernel == "x", "who loads it"
    assert found.banks[0].said == "4.1 kB of 268 MB"
    placed = report["placement"]["memories"]
    bits = sum(one["words"] * one["word_bits"] * one["banks"] * one["copies"] for one in placed)
    assert sum(one.bits for one in found.memories) == bits
    assert found.bits == f"{bits:,}"
    assert sum(kind.count for kind in found.kinds) == len(placed)
    by_name = {one.name: one for one in found.memories}
    assert by_name["blocks_0_layer0.acc"].kernel == "blocks.0.layer0"
    assert by_name["blocks_0_layer0__blocks_0_layer1"].kernel == "blocks.0.layer0", "who writes a FIFO"
    assert sum(cell.area.width * cell.area.height for cell in found.cells) == pytest.approx(10_000, rel=0.02)


def test_of_very_many_memories_the_smallest_are_drawn_as_one() -> None:
    report = report_of(300)
    found = view_memory_map(report, view_dataflow(report))
    assert found is not None
    assert len(found.cells) == 61
    left = len(report["placement"]["memories"]) - 60
    assert [cell for cell in found.cells if cell.title.startswith(f"{left} smaller ones: ")]


def test_a_design_of_an_earlier_release_has_the_map_that_its_report_allows(
    client: httpx.Client, seeder: Seeder
) -> None:
    report = report_of(3)
    for part, key in (("placement", "tensors"), ("placement", "banks"), ("design", "written")):
        del report[part][key]
    text = client.get(f"/runs/{seeder.finished_run(3, report=report).id}/design?kernel=blocks.0.layer0").text
    card = text.split('id="memory-map"')[1].split("</section>")[0]
    assert "Tensors, bank by bank" not in card
    assert "On the chip" in card
    report["placement"] = None
    assert 'id="memory-map"' not in client.get(f"/runs/{seeder.finished_run(3, report=report).id}/design").text


def test_the_timeline_begins_with_what_computes(client: httpx.Client, seeder: Seeder) -> None:
    report = report_of(3)

    def tasks() -> list[str]:
        text = client.get(f"/runs/{seeder.finished_run(3, report=report).id}/design").text
        card = text.split('id="timeline"')[1].split("</section>")[0]
        return re.findall(r'data-kernel="[^"]*">(\w+)<|(what moves data)', card)

    layers = [("blocks_0_layer0", ""), ("blocks_0_layer1", ""), ("blocks_0_layer2", "")]
    assert tasks() == [*layers, ("", "what moves data"), ("load_x", ""), ("store_0", "")]
    report["design"]["kernels"] = []  # as of a task program
    assert tasks() == [("load_x", ""), *layers, ("store_0", "")]


MESH = {
    "kernel": "gemm", "mesh": "m", "title": "2 x 1 <cores>", "clock_mhz": 100.0, "blocks": "M 8", "cycles": 1234.0,
    "modelled": 1300.0, "bound": 1000.0, "shown_cycles": 1234.0, "extents": [2, 1], "cores": [0.25, 0.5],
    "links": [["noc", 0, 1, 0.75], ["to_dram", 0, -1, 1.0]], "channels": [["dram[0]", 1.0]],
    "over_time": [[0.0, 1.0], [0.5, 0.5]], "nest": ["for i in 4 turns"],
}  # fmt: skip


def test_a_tile_programs_page_draws_its_mesh_before_a_design_is_chosen(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run()
    file = seeder.file("mesh.json", json.dumps(MESH).encode(), "application/json")
    seeder.finish(run, "import", StepOutcome(result={}, artifacts=[file]))
    page = client.get(f"/runs/{run.id}/design").text
    assert "Not chosen yet" in page
    assert "gemm on 2 x 1 &lt;cores&gt;, M 8: 1,234 cycles" in page
    assert page.count("75% of the run") == 1
    assert "for i in 4 turns" in page
    assert page.count("<title>50%</title>") == 2


def test_a_run_without_a_design_says_so(client: httpx.Client, seeder: Seeder) -> None:
    running = seeder.run(trials=8)
    assert "Not chosen yet" in client.get(f"/runs/{running.id}/design").text
    odd = seeder.finished_run(2)
    assert "The report cannot be drawn" in client.get(f"/runs/{odd.id}/design").text


def test_elements_are_shown_with_the_instances_that_share_them(client: httpx.Client, seeder: Seeder) -> None:
    report = report_of(3)
    assert 'id="mapping"' not in client.get(f"/runs/{seeder.finished_run(3, report=report).id}/design").text
    report["design"]["mapping"] = ["bundle(worker, 2)"]
    report["design"]["elements"] = [
        {"name": "load", "instances": ["load"], "ports": 3},
        {"name": "worker_0_to_1", "instances": ["worker_0", "worker_1<b>"], "ports": 4},
    ]
    text = client.get(f"/runs/{seeder.finished_run(3, report=report).id}/design").text
    card = text.split('id="mapping"')[1].split("</section>")[0]
    assert "3 instances on 2 elements" in card
    assert "bundle(worker, 2)" in card
    assert card.count('class="element shared"') == 1
    assert "worker_1&lt;b&gt;" in card


def test_parts_of_a_task_program_are_called_tasks(client: httpx.Client, seeder: Seeder) -> None:
    report = report_of(3, name="work")
    program, model = seeder.model("systolic", kind="tasks"), seeder.model()
    of_program, of_model = (
        client.get(f"/runs/{seeder.finished_run(3, report=report, model=one).id}/design").text
        for one in (program, model)
    )
    for said in ("<h2>{}s</h2>", "Open a {} above", "a {} to open it", "of each {}"):
        assert said.format("Task" if "<h2>" in said else "task") in of_program
        assert said.format("Layer" if "<h2>" in said else "layer") in of_model
    shown = re.sub(r"<script.*?</script>|<[^>]*>", " ", of_program, flags=re.DOTALL)
    assert not re.search(r"\blayers?\b", shown, flags=re.IGNORECASE)


def test_elements_on_a_grid_stand_at_their_places(client: httpx.Client, seeder: Seeder) -> None:
    report = report_of(3)
    report["design"]["elements"] = [
        {"name": "load", "instances": ["load"], "ports": 3, "row": 0, "column": 1},
        {"name": "work<b>", "instances": ["work"], "ports": 4, "row": 1, "column": 1},
    ]
    report["design"]["placement"] = {
        "rows": 2, "columns": 2, "streams": 3, "over_neighbours": 3, "longest": 1, "hops": 1024, "bound": 1000,
        "most_on_a_link": 3,
    }  # fmt: skip
    text = client.get(f"/runs/{seeder.finished_run(3, report=report).id}/design").text
    card = text.split('id="mapping"')[1].split("</section>")[0]
    assert "3 of 3 streams lead to a neighbour, the longest takes 1 hop." in card
    assert "1,024 tokens × hops, and no placement has fewer than 1,000" in card
    rows = card.split("<tbody>")[1].split("</tbody>")[0].split("</tr><tr>")
    assert [row.count("<td") for row in rows] == [2, 2]
    assert '<td class="mono"></td><td class="mono taken">load</td>' in rows[0]
    assert "work&lt;b&gt;" in rows[1]
