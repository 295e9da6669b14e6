"""HLS jobs against the stand-in: every generation, what the job leaves, what it says while it runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.profiling.protocol import ProfilingError
from penstock.profiling.vitis.commands import hls_commands, tool_environment
from penstock.profiling.vitis.detect import VitisTools
from penstock.profiling.vitis.job import JobLimits
from penstock.profiling.work_folder import Keep, private_folder, sweep
from tests.standin.install import Installation
from tests.vitis.standins import RELEASES, TOP, aged, run, tools_of


@pytest.fixture(params=RELEASES)
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Installation:
    return Installation(tmp_path / "tools", request.param)


def test_every_step_in_every_generation(installation: Installation, tmp_path: Path) -> None:
    """The scripts and configurations that the backend writes are taken by the release, and every report is read;
    HLS is started as the release is meant to be.
    """
    lines: list[str] = []
    done = run(installation, tmp_path, "implement", "csim", "export", "cosim", on_line=lines.append)
    assert done.steps == ("csim", "csynth", "cosim", "export", "implement")
    assert done.synthesis is not None
    assert (done.synthesis.top, done.synthesis.version, done.synthesis.part) == (
        TOP, installation.release, "xcu55c-fsvh2892-2L-e",
    )  # fmt: skip
    assert done.synthesis.clock_target_ns == pytest.approx(3.33)
    assert done.cosim is not None
    assert (done.cosim.verdict, done.cosim.simulator) == ("pass", "xsim")
    assert done.synthesis.latency is not None
    assert (done.cosim.latency_max or 0) > (done.synthesis.latency.high or 0)
    assert done.timing is not None
    assert done.timing.met
    assert done.area is not None
    assert 0 < (done.area.used.lut or 0) < (done.synthesis.used.lut or 0)
    assert done.kernel is not None
    assert done.kernel.parent == tmp_path / "results"
    assert any("co-simulation finished: PASS" in line for line in lines)
    assert list((tmp_path / "work").iterdir()) == []
    assert done.notes == ()
    calls = [call[:4] for call in installation.calls()]
    if installation.release < "2024.1":
        assert calls == [["vitis_hls", "-f", "run_hls.tcl"]]
    else:
        runs = [["vitis-run", "--mode", "hls", step] for step in ("--csim", "--cosim", "--package", "--impl")]
        assert calls == [runs[0], ["v++", "-c", "--mode", "hls"], *runs[1:]]


def test_without_v_the_script_goes_through_vitis_run(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2025.1")
    (installation.folder("Vitis") / "bin" / "v++").unlink()
    assert run(installation, tmp_path).synthesis is not None
    assert installation.calls() == [["vitis-run", "--mode", "hls", "--tcl", "run_hls.tcl"]]


def test_the_bridge_release_goes_the_new_way_without_the_old_program(tmp_path: Path) -> None:
    """2023.2 has both: the configuration is taken where only Vitis, not Vitis HLS, is installed."""
    installation = Installation(tmp_path / "tools", "2023.2")
    (installation.folder("Vitis_HLS") / "bin" / "vitis_hls").unlink()
    assert run(installation, tmp_path).synthesis is not None
    assert installation.calls()[0][:4] == ["v++", "-c", "--mode", "hls"]


def test_an_exit_code_alone_does_not_fail_a_job(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2022.2")
    installation.behave({"exit-1": True})
    done = run(installation, tmp_path)
    assert done.synthesis is not None
    assert done.notes[0].startswith("csynth: the log says that it succeeded, though the tool ended with exit code 1")


@pytest.mark.parametrize(("keep", "stays"), [("always", 1), ("failed", 0), ("never", 0)])
def test_the_work_folder_stays_as_asked(keep: Keep, stays: int, tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2023.2")
    run(installation, tmp_path, limits=JobLimits(keep=keep))
    assert len(list((tmp_path / "work").iterdir())) == stays
    assert (tmp_path / "results" / "reports" / f"{TOP}_csynth.rpt").is_file()
    installation.behave({"csynth": "no-space"})
    with pytest.raises(ProfilingError):
        run(installation, tmp_path / "again", work_root=tmp_path / "work", limits=JobLimits(keep=keep))
    kept = list((tmp_path / "work").glob("kept-*"))
    assert len(kept) == stays + (keep != "never")
    assert all((folder / "hls" / "vitis_hls.log").is_file() for folder in kept)


def test_what_dead_workers_left_is_swept(tmp_path: Path) -> None:
    """A folder whose owner is gone goes; one that is in use stays, and one that is kept stays for two weeks."""
    root = tmp_path / "work"
    with private_folder(root) as used:
        dead, kept = (root / name for name in ("penstock-job-dead", "kept-penstock-job-old"))
        fresh = root / "kept-penstock-job-fresh"
        for folder in (dead, kept, fresh):
            folder.mkdir()
        for folder in (used, dead):
            aged(folder, 0.1)
        aged(kept, 15)
        sweep(root)
        assert sorted(root.iterdir()) == sorted([used, fresh])
    assert list(root.iterdir()) == [fresh]


def test_the_tools_see_their_settings_and_licences_and_no_secrets(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2023.2")
    (installation.root / ".Xilinx").mkdir()
    (installation.root / ".Xilinx" / "Xilinx.lic").write_text("INCREMENT\n")
    given = {**installation.environment, "PENSTOCK_DATABASE_URL": "postgresql://user:secret@host/db"}
    env = tool_environment(tools_of(installation), tmp_path, given)
    assert env["XILINX_VITIS"] == str(installation.folder("Vitis"))
    assert env["PATH"].startswith(str(installation.folder("Vitis_HLS") / "bin"))
    assert env["HOME"] == str(tmp_path)
    assert env["XILINXD_LICENSE_FILE"] == f"2100@licences:{installation.root / '.Xilinx' / 'Xilinx.lic'}"
    assert "secret" not in json.dumps(env)


def test_no_tool_is_a_typed_error() -> None:
    with pytest.raises(Exception, match="vitis-run was not found") as caught:
        hls_commands(VitisTools(None, None, {}), ("csynth",))
    assert getattr(caught.value, "code", "") == "vitis-missing"
