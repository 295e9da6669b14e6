"""The content store of a worker that shares no folder with the service: a folder of its own, filled by HTTP.

What a step puts is kept here and sent to the service before the step ends; what it asks for is fetched once. Every
transfer is checked by its hash, goes on where it broke off, and is repeated while the service is away.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import httpx

from penstock.services.settings import Settings
from penstock.services.store import ContentStore, HashingWriter, MissingContentError, StoredFile, StoreError, file_hash

T = TypeVar("T")
log = logging.getLogger(__name__)

KEPT_SECONDS = 7 * 86400.0
_CHUNK = 1 << 20
_AWAY = frozenset({408, 429, 500, 502, 503, 504, 507})
_LONGEST_PAUSE = 10.0


class StoreAwayError(StoreError):
    """The service did not answer for as long as a worker waits for it. Nothing is lost: the step is done again."""


class StoreRefusedError(StoreAwayError):
    """The service does not take this worker's requests: somebody has to put that right."""


def open_store(settings: Settings) -> ContentStore:
    """The store of this machine: the shared folder, or one of its own where PENSTOCK_STORE_URL names the service."""
    if not settings.store_url:
        return ContentStore(settings.store_folder)
    return RemoteStore(settings.store_folder, settings.store_url, settings.store_token, settings.outage_seconds)


class RemoteStore(ContentStore):
    """A ContentStore whose truth is elsewhere. Any number of processes may share its folder."""

    def __init__(self, root: Path, url: str, token: str, patience: float) -> None:
        super().__init__(root)
        self._patience = patience
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=httpx.Timeout(30.0, connect=5.0))

    def close(self) -> None:
        self._client.close()

    def keep(self, writer: HashingWriter, sha256: str | None = None) -> StoredFile:
        stored = super().keep(writer, sha256)
        self._repeated(lambda: self._send(stored))
        return stored

    def path(self, sha256: str) -> Path:
        try:
            found = super().path(sha256)
        except MissingContentError:
            self._repeated(lambda: self._fetch(sha256))
            return super().path(sha256)
        with contextlib.suppress(OSError):
            os.utime(found)  # what is used stays
        return found

    def exists(self, sha256: str) -> bool:
        return super().exists(sha256) or self._repeated(lambda: self._is_there(sha256))

    def sweep(self, older_than_seconds: float = 86400.0) -> int:
        """Also forgets what was not used for a week: it can be fetched again."""
        removed = super().sweep(older_than_seconds)
        limit = time.time() - KEPT_SECONDS
        for path in self.root.glob("[0-9a-f][0-9a-f]/*"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < limit:
                    path.unlink()
                    removed += 1
        return removed

    def _is_there(self, sha256: str) -> bool:
        answer = self._checked(self._client.head(f"/v1/contents/{sha256}"), missing=True)
        return answer.status_code != 404

    def _send(self, stored: StoredFile) -> None:
        if self._is_there(stored.sha256):
            return
        with super().path(stored.sha256).open("rb") as file:
            chunks = iter(lambda: file.read(_CHUNK), b"")
            headers = {"Content-Length": str(stored.size)}
            self._checked(self._client.put(f"/v1/contents/{stored.sha256}", content=chunks, headers=headers))

    def _fetch(self, sha256: str) -> None:
        """Into a file that keeps what came if the transfer breaks off, so that the next try asks for the rest only."""
        self._incoming.mkdir(parents=True, exist_ok=True)
        part = self._incoming / f"{sha256}.{os.getpid()}.part"
        have = part.stat().st_size if part.exists() else 0
        asked = {"Range": f"bytes={have}-"} if have else {}
        with self._client.stream("GET", f"/v1/contents/{sha256}", headers=asked) as answer:
            if answer.status_code == 416:  # all of it is here
                answer.read()
            else:
                if answer.status_code == 404:
                    raise MissingContentError(f"no content {sha256} at {self._client.base_url}")
                self._checked(answer)
                with part.open("ab" if answer.status_code == 206 else "wb") as file:
                    for chunk in answer.iter_bytes(_CHUNK):
                        file.write(chunk)
        if file_hash(part) != sha256:
            part.unlink()
            raise httpx.RemoteProtocolError(f"what came is not {sha256}")
        os.chmod(part, 0o444)
        final = self._path(sha256)
        final.parent.mkdir(exist_ok=True)
        os.replace(part, final)

    def _checked(self, answer: httpx.Response, *, missing: bool = False) -> httpx.Response:
        if not (missing and answer.status_code == 404):
            check_answer(answer, str(self._client.base_url))
        return answer

    def _repeated(self, work: Callable[[], T]) -> T:
        end, pause = time.monotonic() + self._patience, 0.2
        while True:
            try:
                return work()
            except httpx.TransportError as error:
                if time.monotonic() + pause > end:
                    raise StoreAwayError(f"{self._client.base_url} does not answer: {error}") from error
                log.info("the content store is away: %s", error)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


def check_answer(answer: httpx.Response, url: str) -> None:
    """Raise what says whether to ask again, or whom."""
    if answer.status_code in _AWAY:
        raise httpx.RemoteProtocolError(f"the service answered {answer.status_code}")
    if answer.is_error:
        hint = "PENSTOCK_STORE_TOKEN must be a token of scope admin" if answer.status_code in (401, 403) else ""
        raise StoreRefusedError(f"{url} answered {answer.status_code}" + (f": {hint}" if hint else ""))
