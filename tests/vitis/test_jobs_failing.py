"""Every way in which a job fails, against the stand-in: the kind, the words, and that nothing is left."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolRunner
from penstock.profiling.vitis.commands import HlsStep
from penstock.profiling.vitis.job import HlsJob, JobLimits, run_hls
from tests.fixtures.processes import working_in
from tests.standin.install import Installation
from tests.vitis.standins import RELEASES, TOP, emitted, run, tools_of

# behaviour of the stand-in -> (step, kind, words of the message)
FAILURES: dict[str, tuple[dict[str, object], HlsStep, str, str]] = {
    "source": ({"csynth": "source-error"}, "csynth", "source-error", "Pointer to pointer"),
    "dataflow": ({"csynth": "fifo-error"}, "csynth", "source-error", "failed dataflow checking"),
    "mismatch": ({"csim": "mismatch"}, "csim", "csim-mismatch", "output 0 is not what csim/run/out0.bin holds"),
    "cosim": ({"cosim": "fail"}, "cosim", "cosim-failed", "nonzero return value"),
    "deadlock": ({"cosim": "deadlock"}, "cosim", "deadlock", "waits for"),
    "timing": ({"implement": "timing"}, "implement", "timing-not-met", "misses its clock"),
    "licence": ({"implement": "licence-missing"}, "implement", "licence", "license"),
    "licence lost": ({"implement": "licence-lost"}, "implement", "licence", "Lost connection to license server"),
    "disk": ({"csynth": "no-space"}, "csynth", "disk-full", "No space left"),
    "killed": ({"csynth": "child-killed"}, "csynth", "out-of-memory", "illed"),
    "killed in silence": ({"csynth": "child-killed-quietly"}, "csynth", "out-of-memory", "illed"),
    "no report": ({"csynth": "report-missing"}, "csynth", "report-missing", "there is no report"),
    "cut report": ({"csynth": "report-garbage"}, "csynth", "report-unreadable", ""),
    "garbage": ({"csynth": "babble:1"}, "csynth", "tool-failed", "without saying that csynth finished"),
    "date": ({"export": "date"}, "export", "tool-failed", "IMPL 213-28"),
    "library": ({"csynth": "no-library"}, "csynth", "tool-failed", ""),
    "silence": ({"csynth": "silence"}, "csynth", "tool-failed", "without saying that csynth finished"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILURES)
def test_failures_have_a_kind(case: str, tmp_path: Path) -> None:
    """Each once, the generations in turn."""
    behaviour, step, kind, words = FAILURES[case]
    installation = Installation(tmp_path / "tools", RELEASES[list(FAILURES).index(case) % len(RELEASES)])
    installation.behave(behaviour)
    with pytest.raises(ProfilingError) as caught:
        run(installation, tmp_path, step)
    assert (caught.value.kind, words in caught.value.what) == (kind, True), caught.value.one_line()
    assert caught.value.retry_later == (kind == "licence")
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize(
    ("behaviour", "hint"), [({"export": "date"}, "y2k22"), ({"csynth": "no-library"}, "install libtinfo5")]
)
def test_known_troubles_of_installations_say_what_helps(
    behaviour: dict[str, object], hint: str, tmp_path: Path
) -> None:
    installation = Installation(tmp_path / "tools", "2021.1")
    installation.behave(behaviour)
    with pytest.raises(ProfilingError) as caught:
        run(installation, tmp_path, "export")
    assert hint in caught.value.hint


def test_a_failed_cosimulation_that_ends_with_0_is_a_failure(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2023.2")
    installation.behave({"cosim": "fail", "exit-0": True})
    with pytest.raises(ProfilingError) as caught:
        run(installation, tmp_path, "cosim")
    assert caught.value.kind == "cosim-failed"


def test_a_source_error_names_the_layer(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2023.2")
    installation.behave({"csynth": "source-error"})
    with pytest.raises(ProfilingError, match=r"csynth, penstock_top.cpp:\d+ \(layer "):
        run(installation, tmp_path)


def test_a_deadlock_names_our_fifos(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2024.2")
    installation.behave({"cosim": "deadlock"})
    with pytest.raises(ProfilingError, match="load_x waits for load_x__unpack_x, which is full"):
        run(installation, tmp_path, "cosim")


def test_memory_runs_out_within_its_limit(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2022.2")
    installation.behave({"csynth": "out-of-memory"})
    with pytest.raises(ProfilingError) as caught:
        run(installation, tmp_path, limits=JobLimits(memory=512 << 20))
    assert caught.value.kind == "out-of-memory"


def test_memory_is_limited_of_all_processes_together(tmp_path: Path) -> None:
    """Each of four children stays below the limit; together they do not, and the last lines are in the error."""
    installation = Installation(tmp_path / "tools", "2024.2")
    installation.behave({"csynth": "spread:400"})
    with pytest.raises(ProfilingError, match=r"held \d+ MiB together; at most 256 are allowed") as caught:
        run(installation, tmp_path, limits=JobLimits(memory=256 << 20, seconds=600))
    assert caught.value.kind == "out-of-memory"
    assert working_in(tmp_path) == []


def test_a_tool_that_hangs_with_its_children_is_ended(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2023.2")
    installation.behave({"csynth": "hang"})
    with pytest.raises(ProfilingError) as caught:
        run(installation, tmp_path, limits=JobLimits(seconds=1.5))
    assert caught.value.kind == "timeout"
    assert working_in(tmp_path) == []


def test_a_cancelled_job_ends_with_all_its_children(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2025.1")
    installation.behave({"csynth": "hang"})
    runner = ToolRunner()
    seen = threading.Event()

    def cancel() -> None:
        seen.wait(20)
        runner.cancel_all()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(ProfilingError) as caught:
        run(installation, tmp_path, runner=runner, on_line=lambda line: seen.set() if "Analyzing" in line else None)
    thread.join()
    assert caught.value.kind == "cancelled"
    assert working_in(tmp_path) == []


def test_a_job_that_fills_the_disk_is_stopped_at_its_quota(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2023.2")
    installation.behave({"csynth": "fill:2000"})
    with pytest.raises(ProfilingError, match="into its work folder; at most 64 are allowed") as caught:
        run(installation, tmp_path, limits=JobLimits(disk=64 << 20))
    assert caught.value.kind == "disk-full"
    assert list((tmp_path / "work").iterdir()) == []


def test_a_flood_of_lines_is_bounded(tmp_path: Path) -> None:
    """A log of 200 MB: what is kept and what is handed on is bounded, and the end is still read."""
    installation = Installation(tmp_path / "tools", "2025.1")
    installation.behave({"csynth": "flood:200"})
    lines: list[str] = []
    done = run(installation, tmp_path, limits=JobLimits(log=4 << 20), on_line=lines.append)
    assert done.synthesis is not None
    assert len(lines) < 20_000
    assert any("in the log alone" in line for line in lines)
    assert any("Estimated Fmax" in line for line in lines)
    assert sum(log.stat().st_size for log in (tmp_path / "results").glob("log-*/*")) < 9 << 20


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_work_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir(mode=0o500)
    with pytest.raises(ProfilingError, match="cannot be written to"):
        run(Installation(tmp_path / "tools", "2023.2"), tmp_path)


def test_a_work_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ProfilingError, match="cannot be written to") as caught:
        run(Installation(tmp_path / "tools", "2023.2"), tmp_path, work_root=tmp_path / "file" / "work")
    assert caught.value.kind == "disk-full"


def test_a_part_that_is_not_installed_is_said(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2023.2")
    design = tmp_path / "other"
    script = emitted(design) / "hls" / "run_hls.tcl"
    script.write_text(script.read_text().replace("xcu55c-fsvh2892-2L-e", "xcnone-1"))
    with pytest.raises(ProfilingError, match="is not installed") as caught:
        run_hls(HlsJob(design, TOP), tools_of(installation), ToolRunner(), tmp_path / "r", work_root=tmp_path / "w")
    assert caught.value.kind == "bad-target"


def test_a_clock_that_the_tool_rejects_is_said(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2025.1")
    config = emitted(tmp_path / "d") / "hls" / "hls_config.cfg"
    config.write_text(config.read_text().replace("clock=3.333ns", "clock=0ns"))
    with pytest.raises(ProfilingError, match="The clock period '0ns' is not valid") as caught:
        run_hls(HlsJob(tmp_path / "d", TOP), tools_of(installation), ToolRunner(), tmp_path / "r", work_root=tmp_path)
    assert caught.value.kind == "bad-target"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("csynth_design -fast", "Unknown option '-fast'"),
        ("no_such_command", 'invalid command name "no_such_command"'),
    ],
)
def test_a_script_that_the_release_does_not_know_fails(change: str, words: str, tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2021.1")
    script = emitted(tmp_path / "d") / "hls" / "run_hls.tcl"
    script.write_text(script.read_text().replace("csynth { csynth_design }", f"csynth {{ {change} }}"))
    with pytest.raises(ProfilingError) as caught:
        run_hls(
            HlsJob(tmp_path / "d", TOP), tools_of(installation), ToolRunner(), tmp_path / "r", work_root=tmp_path / "w"
        )
    assert words in caught.value.what + caught.value.log_tail
