"""The host program's headers without XRT: compiled by g++ alone, against arrays that numpy wrote."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.layout import Layout, pack
from penstock.profiling.csim import SANITIZERS, find_compiler
from tests.xrt.packages import FLAGS

NATIVE = Path(__file__).resolve().parents[2] / "compiler" / "package" / "xrt" / "native"


@pytest.mark.parametrize("extra", [(), pytest.param(SANITIZERS, marks=pytest.mark.slow)], ids=["plain", "sanitised"])
def test_headers(extra: tuple[str, ...], tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    tensor = random.integers(-1000, 1000, (6, 8)).astype(np.int16)
    real = np.asarray([0.0, 1.0, -0.1875, 0.0625, -200.0, 15.9, 15.94], np.float32)
    arrays = {
        "tensor": tensor,
        "packed": pack(tensor, Layout((3, 4), (1, 2))),
        "padded": pack(np.pad(tensor, ((0, 3), (0, 0))), Layout((3, 4), (1, 2))),
        "several": np.stack([tensor[::-1], tensor]),
        "real": real,
        "quantised": np.clip(np.rint(real / np.float32(0.125)), -128, 127).astype(np.int8),
        "nan": np.asarray([1.0, np.nan]),
        "complex": np.asarray([1j]),
        "fortran": np.asfortranarray(tensor),
    }
    for name, values in arrays.items():
        np.save(tmp_path / f"{name}.npy", values)
    (tmp_path / "short.bin").write_bytes(bytes(15))
    program = tmp_path / "checks"
    source = Path(__file__).with_name("native_checks.cpp")
    command = [find_compiler(), *FLAGS, *extra, f"-I{NATIVE}", str(source), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-3000:]
    done = subprocess.run([str(program), str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    again = np.load(tmp_path / "again.npy")
    assert again.dtype == tensor.dtype
    assert (again == tensor).all()
