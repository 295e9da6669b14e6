"""Finding the tools: layouts of every generation, one configured path, what lacks, what doctor says."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from penstock.profiling.vitis import detect
from penstock.profiling.vitis.advice import advise
from penstock.profiling.vitis.detect import Release, find_vitis
from tests.standin.install import Installation
from tests.vitis.standins import RELEASES


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine without any tool; XRT as a package of the system's is not looked for either."""
    monkeypatch.setattr(detect, "_SYSTEM", tmp_path / "usr")
    return {"PATH": str(tmp_path / "empty"), "HOME": str(tmp_path)}


@pytest.mark.parametrize("release", RELEASES)
def test_one_path_finds_everything(release: str, tmp_path: Path) -> None:
    """The installer's root, the product's folder, its bin and its settings script all lead to the same tools."""
    installation = Installation(tmp_path / "tools", release)
    vitis = installation.folder("Vitis")
    found = [
        find_vitis(path, installation.environment)
        for path in (installation.root, vitis, vitis / "bin", vitis / "settings64.sh")
    ]
    assert all(tools == found[0] for tools in found)
    tools = found[0]
    assert str(tools.release) == release
    assert tools.form == ("classic" if release < "2024.1" else "unified")
    assert {"v++", "vivado", "emconfigutil", "xclbinutil"} <= set(tools.programs)
    assert tools.settings == vitis / "settings64.sh"
    assert (tools.xrt_version, tools.licences) == ("2.16.204", ("XILINXD_LICENSE_FILE",))
    assert set(tools.platforms) == set(installation.platforms)
    assert tools.missing == ()
    assert all(line.complete and not line.hint for line in advise(tools))
    assert installation.calls() == []


def test_the_newest_of_several_releases_is_used(tmp_path: Path) -> None:
    for release in ("2021.1", "2022.2"):
        Installation(tmp_path / release, release).root.rename(tmp_path / f"{release}-tree")
    newer, older = tmp_path / "2022.2-tree", tmp_path / "2021.1-tree"
    for product in ("Vitis", "Vitis_HLS", "Vivado"):
        (older / product / "2021.1").rename(newer / product / "2021.1")
    tools = find_vitis(newer, {"PATH": ""})
    assert tools.release == Release(2022, 2)
    assert all("2022.2/bin" in str(tools.programs[name]) for name in ("vitis_hls", "v++", "vivado"))


def test_the_setting_and_the_path_are_both_looked_at(tmp_path: Path, nowhere: dict[str, str]) -> None:
    installation = Installation(tmp_path / "tools", "2023.2")
    by_setting = find_vitis(environment={**nowhere, "PENSTOCK_VITIS": str(installation.root)})
    folders = [str(installation.folder(product) / "bin") for product in installation.products]
    by_path = find_vitis(environment={**nowhere, "PATH": os.pathsep.join(folders)})
    assert by_setting.release == by_path.release == Release(2023, 2)
    assert by_path.programs.items() <= by_setting.programs.items()


def test_a_configured_path_is_not_mixed_with_path(tmp_path: Path, nowhere: dict[str, str]) -> None:
    """Who names a folder without tools gets told so, not another installation."""
    installation = Installation(tmp_path / "tools", "2023.2")
    env = {**nowhere, "PATH": str(installation.folder("Vitis_HLS") / "bin")}
    (tmp_path / "wrong").mkdir()
    tools = find_vitis(tmp_path / "wrong", env)
    assert tools.form is None
    assert f"below {tmp_path / 'wrong'}" in tools.missing[0]


def test_a_release_that_no_path_names_is_asked_for(tmp_path: Path, nowhere: dict[str, str]) -> None:
    """Of vitis-run before vitis_hls, whose banner may name an older release."""
    binaries = tmp_path / "linked" / "bin"
    binaries.mkdir(parents=True)
    for name, banner in (("vitis_hls", "Vitis HLS v2023.2 (64-bit)"), ("vitis-run", "vitis-run v2024.1 (64-bit)")):
        (binaries / name).write_text(f'#!/bin/sh\necho "****** {banner}"\necho "  **** SW Build 2022.1"\n')
        (binaries / name).chmod(0o755)
    assert find_vitis(tmp_path / "linked", nowhere).release == Release(2024, 1)


def test_what_lacks_is_said(tmp_path: Path, nowhere: dict[str, str]) -> None:
    nothing = find_vitis(environment=nowhere)
    assert nothing.form is None
    (line,) = advise(nothing)
    assert not line.complete
    assert "PENSTOCK_VITIS" in line.hint
    installation = Installation(tmp_path / "tools", "2022.2", platforms=())
    (installation.folder("Vivado") / "bin" / "vivado").unlink()
    bare = find_vitis(installation.root, nowhere)
    said = {line.name: line for line in advise(bare)}
    assert "no vivado" in said["vitis"].hint
    assert "no platform files" in said["v++"].hint
    assert "no licence is named" in said["v++"].hint
    assert "absent" in said["xrt"].what


def test_a_folder_that_may_not_be_read_has_no_tools(nowhere: dict[str, str]) -> None:
    """Whoever runs it: root may read everything, so it becomes nobody for the look."""
    with tempfile.TemporaryDirectory() as base, pytest.MonkeyPatch.context() as patch:
        locked, others = Path(base) / "locked", Path(base) / "bin"
        for folder, mode in ((locked, 0o000), (others, 0o755), (Path(base), 0o755)):
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
        program = others / "xclbinutil"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        patch.setenv("PENSTOCK_VITIS", "")
        was = os.geteuid()
        if was == 0:
            os.seteuid(pwd.getpwnam("nobody").pw_uid)
        try:
            with pytest.raises(PermissionError):
                (locked / "v++").stat()
            tools = find_vitis(None, {**nowhere, "HOME": str(locked), "PATH": f"{locked}{os.pathsep}{others}"})
        finally:
            os.seteuid(was)
            locked.chmod(0o700)
        assert tools.programs == {"xclbinutil": program}


def test_doctor_names_the_installation(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "tools", "2025.1")
    answer = subprocess.run(
        [sys.executable, "-m", "penstock.services.cli.main", "doctor", "--json"],
        capture_output=True, text=True, check=False,
        env={**installation.environment, "PENSTOCK_VITIS": str(installation.root), "PENSTOCK_HOME": str(tmp_path)},
    )  # fmt: skip
    checks = {check["name"]: check for check in json.loads(answer.stdout)["checks"]}
    assert checks["vitis"]["state"] == checks["v++"]["state"] == checks["xrt"]["state"] == "ok"
    assert checks["vitis"]["what"].startswith("Vitis 2025.1, HLS by `v++ -c --mode hls`")


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("/tools/Xilinx/Vitis/2023.2/bin", Release(2023, 2)),
        ("/opt/2021.1/old/AMD/2025.1.1/Vitis/bin", Release(2025, 1)),
        ("****** vitis-run v2024.2 (64-bit)", Release(2024, 2)),
        ("/opt/xilinx/vitis/bin", None),
        ("/opt/12023.22/bin", None),
    ],
)
def test_releases_in_paths_and_banners(text: str, release: Release | None) -> None:
    assert Release.find(text) == release
