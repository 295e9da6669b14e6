"""The report: a schema that is kept, evidence beside every figure, a page that needs nothing else."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError

from penstock.compiler.package.dataflow import dataflow
from penstock.compiler.package.length_line import length_line
from penstock.compiler.package.render import grouped, percent, rate, render_html
from penstock.compiler.package.report import (
    Amount,
    ChannelInfo,
    ExplorationReport,
    KernelInfo,
    Report,
    ResourceUse,
    Timing,
    TrialInfo,
)
from penstock.compiler.package.report_timing import LengthsTiming, LengthTiming
from penstock.compiler.package.scatter import FRONT_ROWS, front_rows, scatter
from penstock.compiler.package.schemas import SCHEMAS
from penstock.compiler.package.sections import resources_section, timing_section
from penstock.compiler.platforms import load_platform
from tests.goldens import check_golden
from tests.package import hand_made

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def report() -> Report:
    return hand_made.report(hand_made.program())


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schemas_in_the_documentation_are_current(name: str) -> None:
    check_golden(DOCS / name, SCHEMAS[name]())


def test_references_between_schemas_lead_somewhere() -> None:
    schemas = {name: json.loads(make()) for name, make in SCHEMAS.items()}
    schemas["bench.schema.json"] = json.loads((DOCS / "bench.schema.json").read_text())
    for name, schema in schemas.items():
        found = re.findall(r'"\$ref": "([^"#]*)#/\$defs/(\w+)"', json.dumps(schema))
        assert found
        assert [to for file, to in found if to not in schemas[file or name]["$defs"]] == []


def test_report_survives_its_json(report: Report) -> None:
    assert Report.model_validate_json(report.to_json()) == report


def test_json_has_what_users_look_for(report: Report) -> None:
    document = json.loads(report.to_json())
    assert document["verify"]["csim"] == {
        "equal": True, "values": 4, "bits_equal": 4, "samples": 1, "evidence": "simulated", "note": "",
    }  # fmt: skip
    assert document["timing"]["evidence"] == "modelled"
    assert document["timing"]["latency_cycles"] == 25
    assert document["timing"]["latency_us"] == 0.125
    assert document["resources"]["lut"] == {
        "used": 900, "available": 230400, "limit": 161280, "share": 900 / 230400,
    }  # fmt: skip
    assert document["accuracy"]["evidence"] == "simulated"


def test_what_was_not_measured_is_null_and_said_in_words(report: Report) -> None:
    document = json.loads(report.to_json())
    assert document["timing"]["interval_cycles"] is None
    assert document["timing"]["inferences_per_second"] is None
    assert document["resources"]["bram18"]["used"] is None
    assert document["resources"]["uram"]["share"] is None
    assert grouped(None) == percent(None) == '<span class="missing">not measured</span>'
    assert render_html(report).count("not measured") >= 5


def test_figures_without_evidence_are_refused() -> None:
    with pytest.raises(ValidationError, match="without their evidence"):
        Timing(
            evidence=None, clock_mhz=200.0, latency_cycles=25, latency_us=None, interval_cycles=None,
            inferences_per_second=None,
        )  # fmt: skip
    with pytest.raises(ValidationError, match="without their evidence"):
        resources_section({"lut": 5}, load_platform("zcu104"), [], None)
    assert timing_section(200.0, [], []).latency_us is None


def test_misspelt_and_impossible_figures_are_refused() -> None:
    with pytest.raises(ValidationError):
        Amount(used=-1, available=1, limit=1, share=0.0)
    with pytest.raises(ValidationError):
        Amount(used=1, available=1, limit=1, share=float("nan"))
    with pytest.raises(ValidationError, match="Extra inputs"):
        ResourceUse.model_validate({"evidence": None, "luts": 5})


def test_resource_that_the_device_lacks_has_no_share() -> None:
    section = resources_section({"uram": 0}, load_platform("ecp5-85k"), [], "modelled")
    assert section.uram == Amount(used=0, available=0, limit=0, share=None)


def test_latency_by_the_size_that_a_call_says(report: Report) -> None:
    runs = [LengthTiming(sizes={"seq": n}, latency_cycles=40 * n, latency_us=0.2 * n, unbounded_cycles=40 * n)
            for n in (1, 2, 4)]  # fmt: skip
    whole = LengthsTiming(count=4, runs=tuple(runs))
    timing = report.timing.model_copy(update={"lengths": whole})
    page = render_html(report.model_copy(update={"timing": timing}))
    assert "Simulated at 3 of 4 lengths: no deadlock, and no run ends later" in page
    assert "seq=4: 160 cycles" in page
    line = length_line(whole)
    assert line is not None
    (x1, y1, _), (x2, y2, _), (x3, y3, _) = line.points
    assert (x3 - x1) / (x2 - x1) == pytest.approx(3)
    assert (y1 - y3) / (y1 - y2) == pytest.approx(3, abs=0.05)
    late = runs[1].model_copy(update={"latency_cycles": 81})
    timing = timing.model_copy(update={"lengths": LengthsTiming(count=3, runs=(runs[0], late, runs[2]))})
    page = render_html(report.model_copy(update={"timing": timing}))
    assert "at all 3 lengths" in page
    assert "no run ends later" not in page
    two = LengthsTiming(count=1, runs=(runs[0].model_copy(update={"sizes": {"seq": 1, "rows": 2}}),))
    assert length_line(two) is None


class _Links(HTMLParser):
    """Collects everything in a page that a browser would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "link", "img", "iframe", "object", "embed", "base"):
            self.found.append(tag)
        self.found += [f"{k}={v}" for k, v in attrs if k in ("src", "href", "srcset", "action") or k.startswith("on")]


