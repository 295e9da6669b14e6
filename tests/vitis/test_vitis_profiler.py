"""The Vitis rungs behind the profiler protocol, against the stand-in."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.backend import hls
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.pipeline import lower
from penstock.compiler.platforms import load_platform
from penstock.profiling.csim import find_compiler
from penstock.profiling.model import parse_request
from penstock.profiling.protocol import Profile, Profiler, ProfileRequest, ProfilingError
from penstock.profiling.tool_runner import ToolRunner
from penstock.profiling.vitis import profiler as profiler_module
from penstock.profiling.vitis.detect import VitisTools
from penstock.profiling.vitis.job import HlsJob, run_hls
from penstock.profiling.vitis.profiler import VitisProfiler, emit, simulate_c
from tests.compiler.designs import Dense, build_network
from tests.profiling.model_profiler import ModelProfiler
from tests.schedule.gemms import gemm_program
from tests.standin.install import Installation
from tests.vitis.standins import lowered, recording, tools_of

REQUEST = ProfileRequest("drawn", str(lowered().stream), "u55c", 300.0)


def profiler(installation: Installation, **changes: object) -> VitisProfiler:
    made = VitisProfiler(tools_of(installation), environment=installation.environment)
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "tools", "2024.2")


def test_csynth_is_a_profiler(installation: Installation, tmp_path: Path) -> None:
    """The report's figures, with csynth as their evidence; equal requests give equal profiles."""
    lines: list[str] = []
    csynth = profiler(installation, results=tmp_path / "results", on_line=lines.append)
    assert isinstance(csynth, Profiler)
    profile = csynth.profile(REQUEST)
    assert (profile.tool, profile.evidence) == ("vitis-csynth", "csynth")
    assert profile.tool_version.startswith("2024.2.")
    assert profile.latency_cycles > profile.interval_cycles > 0
    assert profile.key == REQUEST.key("vitis-csynth", csynth.version())
    assert profile.fmax_mhz == pytest.approx(1e3 / (0.73 * 3.333), rel=1e-3)
    assert profile.resources is not None
    assert profile.resources.lut > 100
    assert 0 < profile.initial_delay_cycles < profile.latency_cycles
    assert Profile.from_json(json.loads(json.dumps(profile.to_json()))) == profile
    assert any("Estimated Fmax" in line for line in lines)
    assert (tmp_path / "results" / profile.key / "reports" / "csynth.xml").is_file()
    assert csynth.profile(REQUEST) == profile


