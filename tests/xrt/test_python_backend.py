"""The runtime's `xrt` backend on a double of pyxrt: the same answers, overlap and words as the native program's."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.compiler.package import PackageContents, write_folder
from penstock.compiler.runtime.penstock_runtime import PackageError, load, open_package
from penstock.compiler.runtime.penstock_runtime.xclbin import read_kernels
from penstock.compiler.runtime.penstock_runtime.xrt import Xrt
from tests.package import hand_made
from tests.package.test_held import packaged
from tests.xrt.container import Kernel, xclbin
from tests.xrt.packages import DOUBLE, bitstream_of, two_kernels, write_container, write_double, write_package


@pytest.fixture
def package(tmp_path: Path) -> Path:
    contents: PackageContents = hand_made.contents(tmp_path / "emitted")
    write_folder(contents, tmp_path / "package")
    return tmp_path / "package"


@pytest.fixture
def pyxrt(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(DOUBLE))
    module = importlib.import_module("pyxrt")
    module.LOG.clear()
    yield module
    del sys.modules["pyxrt"]


@pytest.mark.parametrize("units", [1, 2])
def test_rows_give_what_the_interpreter_says(units: int, package: Path, pyxrt: Any) -> None:
    """Over all units and sets; each unit's second set is sent to before its first is waited for."""
    write_double(package, units)
    rows = np.random.default_rng(2).uniform(-4, 4, (9, 16)).astype(np.float32)
    with load(package) as accelerator:
        assert (accelerator.backend.name, accelerator.backend.evidence) == ("xrt", "board")
        exact, answers = accelerator.run_rows_exact(rows)
    assert (exact == hand_made.exact(rows)).all()
    assert (answers == hand_made.answers(rows)).all()
    starts = [event for event in pyxrt.LOG if event.startswith("start")]
    assert starts == [f"start penstock_top_{n % units + 1}" for n in range(9)]
    assert sum(event.startswith("start") for event in pyxrt.LOG[: pyxrt.LOG.index("done penstock_top_1")]) == 2 * units


@pytest.mark.parametrize("kind", ["int8", pytest.param("float32", marks=pytest.mark.slow)])
def test_kernels_that_hand_over_in_memory(kind: str, tmp_path: Path, pyxrt: Any) -> None:
    lowered = two_kernels(kind)
    folder = write_package(lowered, tmp_path / "package")
    write_double(folder, 2)
    inputs = np.load(folder / "model/samples/input_0.npy"), np.load(folder / "model/samples/input_1.npy")
    expected = np.load(folder / "model/samples/expected_0.npy")
    with open_package(folder) as opened:
        backend = Xrt(opened)
        answers = backend.call_all([[unread, x] for unread, x in zip(*inputs, strict=True)])
        backend.close()
    assert (np.stack([answer[0] for answer in answers]) == expected.reshape(len(answers), *answers[0][0].shape)).all()
    assert "fetch" in " ".join(pyxrt.LOG)


def run(package: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "run.py", *words], cwd=package, capture_output=True, text=True, timeout=600,
        env={"PATH": os.environ["PATH"], **environment},
    )  # fmt: skip


def test_the_command_line_takes_the_device_if_it_can(package: Path) -> None:
    write_double(package, 2)
    with_xrt = run(package, "--self-test", PYTHONPATH=str(DOUBLE))
    assert (with_xrt.returncode, "backend   xrt: " in with_xrt.stdout) == (0, True), with_xrt.stderr
    without = run(package, "--self-test", "--json")
    found = json.loads(without.stdout)
    assert (found["backend"], found["evidence"], found["ok"]) == ("emulation", "simulated", True)
    evaluated = run(package, "--evaluate", "--json", PYTHONPATH=str(DOUBLE))
    assert json.loads(evaluated.stdout)["examples_within_tolerance"] == 20
    emulated = run(package, "--evaluate", "--json", PYTHONPATH=str(DOUBLE), XCL_EMULATION_MODE="hw_emu")
    assert json.loads(emulated.stdout)["evidence"] == "cosim"


