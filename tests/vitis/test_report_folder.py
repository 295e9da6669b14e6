"""A folder of reports as one record, whatever the generation put where."""

from __future__ import annotations

import gzip
from pathlib import Path
from textwrap import dedent

import pytest

from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis.csynth_xml import read_csynth_xml
from penstock.profiling.vitis.records import CountSpan
from penstock.profiling.vitis.report_folder import read_report_folder
from tests.vitis.corpus import SAMPLE, rows
from tests.vitis.test_generations import NESTED_XML, OLD_TEXT


def test_text_adds_what_the_xml_does_not_say():
    folder = SAMPLE / "streamhls__polybench__streamhls__2560_DSPs__opt1__atax"
    whole, xml = read_report_folder(folder), read_csynth_xml(folder / "csynth.xml.gz")
    assert (whole.top, whole.latency, whole.used, whole.loops) == (xml.top, xml.latency, xml.used, xml.loops)
    assert len(whole.fifos) == len(rows(SAMPLE, "fifos")[folder.name])
    assert xml.instances == ()
    assert {instance.parent for instance in whole.instances} == {"forward"}
    assert whole.notes == ()


def test_an_older_tool_spreads_its_modules_over_files(tmp_path: Path):
    text = dedent(NESTED_XML)
    (tmp_path / "csynth.xml").write_text(text)
    (tmp_path / "blur_csynth.xml").write_text(text)
    (tmp_path / "helper_csynth.xml").write_text(text.replace("blur", "helper").replace("rows>", "lines>"))
    (tmp_path / "other_csynth.rpt").write_text(dedent(OLD_TEXT).replace("blur", "other"))
    report = read_report_folder(tmp_path)
    assert report.top == "blur"
    assert [module.name for module in report.modules] == ["blur", "helper", "other"]
    assert [loop.name for loop in report.loops if loop.module == "blur"] == ["rows", "columns"]
    assert [loop.name for loop in report.loops if loop.module == "helper"] == ["lines", "columns"]
    assert [fifo.name for fifo in report.fifos] == ["im_1_U"]
    module = report.module("helper")
    assert module is not None
    assert module.latency == CountSpan(14, 632)


def test_figures_that_only_the_text_has_are_taken_and_said(tmp_path: Path):
    (tmp_path / "csynth.xml").write_text(
        dedent(NESTED_XML).replace("<Worst-caseLatency>632<", "<Worst-caseLatency>undef<")
    )
    (tmp_path / "blur_csynth.rpt").write_text(dedent(OLD_TEXT))
    report = read_report_folder(tmp_path)
    assert report.latency == CountSpan(157, 2089111)
    assert report.clock_uncertainty_ns == 1.25
    assert any(note.startswith("from blur_csynth.rpt: latency") for note in report.notes)


def test_a_damaged_text_beside_the_xml_costs_what_it_alone_says(tmp_path: Path):
    (tmp_path / "csynth.xml").write_text(dedent(NESTED_XML))
    (tmp_path / "blur_csynth.rpt").write_text(dedent(OLD_TEXT)[:-200])
    report = read_report_folder(tmp_path)
    assert (report.latency, report.fifos) == (CountSpan(14, 632), ())
    assert report.notes[-1].startswith("blur_csynth.rpt is left out: the report ends inside a table")


def test_without_xml_the_text_of_the_top_will_do(tmp_path: Path):
    (tmp_path / "blur_csynth.rpt").write_text(dedent(OLD_TEXT))
    assert read_report_folder(tmp_path, "blur").source == "blur_csynth.rpt"
    with pytest.raises(ProfilingError) as caught:
        read_report_folder(tmp_path, "another")
    assert caught.value.kind == "report-missing"


def test_a_function_that_is_one_pipeline_has_a_depth(tmp_path: Path):
    text = dedent(NESTED_XML).replace(
        "<DataflowPipelineThroughput>", "<PipelineDepth>7</PipelineDepth><DataflowPipelineThroughput>"
    )
    (tmp_path / "csynth.xml.gz").write_bytes(gzip.compress(text.encode()))
    assert read_report_folder(tmp_path).depth == CountSpan(7, 7)