def test_other_code_is_another_measurement(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request is what the C++ is made of: what makes it belongs to the key, or old figures stand for new code."""
    before = profiler(installation).version()
    assert profiler(installation).version() == before
    monkeypatch.setattr(profiler_module, "sources_digest", lambda *packages: "compiler.backend.hls" in packages and "0")
    assert profiler(installation).version() == f"2024.2.{profiler_module.REVISION}.0" != before


def test_cosim_measures_with_frames_of_the_c_simulation(tmp_path: Path) -> None:
    """The C simulation leaves its frames where the test bench of the release looks for them."""
    installation = Installation(tmp_path / "tools", "2022.2")
    profile = profiler(installation, evidence="cosim").profile(REQUEST)
    csynth = profiler(installation).profile(REQUEST)
    assert (profile.tool, profile.evidence) == ("vitis-cosim", "cosim")
    assert profile.latency_cycles > csynth.latency_cycles > profile.interval_cycles
    assert profile.key != csynth.key


def test_ii_and_depth_of_a_single_kernel_are_the_reports(installation: Installation, tmp_path: Path) -> None:
    """Our nests say which iteration writes first; how fast and how deep their pipelines are, the report says."""
    design = Design("u55c", 300.0, {"fc": KernelDesign((1, 8, 64), (1, 2, 4), (0, 1, 2))})
    gemm = lower(gemm_program(16, 32, 64, "int8"), design)
    request = ProfileRequest("gemm", str(gemm.stream), "u55c", 300.0)
    modelled = ModelProfiler().profile(request)
    assert modelled.ii is not None
    assert modelled.depth is not None
    delays: list[int] = []
    for deeper in (3, 40):
        installation.behave({"recording": str(recording(tmp_path / "report.xml.gz", gemm.top, deeper))})
        measured = profiler(installation).profile(request)
        assert (measured.ii, measured.depth) == (2 * modelled.ii, modelled.depth + deeper)
        assert measured.resources is not None
        assert (measured.latency_cycles, measured.interval_cycles, measured.resources.lut) == (5000, 4000, 4)
        delays.append(measured.initial_delay_cycles)
    assert delays[1] - delays[0] >= 37
    assert delays[0] > modelled.initial_delay_cycles


def test_a_platform_with_few_memory_ports_passes_the_dataflow_check(tmp_path: Path) -> None:
    """Of two concurrent loads of one bundle HLS says that it cannot be read in several processes."""
    installation = Installation(tmp_path / "tools", "2023.2")
    program = build_network("int8", 2, 8, (Dense(8, True, False),) * 3, seed=3)
    base = default_design(read_graph(program.module), "u200", 200.0)
    kernels = {name: KernelDesign(k.tile, k.unroll, k.order, "stream") for name, k in base.kernels.items()}
    streamed = lower(program, Design("u200", 200.0, kernels))
    request = ProfileRequest("streamed", str(streamed.stream), "u200", 200.0)
    assert profiler(installation).profile(request).evidence == "csynth"
    emit(streamed.top, request, load_platform("u200"), tmp_path / "design")
    source = tmp_path / "design" / "hls" / "penstock_top.cpp"
    source.write_text(re.sub(r"bundle=gmem\d+", "bundle=gmem0", source.read_text()))
    job = HlsJob(tmp_path / "design", streamed.top.sym_name.data)
    with pytest.raises(ProfilingError, match="cannot read data in multiple processes") as caught:
        run_hls(job, tools_of(installation), ToolRunner(), tmp_path / "results")
    assert caught.value.kind in ("source-error", "tool-failed")


@pytest.mark.slow
@pytest.mark.parametrize("release", ["2021.1", "2025.1"])
def test_the_emitted_test_bench_runs_where_the_tool_runs_it(release: str, tmp_path: Path) -> None:
    """Files, include paths and arguments of script and configuration are those that the test bench needs."""
    installation = Installation(tmp_path / "tools", release)
    headers = Path(hls.__file__).parent / "include"
    installation.behave({"compiler": find_compiler(), "headers": str(headers)})
    top = parse_request(REQUEST)
    emit(top, REQUEST, load_platform("u55c"), tmp_path / "design")
    simulate_c(tmp_path / "design", ToolRunner())
    job = HlsJob(tmp_path / "design", top.sym_name.data, ("csim",))
    tools = tools_of(installation)
    assert run_hls(job, tools, ToolRunner(), tmp_path / "results").steps == ("csim",)
    expected = tmp_path / "design" / "csim" / "run" / "out0.bin"
    expected.write_bytes(bytes(255 - byte for byte in expected.read_bytes()))
    with pytest.raises(ProfilingError) as caught:
        run_hls(job, tools, ToolRunner(), tmp_path / "results")
    assert caught.value.kind == "csim-mismatch"


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [({"csynth": "source-error"}, "source-error"), ({"csynth": "report-garbage"}, "report-unreadable")],
)
def test_a_failed_job_is_its_failure(behaviour: dict[str, object], kind: str, installation: Installation) -> None:
    installation.behave(behaviour)
    with pytest.raises(ProfilingError) as caught:
        profiler(installation).profile(REQUEST)
    assert caught.value.kind == kind
    assert caught.value.log_tail or kind == "report-unreadable"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"text": "not a module"}, "not a valid stream-level module"),
        ({"platform": "nowhere"}, "nowhere"),
        ({"platform": "ecp5-85k", "clock_mhz": 100.0}, "no device"),
        ({"clock_mhz": 5000.0}, "5000 MHz"),
    ],
)
def test_what_cannot_be_measured_is_a_bad_request(
    change: dict[str, object], words: str, installation: Installation
) -> None:
    with pytest.raises(ProfilingError, match=words) as caught:
        profiler(installation).profile(replace(REQUEST, **change))  # type: ignore[arg-type]
    assert caught.value.kind == "bad-request"
    assert installation.calls() == []


def test_a_machine_without_a_compiler_fails_with_a_kind(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Co-simulation needs the C simulation's frames."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProfilingError, match=r"no C\+\+ compiler") as caught:
        profiler(installation, evidence="cosim").profile(REQUEST)
    assert caught.value.kind == "tool-missing"


def test_a_work_folder_that_cannot_be_made_fails_with_a_kind(installation: Installation, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProfilingError) as caught:
        profiler(installation, work_root=tmp_path / "file" / "work").profile(REQUEST)
    assert caught.value.kind == "disk-full"


def test_without_tools_it_says_so() -> None:
    with pytest.raises(ProfilingError, match="Vitis was not found") as caught:
        VitisProfiler(VitisTools(None, None, {})).profile(REQUEST)
    assert caught.value.kind == "tool-missing"
