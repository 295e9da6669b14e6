"""Importing in a process of its own: exit codes, error.json, and nothing on standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from penstock.compiler.frontend import make_context
from penstock.compiler.frontend.__main__ import REFUSED, main
from penstock.compiler.program import Program

ROOT = Path(__file__).parents[2]


def run_import(*arguments: str, temporary: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock.compiler.frontend", *arguments],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_a_program_is_written_and_nothing_is_left_behind(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = run_import("zoo:mlp?inputs=4&hidden=3&outputs=2", str(tmp_path / "out"), temporary=temporary)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    program = Program.load(tmp_path / "out", make_context())
    assert program.name == "mlp"
    assert not list(temporary.glob("penstock-*"))


def test_a_refusal_is_written_as_json(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("print('noise')\nraise ValueError('no data')\n")
    done = run_import(f"{tmp_path}/net.py:model", str(tmp_path / "out"), temporary=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    error = json.loads((tmp_path / "out" / "error.json").read_text())
    assert error["code"] == "model-file"
    assert "ValueError: no data" in error["what"]
    assert error["where"].endswith("net.py:2")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "graph.mlir").exists()


def test_an_operation_that_no_pass_can_help_is_refused_at_import(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "class Net(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.lgamma(x) + 1\n"
        "def model():\n"
        "    return Net(), torch.ones(2, 4)\n"
    )
    assert main([f"{tmp_path}/net.py:model", str(tmp_path / "out")]) == REFUSED
    error = json.loads((tmp_path / "out" / "error.json").read_text())
    assert error["code"] == "unsupported-op"
    assert "aten.lgamma" in error["what"]
    assert error["where"].endswith("of net (net.py:4)")


def test_wrong_usage(tmp_path: Path) -> None:
    done = run_import("zoo:mlp", temporary=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage:" in done.stderr