@pytest.mark.parametrize("mode", ["sw_emu", "noop", "hw_emu_next"])
def test_no_emulation_passes_for_the_board(
    mode: str, package: Path, pyxrt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_double(package, 1)
    monkeypatch.setenv("XCL_EMULATION_MODE", mode)
    with load(package) as accelerator:
        assert accelerator.backend.evidence == "simulated"


def test_without_pyxrt_it_says_what_to_install(package: Path) -> None:
    write_double(package, 1)
    done = run(package, "--self-test", "--backend", "xrt")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "XRT's Python module pyxrt cannot be imported" in done.stderr
    assert "without a device use --backend emulation" in done.stderr


def test_trouble_is_named(package: Path, pyxrt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def says(words: str, port: str | None = None) -> None:
        with pytest.raises(PackageError, match=words), load(package, backend="xrt", port=port) as accelerator:
            accelerator.run(np.zeros(16))

    says(r"cannot be read \(No such file or directory\) - link the design")
    path = write_double(package, 1)
    whole = path.read_bytes()
    says(r"device 1 cannot be opened \(Could not open", port="1")
    says(r"there is no device 'ttyUSB0' - pass a number", port="ttyUSB0")
    monkeypatch.setenv("PENSTOCK_XRT_DOUBLE_FAILS", "1")
    says(r"compute unit penstock_top_1 did not end well")
    path.write_bytes(whole.replace(b'name="bias"', b'name="gain"'))
    says(r"the arguments of penstock_top are not those of this package")
    path.write_bytes(whole.replace(b"penstock_top", b"other_kernel"))
    says(r"holds no kernel penstock_top \(it holds: other_kernel\)")
    write_container(package, 1)
    says(r"cannot be loaded onto device 0 \(Invalid xclbin\)")


@pytest.mark.parametrize("length", [0, 7, 100, 450, 460, 700])
def test_a_bitstream_that_is_cut_off_is_refused(length: int, package: Path) -> None:
    path = write_container(package, 2)
    assert read_kernels(path)[0].units == ("penstock_top_1", "penstock_top_2")
    assert read_kernels(path)[0].arguments == ("x", "bias", "y")
    bitstream_of(package).write_bytes(path.read_bytes()[:length])
    with pytest.raises(PackageError, match="is no whole bitstream"):
        read_kernels(path)


def test_damaged_bitstreams_are_read_or_refused(tmp_path: Path) -> None:
    """Whatever bytes are changed or missing: kernels, or the one error."""
    whole = xclbin(Kernel("top", ("x", "y"), {"top_1": (0, 1), "top_2": (2, 3)}))
    random, path, refused = np.random.default_rng(1), tmp_path / "damaged.xclbin", 0
    for _ in range(1000):
        data = bytearray(whole)
        for place in random.integers(0, len(data), random.integers(1, 30)):
            data[place] = random.integers(0, 256)
        path.write_bytes(bytes(data[: random.integers(0, 2 * len(data))]))
        try:
            assert all(isinstance(name, str) for kernel in read_kernels(path) for name in kernel.units)
        except PackageError:
            refused += 1
    assert 100 < refused < 1000


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "w8a8"])
def test_all_layers_by_one_start(quantize: str | None, tmp_path: Path, pyxrt: Any) -> None:
    """A layer's answer is on the device what the next one reads; weights are sent once, and answers are emulation's."""
    packaged("decoder#", tmp_path, quantize)
    folder = tmp_path / "package"
    write_double(folder, 1)
    with open_package(folder) as opened:
        samples, held = opened.host_samples(), set(opened.json("layers/graph.json")["held"])
        weights = [f"send {e['position']}" for e in opened.json("interface.json")["inputs"] if e["name"] in held]
    assert samples is not None
    with load(folder) as device, load(folder, backend="emulation") as emulated:
        assert device.backend.name == "xrt"
        answers = [(device.run(*samples.inputs), emulated.run(*samples.inputs)) for _ in range(2)]
        assert all((ours == theirs).all() for ours, theirs in answers)
        assert all(pyxrt.LOG.count(weight) == 1 for weight in weights), "weights are sent once"
        assert sum(event.startswith("start") for event in pyxrt.LOG) == 2, "a start for two layers"
        emulated.backend.call_list = None
        assert (device.run(*samples.inputs) == emulated.run(*samples.inputs)).all(), "as a start a layer"
        assert all(pyxrt.LOG.count(weight) == 1 for weight in weights), "weights stay"
