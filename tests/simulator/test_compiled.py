"""When functions are compiled, where that is kept, and that nobody can tell from a run which of the two it was."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from penstock.compiler import jit
from penstock.compiler.jit import Compiled
from penstock.compiler.simulator import Simulator
from penstock.compiler.simulator.state import EngineState
from tests.simulator.networks import draw_network

TEXT = """
from penstock.compiler.jit import Ints, jit


@jit
def more(n: int) -> int:
    return n + 1


@jit
def total(numbers: Ints) -> int:
    found = 0
    for at in range(len(numbers)):
        found = found + more(numbers[at])
    return found
"""
Installed = Callable[[str], Compiled]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """The same text as a module in a folder of its own, as if it had just been installed there, in a new process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def install(name: str) -> Compiled:
        monkeypatch.setattr(jit, "_at_hand", {})
        monkeypatch.setattr(jit, "_done", Counter())
        monkeypatch.setattr(jit, "_asked", Counter())
        file = tmp_path / name / "summed.py"
        file.parent.mkdir()
        file.write_text(TEXT)
        os.utime(file, (len(name), len(name)))
        spec = importlib.util.spec_from_file_location("summed", file)
        assert spec is not None
        assert spec.loader is not None
        module: ModuleType = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "summed", module)
        spec.loader.exec_module(module)
        return Compiled("summed", ("summed",), "total", before_loading=10, before_compiling=100)

    return install


def kept(folder: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in folder.rglob("*.nbc")}


def test_another_installation_of_the_same_text_finds_what_is_compiled(installed: Installed, tmp_path: Path) -> None:
    one = installed("one")
    assert not one.is_on_disk()
    assert one.function()(np.arange(3)) == 6
    found = kept(tmp_path / "cache")
    assert found
    other = installed("another")
    assert other.is_on_disk()
    assert other.function()(np.arange(4)) == 10
    assert kept(tmp_path / "cache") == found


def test_what_is_half_compiled_has_still_to_be_compiled(installed: Installed, tmp_path: Path) -> None:
    """By somebody who is at it, or was killed meanwhile."""
    installed("one").function()(np.arange(3))
    for file in kept(tmp_path / "cache"):
        if ".total-" in file.name:
            file.unlink()
    assert kept(tmp_path / "cache")
    assert not installed("another").is_on_disk()


def test_a_cache_that_is_emptied_meanwhile_costs_no_result(installed: Installed, tmp_path: Path) -> None:
    one = installed("one")
    assert not one.is_on_disk()
    shutil.rmtree(tmp_path / "cache")
    assert one.function()(np.arange(3)) == 6
    assert kept(tmp_path / "cache")


def test_work_in_plain_python_is_counted_until_it_pays(installed: Installed) -> None:
    one = installed("one")
    assert [one.pays(40) for _ in range(4)] == [False, False, True, True]
    assert one.left() == 20
    one.count(15)
    assert not one.pays(4)
    assert one.pays(1)
    one.function()(np.arange(3))
    assert one.pays(1)
    assert one.left() == 0
    other = installed("another")
    assert other.left() == 10, "it is on disk now"
    assert other.pays(10)


def test_many_small_things_ask_the_disk_seldom(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    one, asked = installed("one"), list[bool]()
    is_on_disk = Compiled.is_on_disk

    def ask(self: Compiled) -> bool:
        asked.append(is_on_disk(self))
        return asked[-1]

    monkeypatch.setattr(Compiled, "is_on_disk", ask)
    assert [one.pays(1) for _ in range(100)] == [False] * 99 + [True]
    assert asked == [False] * 10, "once for as much work as loading is worth"


@pytest.mark.parametrize("plain", [1, 7, 30, 100])
@pytest.mark.parametrize("depth", [1, None])
def test_what_begins_in_plain_python_ends_as_if_it_had_not(
    monkeypatch: pytest.MonkeyPatch, plain: int, depth: int | None
) -> None:
    """Plain Python stands for both, as they are compared elsewhere: what counts is who ends, and how."""
    begun_anew = 0

    def compiled(state: EngineState) -> bool:
        nonlocal begun_anew
        begun_anew += 1
        return Simulator._interpreted(state)

    monkeypatch.setattr(Simulator, "_compiled", staticmethod(compiled))
    for seed in range(30):
        network = draw_network(seed)
        depths = {channel.name: depth for channel in network.channels if channel.kind == "fifo"}
        outcomes = []
        for left in (1 << 60, plain):
            monkeypatch.setattr(Compiled, "left", lambda self, left=left: left)
            simulator = Simulator(network)
            outcomes.append([simulator.outcome(depths, frames=frames) for frames in (1, 2, 1)])
        assert outcomes[0] == outcomes[1], seed
    assert begun_anew > 0
