"""Work folders on disks that are full, that fill up, or that are read-only; and logs of gigabytes."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from penstock.profiling.vitis.job import JobLimits
from tests.standin.install import Installation
from tests.vitis.standins import run

ROOT = Path(__file__).resolve().parents[2]
# In a mount namespace of its own, so that nothing of the disk is left whatever happens.
JOB = """
import json, sys
from pathlib import Path
from penstock.profiling.protocol import ProfilingError
from tests.standin.install import Installation
from tests.vitis.standins import run
folder, disk = Path(sys.argv[1]), Path(sys.argv[2])
installation = Installation(folder / "tools", "2023.2")
installation.behave(json.loads(sys.argv[3]))
try:
    run(installation, folder, work_root=disk)
except ProfilingError as error:
    print(json.dumps([error.kind, error.what, error.where, error.hint]))
"""


def job_on(disk: str, folder: Path, behaviour: dict[str, object]) -> list[str]:
    """Kind, message, place and advice of a job whose work folder is such a disk."""
    mount = folder / "disk"
    mount.mkdir()
    alone = ("unshare", "-r", "-m", "sh", "-c")
    mounted = 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"'
    if subprocess.run((*alone, mounted, "sh", disk, mount, "true"), capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a disk of his own")
    answer = subprocess.run(
        (*alone, mounted, "sh", disk, mount, sys.executable, "-c", JOB, folder, mount, json.dumps(behaviour)),
        capture_output=True, text=True, cwd=ROOT, timeout=600, check=True,
    )  # fmt: skip
    return json.loads(answer.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("disk", "behaviour", "words"),
    [
        ("size=1m,ro", {}, "cannot be written to: Read-only file system"),
        ("size=1m", {}, "MiB are free for the work folder"),
        ("size=320m", {"csynth": "fill:1000"}, "MiB are free on the disk of the work folder|No space left"),
        ("size=320m,nr_inodes=30", {}, "No space left on device"),
    ],
)
def test_a_disk_that_takes_nothing_is_said(disk: str, behaviour: dict[str, object], words: str, tmp_path: Path) -> None:
    kind, what, where, hint = job_on(disk, tmp_path, behaviour)
    assert kind == "disk-full"
    assert re.search(words, what)
    assert where
    assert "another disk" in hint or "another work folder" in hint


@pytest.mark.slow
def test_a_log_of_two_gigabytes_is_bounded_in_memory_and_on_disk(tmp_path: Path) -> None:
    """Beginning and end are kept, the step is judged by them, and neither we nor the supervisor grow with it."""
    installation = Installation(tmp_path / "tools", "2024.2")
    installation.behave({"csynth": "flood:2048"})
    most = 0
    me = psutil.Process()
    before = me.memory_info().rss

    def look(_line: str) -> None:
        nonlocal most
        for child in me.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # it may end while it is looked at
                if "supervise.py" in " ".join(child.cmdline()):
                    most = max(most, child.memory_info().rss)

    done = run(installation, tmp_path, limits=JobLimits(log=4 << 20, seconds=300), on_line=look)
    assert done.synthesis is not None
    assert 0 < most < 64 << 20
    assert me.memory_info().rss - before < 64 << 20
    assert sum(log.stat().st_size for log in (tmp_path / "results").glob("log-*/*")) < 9 << 20
