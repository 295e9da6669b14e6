"""The whole way as `make demo` shows it: exit code, what it prints, what it leaves, and a board that computes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from penstock.compiler.runtime import penstock_runtime as runtime
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
        command, cwd=ROOT, env=os.environ | {"TMPDIR": str(temporary)}, capture_output=True, text=True, timeout=3600
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert len(re.findall(r"^\s+(?:→ +|\d)\S* .*\bmodelled\b", answer.stdout, re.M)) >= 5
    assert "csim and interpreter are equal bit for bit" in answer.stdout
    assert "SystemVerilog and interpreter agree, bit for bit" in answer.stdout
    assert re.search(r"cycles, a result every [\d,]+ \[open-rtl\]", answer.stdout)
    assert re.search(r"bitstream bitstream/ulx3s-85f.bit .* could at [\d.]+ MHz \[implemented\]", answer.stdout)
    for of in ("the interpreter", r"the C\+\+"):  # on the emulation, and on the simulated board
        assert len(re.findall(rf"\b(\d+) of \1 values have the bits of {of}", answer.stdout)) == 2
    assert re.search(r"accuracy on \d+ of digits.*float \d+\.\d+%, accelerator \d+\.\d+%", answer.stdout)
    assert processes_of(temporary) == []
    assert list(temporary.iterdir()) == []
    (package,) = [path for path in (tmp_path / "out").iterdir() if path.is_dir()]
    report = json.loads((package / "report.json").read_text())
    assert report["verify"]["csim"]["equal"] is True
    assert report["timing"]["evidence"] == "open-rtl"
    assert report["verify"]["rtl"]["ok"] is True
    the_board_classifies(package)


def the_board_classifies(package: Path) -> None:
    """Its bitstream meets the clock; the simulated board, and for some digits the placed netlist, are right."""
    document = json.loads((package / "bitstream" / "board.json").read_text())
    report = document["report"]
    assert report["evidence"] == "implemented"
    assert report["fmax_mhz"] >= report["clock_mhz"] == 50.0
    assert (package / "bitstream" / document["bitstream"]).stat().st_size > 100_000
    for backend, count in (("simulation", 360), ("netlist", 20)):
        with runtime.load(package, backend=backend) as accelerator:
            held_out = accelerator.package.evaluation()
            assert held_out is not None
            assert held_out.expected is not None
            exact, answers = accelerator.run_rows_exact(held_out.inputs[:count])
            expected = held_out.expected[:count]
            assert len(exact) == count
            assert np.array_equal(exact.reshape(expected.shape), expected)
            right = np.mean(np.argmax(answers.reshape(len(answers), -1), axis=1) == held_out.labels[:count])
            assert right > 0.9


@pytest.mark.slow
def test_the_demo_of_a_convolutional_network(tmp_path: Path) -> None:
    """As `make demo-cnn` calls it: both accuracies, the same bits in C++, and a package that runs by itself."""
    (recipe,) = re.findall(r"^\t@\$\(BIN\)/penstock (demo --model .*) -o ", (ROOT / "Makefile").read_text(), re.M)
    command = [sys.executable, "-m", "penstock.services.cli.main", *recipe.split(), "-o", str(tmp_path / "out")]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "csim and interpreter are equal bit for bit" in answer.stdout
    accuracies = re.search(r"accuracy on 360 of digits.*float (\d+\.\d+)%, accelerator (\d+\.\d+)%", answer.stdout)
    assert accuracies is not None
    assert min(float(found) for found in accuracies.groups()) > 90
    assert re.search(r"\b(\d+) of \1 values have the bits of the interpreter", answer.stdout)
