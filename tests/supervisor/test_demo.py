"""The whole way as `make demo` shows it: exit code, what it prints, what it leaves."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.supervisor.stacks import ROOT


def processes_of(folder: Path) -> list[str]:
    """Command lines that name the folder of the private service."""
    found: list[str] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess):
            line = " ".join(process.cmdline())
            if str(folder) in line:
                found.append(line)
    return found


@pytest.mark.slow
def test_the_demo(tmp_path: Path) -> None:
    temporary = tmp_path / "t"
    temporary.mkdir()
    os.chmod(temporary, 0o711)
    for parent in (tmp_path, *list(tmp_path.parents)[:3]):
        os.chmod(parent, parent.stat().st_mode | 0o011)  # the servers' user has to pass
    command = [sys.executable, "-m", "penstock.services.cli.main", "demo", "--trials", "5", "-o", str(tmp_path / "out")]
    answer = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"TMPDIR": str(temporary)}, capture_output=True, text=True, timeout=1800
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert len(re.findall(r"^\s+(?:→ +|\d)\S* .*\bmodelled\b", answer.stdout, re.M)) >= 5
    assert "csim and interpreter are equal bit for bit" in answer.stdout
    assert "SystemVerilog and interpreter are equal, bit for bit" in answer.stdout
    assert re.search(r"cycles, a result every [\d,]+ \[open-rtl\]", answer.stdout)
    assert re.search(r"bitstream bitstream/ulx3s-85f.bit .* could at [\d.]+ MHz \[implemented\]", answer.stdout)
    assert answer.stdout.count("equal the compiler's interpreter, bit for bit") == 2  # emulation, simulated board
    assert re.search(r"accuracy on \d+ of digits.*float \d+\.\d+%, accelerator \d+\.\d+%", answer.stdout)
    assert processes_of(temporary) == []
    assert list(temporary.iterdir()) == []
    (package,) = [path for path in (tmp_path / "out").iterdir() if path.is_dir()]
    report = json.loads((package / "report.json").read_text())
    assert report["verify"]["csim"]["equal"] is True
    assert report["verify"]["rtl"]["equal"] is True
    assert report["timing"]["evidence"] == "open-rtl"
    assert (package / report["bitstream"]["path"]).stat().st_size > 10_000
