"""Host programs, built once for all tests of this folder."""

from __future__ import annotations

import os

import pytest

from penstock.compiler.package import write_folder
from tests.package import hand_made
from tests.xrt.packages import DOUBLE, Host, build_host, write_double


@pytest.fixture(scope="session")
def doubled(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """The hand-made package's host against the test double. Tests write the bitstream that they need."""
    folder = tmp_path_factory.mktemp("doubled")
    write_folder(hand_made.contents(folder / "emitted"), folder / "package")
    program = build_host(folder / "package", DOUBLE, ("-ldl",), folder / "host")
    return Host(folder / "package", program, {"PATH": os.environ["PATH"]})


@pytest.fixture
def host(doubled: Host) -> Host:
    """With a bitstream of two units that answer at once."""
    write_double(doubled.package, 2)
    return doubled
