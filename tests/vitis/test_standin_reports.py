"""The stand-in's reports: those of the design that it is given, in the words of real reports, read in every layout."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from penstock.compiler.pipeline import emit
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import load_library
from penstock.profiling.network import TaskNetwork, network_of
from penstock.profiling.tool_runner import ToolRunner
from penstock.profiling.vitis.job import HlsJob, run_hls
from penstock.profiling.vitis.records import SynthesisReport
from penstock.profiling.vitis.retime_design import retime_design
from tests.compiler.test_hls import small
from tests.standin.install import Installation
from tests.vitis.corpus import SAMPLE
from tests.vitis.standins import RELEASES, TOP, lowered, run, tools_of

REAL = SAMPLE / "streamhls__polybench__streamhls__2560_DSPs__opt1__atax"


LIBRARY = load_library(load_platform("u55c").operators, 300.0)


def planned() -> TaskNetwork:
    return network_of(lowered().top, LIBRARY)


def synthesised(installation: Installation, folder: Path) -> SynthesisReport:
    report = run(installation, folder).synthesis
    assert report is not None
    return report


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("layout", ["xml", "scattered", "text"])
def test_the_design_is_found_again_in_every_layout(layout: str, release: str, tmp_path: Path) -> None:
    """Modules are the tasks, loops their nests: every task gets the report's II and depth, every FIFO its depth."""
    installation = Installation(tmp_path / "tools", release)
    installation.behave({"layout": layout, "slow": {"fc0": 3}})
    report = synthesised(installation, tmp_path)
    assert (report.top, report.version, report.part) == (TOP, release, "xcu55c-fsvh2892-2L-e")
    tasks = {task.name for task in planned().tasks}
    assert {module.name for module in report.modules} == {TOP, *tasks}
    assert report.latency is not None
    assert report.latency.exact
    assert {(fifo.name, fifo.depth) for fifo in report.fifos} >= {("load_x__unpack_x_U", 2), ("fc0__fc0_relu_U", 2)}
    assert all(fifo.bits for fifo in report.fifos) or (layout, release) == ("xml", "2021.1"), "2022.2's text has sizes"
    assert not any("fifo" in operator.operation for operator in report.operators)
    assert report.used.missing == report.available.missing == ()
    retimed = retime_design(planned(), report)
    assert retimed.kept == ()
    assert {phase.process: phase.ii for phase in retimed.nests}["fc0"] == 3
    # a load of one word is no loop to the tool
    assert {phase.process for phase in retimed.nests if phase.evidence != "csynth"} == {"load_x"}


@pytest.mark.parametrize("release", ["2021.1", "2024.2"])
def test_loops_beside_others_may_be_modules_of_their_own(release: str, tmp_path: Path) -> None:
    """As newer releases split them; our names are found in both, and what cannot be flattened is not pretended."""
    installation = Installation(tmp_path / "tools", release)
    converted = small()
    emit(converted, tmp_path / "design", part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    report = run_hls(
        HlsJob(tmp_path / "design", TOP), tools_of(installation), ToolRunner(), tmp_path / "results"
    ).synthesis
    assert report is not None
    split = [module.name for module in report.modules if "_Pipeline_" in module.name]
    assert bool(split) == (release > "2021.1")
    retimed = retime_design(network_of(converted.top, LIBRARY), report)
    assert "fc0" not in retimed.kept
    assert set(retimed.kept) <= {"convert_fc0_write", "convert_fc0_read"}


def test_the_words_are_those_of_real_reports(tmp_path: Path) -> None:
    """Elements of csynth.xml and headings, columns and facts of the text are ones that a real 2023.2 writes."""
    synthesised(Installation(tmp_path / "tools", "2023.2"), tmp_path)
    reports = tmp_path / "results" / "reports"
    ours = (reports / "csynth.xml").read_text()
    loops = set(re.findall(r"<Name>(\w+)</Name>", ours))
    real = gzip.decompress((REAL / "csynth.xml.gz").read_bytes()).decode()
    tags = set(re.findall(r"<([\w-]+)", ours)) - loops
    assert tags - set(re.findall(r"<([\w-]+)", real)) <= {"IterationLatency"}
    bound, real_bound = (set(re.findall(r"(\w+)=\"", text)) for text in (ours, real))
    assert {name for name in bound if name.isupper()} <= real_bound
    text, real_text = (reports / f"{TOP}_csynth.rpt").read_text(), (REAL / "forward_csynth.rpt").read_text()
    heads = r"^ *(?:==|\+|\*) +([A-Z]\w+(?: \w+)*)"
    assert set(re.findall(heads, text, re.M)) <= set(re.findall(heads, real_text, re.M)) | {"Vitis HLS Report for"}
    columns = [re.sub(r"[\s|]+", " ", line).strip() for line in real_text.splitlines() if "|" in line]
    for line in text.splitlines():
        if line.strip().startswith("|") and "Latency (cycles)" in line and "Iteration" not in line:
            assert re.sub(r"[\s|]+", " ", line).strip() in columns
