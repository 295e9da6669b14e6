"""Kept measurements as files: one maker a key, nothing half-written, nothing left of killed writers."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.profiling.cache import ABANDONED_SECONDS, CacheStore, fetch_many


def aged(path: Path, seconds: float) -> Path:
    then = time.time() - seconds
    os.utime(path, times=(then, then))
    return path


def test_who_makes_a_key_that_is_pruned_meanwhile_still_makes_it_alone(tmp_path: Path) -> None:
    store = CacheStore("kind", keep=1, root=tmp_path)
    store.write("old", 1)
    aged(store.path("old.json"), 60)
    with store.making("old"):
        store.write("new", 2)  # beyond what is kept: the old entry goes
        assert store.read("old") is None
        with store.claim("old") as mine:
            assert not mine
    with store.claim("old") as mine:
        assert mine


def test_a_lock_that_was_pruned_while_somebody_waited_for_it_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening and locking the file its name may be taken away: what is locked then locks nobody out."""
    store = CacheStore("kind", keep=1, root=tmp_path)
    honest, taken = os.open, []

    def opened(path: Path, *rest: int) -> int:
        descriptor = honest(path, *rest)
        if not taken:
            taken.append(Path(path).unlink())
        return descriptor

    monkeypatch.setattr("penstock.profiling.cache.os.open", opened)
    with store.making("key"), store.claim("key") as mine:
        assert not mine


def test_what_killed_writers_left_goes_and_what_is_being_written_stays(tmp_path: Path) -> None:
    store = CacheStore("kind", keep=8, root=tmp_path)
    left, fresh = store.path(".left"), store.path(".fresh")
    for path in (left, fresh):
        path.write_text("{")
    aged(left, ABANDONED_SECONDS + 60)
    store.write("key", 1)
    assert (left.exists(), fresh.exists(), store.read("key")) == (False, True, 1)


def test_what_cannot_be_written_is_an_error_for_people_and_leaves_nothing(tmp_path: Path) -> None:
    store = CacheStore("kind", keep=8, root=tmp_path)
    store.path("key.json").mkdir()
    with pytest.raises(PenstockError) as caught:
        store.write("key", 1)
    assert (caught.value.code, caught.value.where) == ("cache-folder", str(store.folder))
    assert caught.value.hint
    assert [path.name for path in store.folder.iterdir()] == ["key.json"]
    store.path("other.lock").mkdir()
    with pytest.raises(PenstockError, match="cannot be written to"), store.making("other"):
        pass


def test_what_another_user_kept_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CacheStore("kind", keep=8, root=tmp_path)
    store.write("key", 1)

    def refuse(path: Path) -> None:
        raise PermissionError(path)

    monkeypatch.setattr("penstock.profiling.cache.os.utime", refuse)
    assert store.read("key") == 1


def test_entries_are_made_once_and_damaged_ones_again(tmp_path: Path) -> None:
    store, made = CacheStore("things", 10, tmp_path), []

    def make(keys: list[str]) -> dict[str, int]:
        made.extend(keys)
        return {key: len(key) for key in keys}

    def read(document: object) -> int | None:
        return document if isinstance(document, int) else None

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(fetch_many, store, ["a", "bb", "a"], read, make, lambda n: n) for _ in range(4)]
        assert all(job.result() == {"a": 1, "bb": 2} for job in jobs)
    assert sorted(made) == ["a", "bb"]
    store.path("a.json").write_text("{")
    assert fetch_many(store, ["a", "bb"], read, make, lambda n: n) == {"a": 1, "bb": 2}
    assert made[2:] == ["a"]


def test_the_oldest_entries_go_first(tmp_path: Path) -> None:
    store = CacheStore("things", 3, tmp_path)
    for number in range(6):
        store.write(str(number), number)
        path = store.path(f"{number}.json")
        if path.exists():
            os.utime(path, (number, number))
    assert sorted(p.name for p in store.folder.glob("*.json")) == ["3.json", "4.json", "5.json"]
