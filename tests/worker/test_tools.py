"""How steps use tools: what of their lines is told, and what users read of a failure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.profiling.protocol import ProfilingError
from penstock.services.settings import Settings
from penstock.services.steps.bodies import tools
from penstock.services.steps.bodies.tools import Telling, bench_of, build_limits, hls_limits, licences, work_folder
from penstock.services.steps.result import RetryLaterError


def context(folder: Path, fence: int = 1, **changes: Any) -> Any:
    """As much of a step's context as these functions look at."""
    settings = replace(Settings(folder), **changes)
    return SimpleNamespace(settings=settings, folder=folder / "work" / "stp_1-1", step=SimpleNamespace(fence=fence))


def test_of_many_lines_those_that_tell_something_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(tools.time, "monotonic", lambda: now)
    told: list[str] = []
    tell = Telling(told.append)
    for line in ("first", "INFO: a", "  ERROR: [HLS 200-70] no", "INFO: b", ""):
        tell(line)
    assert told == ["first"]
    now += 1.5
    tell("INFO: c")
    assert told == ["first", "ERROR: [HLS 200-70] no"]
    now += 1.5
    tell("x" * 5000)
    assert len(told[-1]) == tools.LONGEST_TEXT


def test_a_tools_lines_are_the_steps_progress(tmp_path: Path) -> None:
    shown: list[tuple[float | None, str]] = []
    here = context(tmp_path)
    here.tools = here.check = here.database = None
    here.run, here.options = SimpleNamespace(id="run_1"), {}
    here.progress = lambda fraction, text: shown.append((fraction, text))
    line = bench_of(here).line
    assert line is not None
    line("INFO: [HLS 200-10] Running")
    assert shown == [(None, "INFO: [HLS 200-10] Running")]


def test_a_licence_is_waited_for_longer_each_time(tmp_path: Path) -> None:
    waits: list[float] = []
    for fence in (1, 3, 40):
        with pytest.raises(RetryLaterError) as caught, licences(context(tmp_path, fence, licence_seconds=10.0)):
            raise ProfilingError("licence", what="none is free", where="csynth")
        waits.append(caught.value.delay_seconds)
        assert caught.value.code == "profile-licence"
    assert waits == [10.0, 30.0, 150.0]


def test_users_read_no_path_of_the_server(tmp_path: Path) -> None:
    here = context(tmp_path)
    place = work_folder(here)
    with pytest.raises(ProfilingError) as caught, licences(here):
        raise ProfilingError("disk-full", what="full", where=str(place), log_tail=f"open {place}/a\n{tmp_path}/store")
    assert caught.value.kind == "disk-full"
    assert str(tmp_path) not in str(caught.value.to_dict())
    assert caught.value.where == "the work folder"


def test_limits_are_the_settings(tmp_path: Path) -> None:
    settings = replace(Settings(tmp_path), tool_hours=2.0, build_hours=3.0, tool_disk_gb=1.0, tool_memory_gb=4.0)
    assert (hls_limits(settings).seconds, build_limits(settings).seconds) == (7200, 10800)
    assert (hls_limits(settings).disk, build_limits(settings).disk) == (1 << 30, 10 << 30)
    assert hls_limits(settings).memory == build_limits(settings).memory == 4 << 30
    elsewhere = context(tmp_path, tool_folder=tmp_path / "disk")
    assert work_folder(elsewhere) == tmp_path / "disk" / "work"
