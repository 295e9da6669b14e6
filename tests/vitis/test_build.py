"""Bitstreams against the stand-in: every generation, kernels from the cache, links that go on, failures by kind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolRunner
from penstock.profiling.vitis.build import MAGIC, BuildJob, LinkedBitstream, build_bitstream
from penstock.profiling.vitis.job import JobLimits
from tests.standin.install import Installation
from tests.vitis.standins import RELEASES, TOP, aged, emitted, tools_of


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path / "tools", "2023.2")


@pytest.fixture
def job(tmp_path: Path) -> BuildJob:
    return BuildJob(emitted(tmp_path / "design"), TOP, tmp_path / "store")


def build(installation: Installation, job: BuildJob, results: Path) -> LinkedBitstream:
    return build_bitstream(job, tools_of(installation), ToolRunner(), results, environment=installation.environment)


def fails(installation: Installation, job: BuildJob, results: Path) -> ProfilingError:
    with pytest.raises(ProfilingError) as caught:
        build(installation, job, results)
    return caught.value


@pytest.mark.parametrize("release", RELEASES)
def test_a_bitstream_in_every_generation(release: str, job: BuildJob, tmp_path: Path) -> None:
    """v++ takes what the backend writes: sources, options, and a link configuration that names the kernel's ports."""
    installation = Installation(tmp_path / "tools", release)
    made = build(installation, job, tmp_path / "results")
    assert made.xclbin.read_bytes().startswith(MAGIC)
    assert (made.clock_mhz, made.kernel_from_cache, made.resumed_from) == (300, False, None)
    assert [call[:2] for call in installation.calls()] == [
        ["v++", "-c"], ["v++", "-l"], ["v++", "-p"], ["xclbinutil", "--info"],
    ]  # fmt: skip
    assert list((tmp_path / "store" / "links").iterdir()) == []


def test_emulation_has_its_configuration_beside_it(installation: Installation, job: BuildJob, tmp_path: Path) -> None:
    made = build(installation, replace(job, target="hw_emu"), tmp_path / "results")
    assert made.clock_mhz is None
    assert (made.xclbin.parent / "emconfig.json").is_file()


def test_a_container_that_xrt_refuses_is_no_bitstream(
    installation: Installation, job: BuildJob, tmp_path: Path
) -> None:
    """And one that it says nothing of, as the launcher of a distribution that lacks the program does, is noted."""
    program = installation.root / "xrt" / "bin" / "xclbinutil"
    program.write_text("#!/bin/sh\necho 'ERROR: Invalid xclbin'; exit 0\n")
    assert "xclbinutil refuses" in fails(installation, job, tmp_path / "a").what
    program.write_text("#!/bin/sh\necho 'unwrapped/xclbinutil: No such file or directory' >&2; exit 0\n")
    assert build(installation, job, tmp_path / "b").notes == (
        "xclbinutil did not say what the bitstream holds: it is not checked",
    )


def test_a_kernel_is_compiled_once(installation: Installation, job: BuildJob, tmp_path: Path) -> None:
    """Another link of the same kernel takes it from the store; other sources, targets and releases do not."""
    first = build(installation, job, tmp_path / "a")
    again = build(installation, job, tmp_path / "b")
    assert again.kernel_from_cache
    assert again.kernel.read_bytes() == first.kernel.read_bytes()
    assert not build(installation, replace(job, target="hw_emu"), tmp_path / "c").kernel_from_cache
    source = job.design / "hls" / "penstock_top.cpp"
    source.write_text(source.read_text() + "// changed\n")
    assert not build(installation, job, tmp_path / "d").kernel_from_cache


def test_a_failed_link_goes_on_where_it_stopped(installation: Installation, job: BuildJob, tmp_path: Path) -> None:
    installation.behave({"link": "once:impl"})
    error = fails(installation, job, tmp_path / "a")
    assert error.kind == "tool-failed"
    made = build(installation, job, tmp_path / "b")
    assert (made.resumed_from, made.kernel_from_cache) == ("impl", True)
    assert "--from_step" in installation.calls()[2]
    assert list((tmp_path / "store" / "links").iterdir()) == []


def test_a_link_that_ran_out_of_time_goes_on(installation: Installation, job: BuildJob, tmp_path: Path) -> None:
    installation.behave({"link": "hang"})
    error = fails(installation, replace(job, limits=JobLimits(seconds=8.0)), tmp_path / "a")
    assert error.kind == "timeout"
    assert build(installation, job, tmp_path / "b").resumed_from == "synth"


