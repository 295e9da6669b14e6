"""A package outside the repository, run as its user runs it: by a Python that knows nothing of Penstock."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.package import hand_made


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """No PYTHONPATH and another folder: the repository is as far away as on another machine."""
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments], cwd=folder, capture_output=True, text=True, timeout=600,
        env={"PATH": os.environ["PATH"], "TMPDIR": os.environ.get("TMPDIR", "/tmp"), **environment},
    )  # fmt: skip


def test_self_test(built: Path) -> None:
    result = run(built, "run.py", "--self-test")
    assert result.stderr == ""
    assert "4 of 4 values have the bits of the interpreter" in result.stdout
    assert result.stdout.endswith("ok\n")
    assert result.returncode == 0


def test_evaluate(built: Path) -> None:
    result = run(built, "-m", "penstock_runtime", "--evaluate", "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["examples"] == answer["examples_bits_equal"] == 20
    assert answer["evidence"] == "simulated"
    report = json.loads((built / "report.json").read_text())
    for figure in ("float_accuracy", "accelerator_accuracy", "agreement"):
        assert answer[figure] == report["accuracy"][figure]


def test_digit(built: Path) -> None:
    result = run(built, "run.py", "--digit", "3", "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    evaluation = hand_made.program().evaluation
    assert evaluation is not None
    scores = hand_made.answers(evaluation.inputs[3:4])[0]
    assert answer["accelerator"] == int(np.argmax(scores))
    assert answer["scores"] == [float(s) for s in scores]
    assert "label" in run(built, "run.py", "--digit", "3").stdout


def test_digit_that_does_not_exist(built: Path) -> None:
    result = run(built, "run.py", "--digit", "20")
    assert result.returncode == 2
    assert result.stderr == "error: there is no example 20 - choose one from 0 to 19\n"


def test_input_and_output_files(built: Path, tmp_path: Path) -> None:
    rows = np.random.default_rng(5).uniform(-3, 3, (6, 16))
    np.save(tmp_path / "x.npy", rows)
    result = run(built, "run.py", "--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy"))
    assert result.returncode == 0, result.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), hand_made.answers(rows))


def _header(said: bytes) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(said) + 1) + said + b"\n"


@pytest.mark.parametrize(
    ("bytes_of_file", "said"),
    [
        (b"not an array", "cannot be read as an array"),
        (b"PK\x03\x04 no archive", "cannot be read as an array"),
        (_header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,)}"), "cannot be read"),
        (_header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,"), "cannot be read as an array"),
        (_header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (True, 16)}"), "its shape is (True, 16)"),
        (_header(b"{[]: 1}"), "a header that says nothing: TypeError"),
        (_header(b"-" * 3000 + b"1"), "a header that says nothing: RecursionError"),
        (None, "x.npy is an archive of arrays"),
    ],
    ids=["text", "half an archive", "a petabyte", "half a header", "no size", "no key", "deep", "several arrays"],
)
def test_input_that_is_no_array(built: Path, tmp_path: Path, bytes_of_file: bytes | None, said: str) -> None:
    if bytes_of_file is None:
        with (tmp_path / "x.npy").open("wb") as file:
            np.savez(file, x=np.zeros((1, 16)), y=np.zeros(2))
    else:
        (tmp_path / "x.npy").write_bytes(bytes_of_file)
    result = run(built, "run.py", "--input", str(tmp_path / "x.npy"))
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert said in result.stderr


def test_archive_runs_itself(archive: Path, tmp_path: Path) -> None:
    result = run(tmp_path, str(archive), "--self-test", TMPDIR=str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("ok\n")


def test_self_test_lists_every_changed_file_and_runs_nothing(package: Path) -> None:
    (package / "hls" / "weights.h").write_text("#error changed\n")
    (package / "ir" / "1-linalg.mlir").unlink()
    result = run(package, "run.py", "--self-test")
    assert result.returncode == 1
    count = len(json.loads((package / "manifest.json").read_text())["files"])
    assert f"2 of {count} differ" in result.stdout
    assert "hls/weights.h: changed" in result.stdout
    assert "ir/1-linalg.mlir: missing" in result.stdout
    assert not (package / ".cache").exists()


def test_self_test_sees_a_wrong_accelerator(package: Path) -> None:
    source = package / "hls" / "penstock_top.cpp"
    source.write_text(source.read_text().replace("sum +=", "sum -="))
    result = run(package, "run.py", "--self-test", "--no-check")
    assert result.returncode == 1
    assert result.stdout.endswith("FAILED\n")


def test_no_compiler(package: Path, tmp_path: Path) -> None:
    result = run(package, "run.py", "--self-test", PATH=str(tmp_path))
    assert result.returncode == 2
    assert result.stderr.startswith("error: no C++ compiler was found")
    assert result.stderr.count("\n") == 1


def test_read_only_folder(package: Path, tmp_path: Path) -> None:
    for path in [package, *package.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        elsewhere = tmp_path / "tmp"
        elsewhere.mkdir()
        command = [*_without_roots_rights(), sys.executable, "run.py", "--self-test"]
        result = subprocess.run(
            command, cwd=package, capture_output=True, text=True, timeout=600,
            env={"PATH": os.environ["PATH"], "TMPDIR": str(elsewhere)},
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        assert not (package / ".cache").exists()
        assert list(elsewhere.glob("penstock-cache-*/csim-*.so"))
    finally:
        for path in [package, *package.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def _without_roots_rights() -> list[str]:
    """Root may write anywhere, unless that capability is dropped."""
    if os.geteuid() != 0:
        return []
    command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if shutil.which("setpriv") is None or subprocess.run([*command, "true"], check=False).returncode != 0:
        pytest.skip("root's rights cannot be dropped here")
    return command


def test_usage_error(built: Path) -> None:
    result = run(built, "run.py")
    assert result.returncode == 2
    assert "usage: run.py" in result.stderr
