"""The data folder: made, locked by one, and refused in a sentence where it cannot be used."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.home import Home
from penstock.services.supervisor.identity import can_reach, check_enterable, server_user

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user run its servers")


def test_one_supervisor_a_folder(tmp_path: Path) -> None:
    first, second = Home(tmp_path / "home"), Home(tmp_path / "home")
    first.prepare()
    assert second.running() is None
    first.lock()
    with pytest.raises(PenstockError, match="just starting"):
        second.lock()
    first.announce("http://127.0.0.1:1")
    with pytest.raises(PenstockError, match=rf"pid {os.getpid()}, http://127.0.0.1:1"):
        second.lock()
    running = second.running()
    assert running is not None
    assert running.pid == os.getpid()
    first.release()
    assert second.running() is None
    second.lock()
    second.release()


def test_a_long_folder_gets_short_sockets(tmp_path: Path) -> None:
    short, long = Home(Path("/tmp/p")), Home(tmp_path / ("x" * 100))
    assert short.sockets == Path("/tmp/p/run")
    assert len(os.fsencode(long.sockets)) < 60
    assert long.sockets == Home(tmp_path / ("x" * 100)).sockets
    assert long.sockets != Home(tmp_path / ("y" * 100)).sockets


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(PenstockError, match="cannot use the data folder"):
        Home(tmp_path / "home").prepare()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a tiny file system can be mounted by root only")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_nearly_full_disk(tiny_disk: Path) -> None:
    with pytest.raises(PenstockError, match=r"only 1 MB are free.*at least 256 MB"):
        Home(tiny_disk / "home").prepare()


def test_a_full_disk(tiny_disk: Path) -> None:
    with (tiny_disk / "filler").open("wb", buffering=0) as filler:
        while shutil.disk_usage(tiny_disk).free:
            filler.write(b"x" * 4096)
    with pytest.raises(PenstockError) as refused:
        Home(tiny_disk / "home").prepare()
    assert refused.value.code == "folder-full"


@needs_root
def test_a_closed_parent_is_named(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    with pytest.raises(PenstockError, match="cannot enter"):
        check_enterable(tmp_path / "closed" / "home", server_user())
    assert not can_reach(tmp_path / "closed", server_user())
    assert can_reach(Path("/bin/sh"), server_user())


def test_a_uid_without_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(PenstockError, match="uid 54321 has no entry"):
        server_user()
