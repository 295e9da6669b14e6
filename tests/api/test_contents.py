"""Files by hash over HTTP, and the store of a worker that has nothing else."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from penstock.services.remote_store import RemoteStore, StoreAwayError, StoreRefusedError
from penstock.services.store import ContentStore, MissingContentError
from tests.api.conftest import MakeClient, check_problem

Stores = Callable[..., RemoteStore]
DATA = bytes(range(256)) * 20_000


@pytest.fixture
def stores() -> Iterator[Stores]:
    """Stores of workers, closed after the test."""
    with ExitStack() as stack:

        def make(root: Path, url: object, patience: float = 5.0) -> RemoteStore:
            return stack.enter_context(closing(RemoteStore(root, str(url), "", patience)))

        yield make


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_content_is_kept_under_its_own_hash_only(client: httpx.Client) -> None:
    address = f"/v1/contents/{hash_of(DATA)}"
    check_problem(client.get(address), "content-not-found", 404)
    check_problem(client.put(address, content=DATA[:-1]), "content-differs", 422, "hash")
    check_problem(client.get(address), "content-not-found", 404)
    for _ in range(2):
        assert client.put(address, content=DATA).status_code == 204
    assert client.get(address).content == DATA
    part = client.get(address, headers={"Range": "bytes=1000-"})
    assert (part.status_code, part.content) == (206, DATA[1000:])
    check_problem(client.put("/v1/contents/../../etc", content=b""), "not-found", 404)
    check_problem(client.put(f"/v1/contents/{'A' * 64}", content=b""), "invalid-request", 422)


def test_what_is_too_large_is_refused_and_leaves_nothing(make_client: MakeClient, tmp_path: Path) -> None:
    client = make_client(max_content_bytes=1000)
    check_problem(client.put(f"/v1/contents/{hash_of(DATA)}", content=DATA), "too-large", 413)
    assert [path for path in (tmp_path / "home").rglob("*") if path.is_file() and path.stat().st_size > 1000] == []


def test_a_worker_without_the_folder_has_the_same_files(client: httpx.Client, stores: Stores, tmp_path: Path) -> None:
    here = stores(tmp_path / "here", client.base_url)
    there = stores(tmp_path / "there", client.base_url)
    kept = here.put_bytes(DATA)
    assert there.exists(kept.sha256)
    assert there.read_bytes(kept.sha256) == DATA
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.txt").write_text("a")
    assert (there.extract_tree(here.put_tree(tree).sha256, tmp_path / "out") / "a.txt").read_text() == "a"
    assert not there.exists(hash_of(b"never"))
    with pytest.raises(MissingContentError):
        there.path(hash_of(b"never"))


def test_a_transfer_goes_on_where_it_broke_off_and_is_checked(
    client: httpx.Client, stores: Stores, tmp_path: Path
) -> None:
    here = stores(tmp_path / "here", client.base_url)
    sha256 = ContentStore(tmp_path / "home" / "store").put_bytes(DATA).sha256
    incoming = tmp_path / "here" / "incoming"
    incoming.mkdir(parents=True)
    part = incoming / f"{sha256}.{os.getpid()}.part"
    part.write_bytes(DATA[:4321])
    assert here.read_bytes(sha256) == DATA
    here.path(sha256).unlink()
    part.write_bytes(b"x" * 100)  # what is there is not the beginning: fetched again from its first byte
    assert here.read_bytes(sha256) == DATA


def test_a_service_that_is_away_and_one_that_refuses_say_so(
    make_client: MakeClient, stores: Stores, tmp_path: Path
) -> None:
    with pytest.raises(StoreAwayError, match="does not answer"):
        stores(tmp_path / "a", "http://127.0.0.1:9", 0.1).put_bytes(b"x")
    closed = make_client(auth=True)
    with pytest.raises(StoreRefusedError, match="scope admin"):
        stores(tmp_path / "b", closed.base_url, 0.1).put_bytes(b"x")
