"""The content store: the same bytes once, whole or not at all, and no path but a hash leads in."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.services.store import ContentStore, MissingContentError, StoreError, TooLargeError


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "store")


def files_in(store: ContentStore) -> list[Path]:
    return [path for path in store.root.rglob("*") if path.is_file()]


def test_bytes_and_files_are_found_by_their_hash(store: ContentStore, tmp_path: Path) -> None:
    source = tmp_path / "x"
    source.write_bytes(b"hello")
    stored = store.put_file(source)
    assert stored.sha256 == hashlib.sha256(b"hello").hexdigest()
    assert stored.size == 5
    assert store.put_bytes(b"hello") == stored
    assert store.read_bytes(stored.sha256) == b"hello"
    assert len(files_in(store)) == 1, "the same content is kept once"
    assert store.path(stored.sha256).stat().st_mode & 0o222 == 0, "and nobody writes to it by accident"


def test_a_tree_depends_on_names_bits_and_the_executable_flag_only(store: ContentStore, tmp_path: Path) -> None:
    def tree(name: str, order: list[str], time: float) -> Path:
        folder = tmp_path / name
        for path in order:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(path)
            os.utime(folder / path, (time, time))
        (folder / "run.sh").chmod(0o755)
        return folder

    names = ["a/b", "run.sh", "c"]
    first = store.put_tree(tree("one", names, 1e9))
    assert store.put_tree(tree("two", names[::-1], 1.1e9)) == first
    out = store.extract_tree(first.sha256, tmp_path / "out")
    assert sorted(p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()) == sorted(names)
    assert os.access(out / "run.sh", os.X_OK)
    assert not os.access(out / "c", os.X_OK) or os.geteuid() == 0
    (tmp_path / "two" / "c").write_text("changed")
    assert store.put_tree(tmp_path / "two") != first


def test_a_link_in_a_tree_is_refused_and_leaves_nothing(store: ContentStore, tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "secret").symlink_to("/etc/passwd")
    with pytest.raises(StoreError, match="symbolic link"):
        store.put_tree(folder)
    assert files_in(store) == []


def test_too_much_is_refused_while_it_comes(store: ContentStore) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 1000

    with pytest.raises(TooLargeError):
        store.put_chunks(endless(), limit=10_500)
    assert files_in(store) == []


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "/" + "0" * 63])
def test_only_a_hash_leads_to_content(store: ContentStore, name: str) -> None:
    with pytest.raises(StoreError):
        store.path(name)


def test_missing_content_says_so(store: ContentStore) -> None:
    with pytest.raises(MissingContentError):
        store.open("0" * 64)


def test_many_writers_of_the_same_content_agree(store: ContentStore) -> None:
    data = os.urandom(1 << 20)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(store.put_bytes(data).sha256)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {hashlib.sha256(data).hexdigest()}
    assert len(found) == 8
    assert len(files_in(store)) == 1


def test_what_killed_writers_left_is_swept(store: ContentStore) -> None:
    kept = store.put_bytes(b"kept")
    left = store.root / "incoming" / "tmpabc"
    left.write_bytes(b"half")
    os.utime(left, (0, 0))
    assert store.sweep() == 1
    assert [path.name for path in files_in(store)] == [kept.sha256]
