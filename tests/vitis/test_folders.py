"""Folders of real tools: what they say, and a solution as a network that is simulated without the tool."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.profiling.networks.procnet import parse_procnet
from penstock.profiling.networks.simulated import simulate_network
from penstock.profiling.solutions.found import find_reports
from penstock.profiling.solutions.import_hls import import_solution
from penstock.profiling.solutions.page import lines_of, page_of
from penstock.services.cli.main import run
from tests.vitis.corpus import SAMPLE
from tests.vitis.test_generations import written
from tests.vitis.test_implemented_reports import SITES, TIMING
from tests.vitis.test_linked_and_scheduled import INFO

NAME = "streamhls__polybench__streamhls__2560_DSPs__opt3__atax"
PLAIN = "streamhls__polybench__allo__atax"
SOURCES = SAMPLE.parent / "hls-sources"


def test_everything_below_a_folder_is_said(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE / NAME, tmp_path / "solution1" / "syn" / "report")
    (tmp_path / "link").mkdir()
    written(tmp_path / "link", "full_util_routed.rpt", SITES.format(state="Routed"))
    (tmp_path / "link" / "timing_summary_routed.rpt").write_text(TIMING)
    written(tmp_path / "link", "a.xclbin.info", INFO)
    (tmp_path / "link" / "kernel_util_routed.rpt").write_text("cut off\n")
    found = find_reports(tmp_path)
    assert [report.top for _, report in found.syntheses] == ["forward"]
    assert [cosim.verdict for _, cosim in found.cosims] == ["pass"]
    assert [(area.used.lut, area.evidence) for _, area in found.areas] == [(25278, "implemented")]
    assert [timing.met for _, timing in found.timings] == [False]
    assert any("kernel_util_routed.rpt" in note for note in found.notes), "one that cannot be read is said, not fatal"
    said = "\n".join(found.doubts)
    for doubt in ("co-simulation measured", "the clock was missed", "timing was missed", "reached 221.5 MHz"):
        assert doubt in said
    lines = "\n".join(lines_of(found))
    assert "cosim     pass, 33,763 cycles" in lines
    assert "clock     ulp_ucs_aclk_kernel_00: 221.5 MHz of 225" in lines
    assert "What cannot be relied on" in page_of(found)
    whole = json.loads(json.dumps(found.to_json()))
    assert whole["cosims"][0]["latency_max"] == 33763


def test_folders_without_reports_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(PenstockError, match=r"report|no such folder"):
            find_reports(folder)
    assert run(["report", str(tmp_path)]) == 2
    assert "csynth.xml" in capsys.readouterr().err


def project(folder: Path) -> Path:
    """A project as the tool leaves it: hls.app names the source, the solution has the reports."""
    shutil.copytree(SAMPLE / PLAIN, folder / "project" / "solution1" / "syn" / "report")
    shutil.copytree(SOURCES / PLAIN, folder / "project" / "src")
    source = next((folder / "project" / "src").glob("*.cpp"))
    (folder / "project" / "tb.cpp").write_text("int main() {}\n")
    (folder / "project" / "hls.app").write_text(
        f'<project name="project" top="kernel"><files><file name="src/{source.name}" sc="0" tb="false"/>'
        '<file name="tb.cpp" sc="0" tb="1"/></files></project>\n'
    )
    return folder / "project" / "solution1"


def test_a_solution_becomes_a_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solution = project(tmp_path)
    found = import_solution(solution)
    assert found.rtl_cycles == 8822
    text = json.dumps(found.to_json())
    again = parse_procnet(text, "n.json")
    assert again.network == found.network
    error = simulate_network(again).error_pct
    assert error is not None
    assert error < 0.2
    out = tmp_path / "n.json"
    assert run(["import-hls", str(solution), "-o", str(out)]) == 0
    assert "rtl       8,822 cycles" in capsys.readouterr().out
    assert run(["simulate", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rtl_cycles"] == 8822


def test_a_source_that_is_not_one_is_refused(tmp_path: Path) -> None:
    solution = project(tmp_path)
    (solution.parent / "hls.app").unlink()
    with pytest.raises(PenstockError, match="0 sources") as caught:
        import_solution(solution)
    assert "--source" in caught.value.hint


def test_fifos_of_a_file_are_sized(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(SAMPLE.parent / "process-networks" / f"{NAME}.json")
    assert run(["size-fifos", file]) == 0
    out = capsys.readouterr().out
    assert "#pragma HLS stream variable=v47 depth=2\n" in out
    assert "33,763 cycles" in out
    assert run(["simulate", file, "--depth", "v47=2", "--frames", "2"]) == 0
    assert "latency   33,763 cycles, a new run every" in capsys.readouterr().out
    for wrong in ("v47", "nobody=3", "v47=0"):
        assert run(["simulate", file, "--depth", wrong]) == 2


def _fits(value: object, schema: dict[str, object], root: dict[str, object], where: str) -> None:
    """As much of JSON Schema as the file uses."""
    if isinstance(name := schema.get("$ref"), str):
        definitions = root["$defs"]
        assert isinstance(definitions, dict)
        _fits(value, definitions[name.rpartition("/")[2]], root, where)
        return
    if isinstance(value, dict):
        properties, required = schema.get("properties"), schema.get("required")
        assert isinstance(properties, dict), where
        assert isinstance(required, list)
        assert set(required) <= set(value), where
        for key, inner in value.items():
            if key in properties:
                _fits(inner, properties[key], root, f"{where}.{key}")
    elif isinstance(value, list):
        items = schema["items"]
        assert isinstance(items, dict)
        for index, inner in enumerate(value):
            for option in items.get("anyOf", [items])[:1]:
                _fits(inner, option, root, f"{where}[{index}]")
    elif isinstance(low := schema.get("minimum"), int):
        assert value is None or (isinstance(value, int) and value >= low), where


def test_the_documented_schema_describes_the_files() -> None:
    root = json.loads((Path(__file__).parents[2] / "docs" / "network.schema.json").read_text())
    for path in sorted((SAMPLE.parent / "process-networks").glob("*.json")):
        data = json.loads(path.read_text())
        if data["composition"] == "dataflow":
            _fits(data, root, root, path.stem)
