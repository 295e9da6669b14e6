"""The report's page says why a design was chosen, how far rungs differ, and what tools were spared."""

from __future__ import annotations

import pytest

from penstock.compiler.package.render import render_html
from penstock.compiler.package.report import ImportanceInfo, NeighbourInfo, ProfileUse, Report, RungErrorInfo, WhyInfo
from tests.package import hand_made

WHY = WhyInfo(
    evidence="modelled", objective="latency_cycles", sentences=("fc sets the pace <b>here</b>.",), left_out=0,
    neighbours=(
        NeighbourInfo(parameter="connect", value=True, other=False, latency_cycles=90, objective_ratio=0.9,
                      resource_share=0.5, binding="dsp", feasible=True, same_design=False),
    ),
    importances=(ImportanceInfo(parameter="connect", share=0.4),), trials=20, picture='<svg class="why"></svg>',
)  # fmt: skip
ERROR = RungErrorInfo(
    weaker="simulated", stronger="csynth", family="ultrascale", this_model=False, designs=7, median_ratio=1.04,
    typical=0.041, worst=0.09, believed=True, sentence="",
)  # fmt: skip


def with_search(report: Report, **changes: object) -> Report:
    assert report.exploration is not None
    return report.model_copy(update={"exploration": report.exploration.model_copy(update=changes)})


@pytest.fixture(scope="module")
def report() -> Report:
    return hand_made.report(hand_made.program())


def test_the_page_shows_all_of_it(report: Report) -> None:
    use = ProfileUse(measured=2, kept=6, waited=1, seconds_saved=12.34)
    found = with_search(report, why=WHY, rung_errors=(ERROR,), correction="nothing is corrected", profiles=use)
    page = render_html(Report.model_validate_json(found.model_dump_json()))
    assert WHY.picture in page
    assert "fc sets the pace &lt;b&gt;here&lt;/b&gt;." in page
    assert "all models, ultrascale" in page
    assert "4.10\u202f%" in page
    assert "nothing is corrected" in page
    assert "Measured by tools: 2; known from before: 6; made by another worker meanwhile: 1. That saved 12.3 s." in page
    restored = Report.model_validate_json(found.model_dump_json())
    assert restored.exploration is not None
    assert restored.exploration.why == WHY, "a truth value stays one"


def test_without_it_nothing_is_said(report: Report) -> None:
    page = render_html(report)
    assert "Why this design" not in page
    assert "rungs of evidence" not in page
