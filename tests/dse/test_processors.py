"""How many processors there are for a process: by the machine, and by each version of a container's quota."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.dse.support.processors import processors


@pytest.fixture(autouse=True)
def of_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def groups(folder: Path, own: str, files: dict[str, str]) -> int:
    (folder / "own").write_text(own)
    for name, text in files.items():
        (folder / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "groups" / name).write_text(text)
    return processors(folder / "groups", folder / "own")


@pytest.mark.parametrize(
    ("most", "count"), [("max 100000", 8), ("100000 100000", 1), ("50000 100000", 1), ("350000 100000", 3), ("?", 8)]
)
def test_a_quota_of_the_group_counts(tmp_path: Path, most: str, count: int) -> None:
    assert groups(tmp_path, "0::/\n", {"cpu.max": f"{most}\n"}) == count


def test_the_narrowest_of_nested_groups_counts(tmp_path: Path) -> None:
    files = {"a/cpu.max": "200000 100000\n", "a/b/cpu.max": "max 100000\n"}
    assert groups(tmp_path, "0::/a/b\n", files) == 2


@pytest.mark.parametrize(("quota", "count"), [("-1", 8), ("150000", 1), ("400000", 4)])
def test_an_older_kernel_keeps_it_in_two_files(tmp_path: Path, quota: str, count: int) -> None:
    files = {"cpu,cpuacct/cpu.cfs_quota_us": f"{quota}\n", "cpu,cpuacct/cpu.cfs_period_us": "100000\n"}
    assert groups(tmp_path, "5:memory:/x\n3:cpu,cpuacct:/x\n", files) == count


def test_what_is_not_there_limits_nothing(tmp_path: Path) -> None:
    assert processors(tmp_path / "none", tmp_path / "nothing") == 8
