"""Reports and logs that would exhaust a reader: everything is bounded, and refused by name."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis import xml_tree
from penstock.profiling.vitis.cosim_rpt import read_cosim_report
from penstock.profiling.vitis.csynth_rpt import read_csynth_report
from penstock.profiling.vitis.csynth_xml import read_csynth_xml
from penstock.profiling.vitis.implemented_rpt import read_utilization
from penstock.profiling.vitis.log import judge_log
from penstock.profiling.vitis.reading import TEXT_LIMIT, read_log
from penstock.profiling.vitis.timing_rpt import read_timing

READERS = (read_csynth_xml, read_csynth_report, read_cosim_report, read_utilization, read_timing)


def refusal(read, path: Path) -> ProfilingError:
    with pytest.raises(ProfilingError) as caught:
        read(path)
    return caught.value


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "content", [b"", b"  \n", b"\x7fELF\x00\x01" * 1000, b"hello\n", b"\x1f\x8bnot gzip", b"+--+\n|"]
)
def test_what_is_no_report_is_refused_by_name(read, content: bytes, tmp_path: Path):
    path = tmp_path / "some.rpt"
    path.write_bytes(content)
    error = refusal(read, path)
    assert error.kind == "report-unreadable"
    assert "some.rpt" in error.where


@pytest.mark.parametrize("read", READERS)
def test_a_report_that_is_not_there_is_missing(read, tmp_path: Path):
    assert refusal(read, tmp_path / "none.rpt").kind == "report-missing"
    assert refusal(read, tmp_path).kind == "report-unreadable"


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><profile>&b;</profile>',
        '<!DOCTYPE a SYSTEM "file:///etc/hostname"><profile/>',
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><profile>&x;</profile>',
    ],
)
def test_entities_are_never_expanded(text: str, tmp_path: Path):
    path = tmp_path / "csynth.xml"
    path.write_text(text)
    assert "entities" in refusal(read_csynth_xml, path).what


def test_depth_elements_and_size_of_xml_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "csynth.xml"
    path.write_text("<a>" * 200 + "</a>" * 200)
    assert "nested too deep" in refusal(read_csynth_xml, path).what
    monkeypatch.setattr(xml_tree, "MAX_PARTS", 100)
    path.write_text("<a>" + "<b/>" * 200 + "</a>")
    assert "too many elements" in refusal(read_csynth_xml, path).what
    path.write_bytes(gzip.compress(b"<a>" + b" " * (4 << 20) + b"</a>"))
    with pytest.raises(ProfilingError) as caught:
        xml_tree.read_xml(path, limit=1 << 20)
    assert "at most 1 MiB" in caught.value.limit


def test_a_text_report_that_unpacks_without_end_is_refused(tmp_path: Path):
    path = tmp_path / "top_csynth.rpt"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(2 * (TEXT_LIMIT >> 20)):
            file.write(b"x" * (1 << 20))
    assert path.stat().st_size < 1 << 20
    assert "too large" in refusal(read_csynth_report, path).what


def test_of_a_log_without_end_only_head_and_tail_are_read(tmp_path: Path):
    path = tmp_path / "vitis_hls.log"
    with path.open("wb") as file:
        file.write(b"INFO: [HLS 200-10] Running\n")
        file.truncate(2 << 30)  # a hole: two gigabytes of zeros that take no room
        file.seek(0, 2)
        file.write(b"\nERROR: [COSIM 212-4] *** C/RTL co-simulation finished: FAIL ***\n")
    window = read_log(path)
    assert window.skipped > 2_000_000_000
    assert len(window.text) < 2 << 20
    assert judge_log("cosim", window).kind == "cosim-failed"


def test_a_log_of_garbage_has_a_typed_ending(tmp_path: Path):
    path = tmp_path / "vitis_hls.log"
    path.write_bytes(bytes(range(256)) * 4096)
    outcome = judge_log("csynth", read_log(path))
    assert outcome.kind == "tool-failed"
    assert len(outcome.log_tail) < 10_000
    assert refusal(read_log, tmp_path / "none.log").kind == "report-missing"
