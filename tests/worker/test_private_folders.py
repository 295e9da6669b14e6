"""Each step's folder has its own name, is empty when it begins, and goes with it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from penstock.services.worker.private_folders import PrivateFolders


def test_a_folder_that_was_left_empty_becomes_the_next_ones(tmp_path: Path) -> None:
    folders, inodes = PrivateFolders(), set[int]()
    for number in range(5):
        folder = tmp_path / f"stp_{number}-1"
        folders.make(folder)
        assert [path.name for path in tmp_path.iterdir()] == [folder.name], "its claim is known by its name"
        assert tempfile.gettempdir() == str(folder / "tmp")
        inodes.add(folder.stat().st_ino)
        folders.remove(folder)
    assert len(inodes) == 1
    folders.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_step_leaves_is_not_for_the_next_one(tmp_path: Path) -> None:
    folders = PrivateFolders()
    for number, left in enumerate(("secret", "tmp/secret", "tmp")):
        folder = tmp_path / f"stp_{number}-1"
        folders.make(folder)
        assert [path.relative_to(folder).as_posix() for path in folder.rglob("*")] == ["tmp"]
        if left == "tmp":
            (folder / left).rmdir()
        else:
            (folder / left).write_text("x")
        folders.remove(folder)
        assert list(tmp_path.iterdir()) == []
    folders.close()


def test_a_folder_that_somebody_swept_is_made_anew(tmp_path: Path) -> None:
    folders = PrivateFolders()
    first, second = tmp_path / "stp_1-1", tmp_path / "stp_2-1"
    folders.make(first)
    folders.remove(first)
    (first / "tmp").rmdir()
    first.rmdir()
    folders.make(second)
    assert (second / "tmp").is_dir()
    folders.remove(second)
    folders.close()
    assert list(tmp_path.iterdir()) == []