def test_page_needs_nothing_else(report: Report) -> None:
    page = render_html(report)
    links = _Links()
    links.feed(page)
    assert links.found == []
    assert re.findall(r"url\((?!#)[^)]*\)|@import|https?://", page) == []


def test_names_from_outside_cannot_break_the_page(report: Report) -> None:
    evil = report.model_copy(update={"name": "<script>alert(1)</script>"})
    page = render_html(evil)
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_page_has_badges_for_every_evidence_used(report: Report) -> None:
    page = render_html(report)
    for evidence in set(report.evidence().values()):
        assert f'class="badge e-{evidence}"' in page


def test_empty_report_renders(report: Report) -> None:
    """Nothing was measured, verified or searched for: the page still says what was decided."""
    bare = report.model_copy(
        update={
            "timing": timing_section(200.0, [], []),
            "resources": resources_section({}, load_platform("zcu104"), [], None),
            "verify": report.verify.model_copy(update={"levels": ()}),
            "accuracy": None,
            "exploration": None,
        }
    )
    page = render_html(bare)
    assert "<h2>Accuracy" not in page
    assert "<h2>Exploration" not in page
    assert "e-modelled" in page, "the legend explains all words"
    assert bare.evidence() == {"verify.csim": "simulated", "verify.pytorch": "simulated"}


def _chain(report: Report, names: list[str], edges: list[tuple[str, str]]) -> Report:
    kernels = tuple(
        KernelInfo(name=n, operation="op", trips=(4,), tile=(4,), unroll=(1,), order=(0,), weights="rom") for n in names
    )
    channels = tuple(
        ChannelInfo(name=f"{a}_{b}", source=a, target=b, kind="fifo", token="i8", width_bits=8, depth=2)
        for a, b in edges
    )
    design = report.design.model_copy(update={"kernels": kernels, "channels": channels})
    return report.model_copy(update={"design": design})


def test_dataflow_boxes_do_not_overlap_and_stay_inside(report: Report) -> None:
    names = [f"k{i}" for i in range(11)]
    edges = [("", "k0"), *pairwise(names), ("k0", "k5"), ("k1", "k3"), ("k10", "")]
    picture = dataflow(_chain(report, names, edges))
    assert len(picture.boxes) == 13
    assert len(picture.pipes) == len(edges)
    for index, box in enumerate(picture.boxes):
        assert 0 <= box.x <= picture.width - box.width
        assert 0 <= box.y <= picture.height - box.height
        for other in picture.boxes[:index]:
            apart = abs(box.x - other.x) >= box.width or abs(box.y - other.y) >= box.height
            assert apart, (box.name, other.name)


def test_channel_that_skips_a_kernel_goes_around_it(report: Report) -> None:
    picture = dataflow(_chain(report, ["a", "b", "c"], [("a", "b"), ("b", "c"), ("a", "c")]))
    lowest = max(box.y + box.height for box in picture.boxes)
    straight = [pipe for pipe in picture.pipes if pipe.label_y < lowest]
    assert [pipe.title.split(":")[0] for pipe in picture.pipes if pipe not in straight] == ["a_c"]
    assert picture.height > lowest + 20


def test_forks_are_drawn_as_helpers(report: Report) -> None:
    picture = dataflow(_chain(report, ["a", "b"], [("", "fork"), ("fork", "a"), ("fork", "b")]))
    assert {box.name: box.kind for box in picture.boxes} == {
        "host ▸": "host", "fork": "helper", "a": "kernel", "b": "kernel",
    }  # fmt: skip


def test_wider_tokens_are_thicker_pipes(report: Report) -> None:
    channels = tuple(c.model_copy(update={"width_bits": bits}) for c, bits in
                     zip(report.design.channels, (8, 512), strict=True))  # fmt: skip
    design = report.design.model_copy(update={"channels": channels})
    thin, thick = dataflow(report.model_copy(update={"design": design})).pipes
    assert thin.thickness < thick.thickness


def test_a_long_front_is_thinned_but_keeps_its_ends_and_the_chosen(report: Report) -> None:
    trials = tuple(
        TrialInfo(number=i, state="complete", latency_cycles=1000 - i, resource_share=0.01 * (i + 1),
                  evidence="modelled", on_front=True, chosen=i == 20)
        for i in range(41)
    )  # fmt: skip
    rows = front_rows(ExplorationReport(trials=trials, complete=41, infeasible=0, failed=0))
    assert len(rows) <= FRONT_ROWS + 1
    assert [rows[0].number, rows[-1].number] == [40, 0]
    assert 20 in {row.number for row in rows}
    exploration = report.exploration
    assert exploration is not None
    assert [t.number for t in front_rows(exploration)] == [2, 1, 0]


@pytest.mark.parametrize(
    ("value", "text"), [(12.0, "12\u202f/s"), (121595.3, "122\u202fk/s"), (3787879.0, "3.79\u202fM/s")]
)
def test_rates_are_short(value: float, text: str) -> None:
    assert rate(value) == text


def test_scatter_needs_two_measured_trials(report: Report) -> None:
    exploration = report.exploration
    assert exploration is not None
    plot = scatter(exploration)
    assert plot is not None
    assert len(plot.points) == 5
    by_number = {p.trial.number: p for p in plot.points}
    assert by_number[0].x > by_number[2].x, "more cycles lie further right"
    assert by_number[0].y > by_number[2].y, "a larger share lies further up"
    assert scatter(exploration.model_copy(update={"trials": exploration.trials[:1]})) is None