def test_a_link_that_ended_is_not_linked_again(installation: Installation, job: BuildJob, tmp_path: Path) -> None:
    """What fails is the packaging: the hours of the link are not lost, nor is the clock that it reached."""
    program = installation.root / "xrt" / "bin" / "xclbinutil"
    kept = program.read_text()
    program.write_text("#!/bin/sh\necho 'ERROR: Invalid xclbin'\n")
    installation.behave({"reached": 0.9})
    fails(installation, job, tmp_path / "a")
    program.write_text(kept)
    made = build(installation, job, tmp_path / "b")
    assert (made.resumed_from, made.clock_mhz) == ("package", 270)
    assert sum("-l" in call for call in installation.calls()) == 1


def test_a_step_that_is_missing_starts_the_link_anew(installation: Installation, job: BuildJob, tmp_path: Path) -> None:
    """What a link would go on from may be lost or damaged: the try after the next begins at the beginning."""
    installation.behave({"link": "once:impl"})
    fails(installation, job, tmp_path / "a")
    (folder,) = (tmp_path / "store" / "links").iterdir()
    (folder / "_x" / "link" / "steps.json").write_text(json.dumps([]))
    assert "an earlier step is missing" in fails(installation, job, tmp_path / "b").what
    installation.behave({})
    assert build(installation, job, tmp_path / "c").resumed_from is None


def test_links_and_kernels_that_nobody_wants_are_swept(
    installation: Installation, job: BuildJob, tmp_path: Path
) -> None:
    installation.behave({"link": "once:impl"})
    fails(installation, job, tmp_path / "a")
    (link,) = (tmp_path / "store" / "links").iterdir()
    (kernel,) = (tmp_path / "store" / "kernels").iterdir()
    for path, days in ((link, 15), (kernel, 30)):
        aged(path, days)
    installation.behave({})
    made = build(installation, job, tmp_path / "b")
    assert (made.resumed_from, made.kernel_from_cache) == (None, True)
    aged(kernel, 181)
    assert not build(installation, job, tmp_path / "c").kernel_from_cache


def test_the_clock_that_was_reached_is_told(installation: Installation, job: BuildJob, tmp_path: Path) -> None:
    installation.behave({"reached": 0.9})
    made = build(installation, job, tmp_path / "results")
    assert made.clock_mhz == 270


FAILURES = {
    "source": ({"compile": "source-error"}, "source-error", "Pointer to pointer"),
    "licence": ({"link": "licence-missing"}, "licence", "license"),
    "timing": ({"link": "timing"}, "timing-not-met", "did not meet timing"),
    "old platform": ({"platform": "old"}, "bad-target", "not supported"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_failures_have_a_kind(case: str, installation: Installation, job: BuildJob, tmp_path: Path) -> None:
    behaviour, kind, words = FAILURES[case]
    installation.behave(behaviour)
    error = fails(installation, job, tmp_path / "results")
    assert (error.kind, words in error.what) == (kind, True), error.one_line()
    assert error.retry_later == (kind == "licence")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("m_axi_gmem0", "m_axi_gmem7"), "invalid port or argument name: m_axi_gmem7"),
        (("HBM[0]", "HBM[99]"), "Invalid memory resource: HBM[99]"),
        (("[clock]", "[clocks]"), "unrecognised option 'clocks.freqHz'"),
        (("nk=penstock_top:1", "nk=other:1"), "Unknown kernel: other"),
    ],
)
def test_a_wrong_link_configuration_is_no_licence_failure(
    change: tuple[str, str], words: str, installation: Installation, job: BuildJob, tmp_path: Path
) -> None:
    file = job.design / "link" / "connectivity.cfg"
    file.write_text(file.read_text().replace(*change))
    error = fails(installation, job, tmp_path / "results")
    assert error.kind == "tool-failed"
    assert words in error.what + error.log_tail


def test_another_shell_of_the_same_card_will_do(job: BuildJob, tmp_path: Path) -> None:
    """Older releases have older shells; which one was taken is noted, and the newest is."""
    names = ("xilinx_u55c_gen3x16_xdma_1_202110_1", "xilinx_u55c_gen3x16_xdma_2_202110_1", "xilinx_u55n_x_9_202210_1")
    installation = Installation(tmp_path / "tools", "2021.1", platforms=names)
    made = build(installation, job, tmp_path / "results")
    assert made.notes[0].startswith(f"linked for {names[1]}, since xilinx_u55c_gen3x16_xdma_3_202210_1 is not")
    (compiled, linked, *_) = installation.calls()
    assert any(names[1] in word for word in compiled)
    assert "--config" in linked


def test_a_platform_that_is_not_installed(job: BuildJob, tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2025.1", platforms=("xilinx_u280_gen3x16_xdma_1_202211_1",))
    error = fails(installation, job, tmp_path / "results")
    assert error.kind == "bad-target"
    assert "installed: " in error.limit
    assert "xilinx_u280_gen3x16_xdma_1_202211_1" in error.limit
    assert installation.calls() == []
