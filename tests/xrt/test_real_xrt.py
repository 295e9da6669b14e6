"""The host program on the real XRT, as Debian's libxrt-dev or AMD's installation has it: CMake builds it, its library
reads the container, opens units and banks, and on the no-op shim runs the whole control flow.

The no-op shim computes nothing, so what comes back is not what must: `--verify` has to see that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.compiler.package import write_folder
from tests.package import hand_made
from tests.xrt.packages import Host, write_container

ROOTS = (Path(os.environ.get("XILINX_XRT", "/opt/xilinx/xrt")), Path("/usr"))
SHIM = "libxrt_noop.so*"


def missing() -> str | None:
    """Why these tests cannot run here."""
    if shutil.which("cmake") is None:
        return "cmake is not installed"
    if not any((root / "include" / sub / "xrt_device.h").is_file() for root in ROOTS for sub in ("xrt", "xrt/xrt")):
        return "XRT's headers are not installed (apt install libxrt-dev uuid-dev)"
    if not Path("/usr/include/uuid/uuid.h").is_file():
        return "libuuid's headers, which XRT's include, are not installed (apt install uuid-dev)"
    return None


pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Host:
    folder = tmp_path_factory.mktemp("real")
    write_folder(hand_made.contents(folder / "emitted"), folder / "package")
    source, build = folder / "package" / "host" / "xrt", folder / "build"
    for command in (["cmake", "-S", str(source), "-B", str(build)], ["cmake", "--build", str(build)]):
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "CXXFLAGS": "-O0"})
        assert done.returncode == 0, done.stdout + done.stderr
    return Host(folder / "package", build / "penstock_host", {"PATH": os.environ["PATH"]})


@pytest.fixture
def noop(built: Host, tmp_path: Path) -> Host:
    """With the environment of the no-op shim: XRT looks for shims in lib/ of its root, which Debian's has elsewhere."""
    shims = [path for root in ROOTS for path in (*root.glob(f"lib/{SHIM}"), *root.glob(f"lib/*/{SHIM}"))]
    if not shims:
        pytest.skip("this XRT has no no-op shim")
    (tmp_path / "lib").symlink_to(shims[0].parent)
    environment = {**built.environment, "XILINX_XRT": str(tmp_path), "XCL_EMULATION_MODE": "noop"}
    return Host(built.package, built.program, environment)


@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("sets", [1, 3])
def test_the_control_flow_runs_on_the_no_op_shim(units: int, sets: int, noop: Host) -> None:
    write_container(noop.package, units)
    found = noop.answer("--sets", str(sets), "--repeat", "4")
    assert found["units"] == [f"penstock_top_{unit + 1}" for unit in range(units)]
    assert (found["inferences"], found["timing"]) == (4 * 21, None)


def test_what_computed_nothing_is_not_verified(noop: Host) -> None:
    write_container(noop.package, 2)
    done = noop.run("--verify")
    assert (done.returncode, done.stdout.endswith("FAILED\n")) == (1, True)


def test_a_container_of_another_kernel_is_refused(noop: Host) -> None:
    path = write_container(noop.package, 1)
    path.write_bytes(path.read_bytes().replace(b"penstock_top", b"other_kernel"))
    done = noop.run()
    assert (done.returncode, "holds no kernel penstock_top (it holds: other_kernel)" in done.stderr) == (3, True)


def test_a_container_of_other_arguments_is_refused(noop: Host) -> None:
    path = write_container(noop.package, 1)
    path.write_bytes(path.read_bytes().replace(b'name="bias"', b'name="gain"'))
    done = noop.run()
    assert (done.returncode, "the arguments of penstock_top are not those" in done.stderr) == (3, True)


def test_without_a_device_xrt_says_so(built: Host) -> None:
    write_container(built.package, 1)
    done = built.run()
    assert (done.returncode, "device 0 cannot be opened: " in done.stderr) == (3, True)
