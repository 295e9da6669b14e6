"""Where profiles are kept: by content, each measured once, whoever asks for it at the same time.

Here is the store of one machine's cache folder; services add one that all workers share.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from penstock.compiler.errors import PenstockError
from penstock.profiling.cache import CacheStore, cache_folder
from penstock.profiling.protocol import Profile, Profiler, ProfileRequest

ProfileOutcome = Profile | PenstockError
MeasureProfile = Callable[[], Profile]
MeasureMany = Callable[[list[str]], Mapping[str, ProfileOutcome]]

KEPT_IN_FOLDER = 50_000


def kept_folder() -> Path:
    """Where a machine keeps what was measured on it."""
    return cache_folder().parent


@dataclass(frozen=True)
class Counts:
    """How often a store was asked, and what it spared: a miss is a measurement, a wait one that somebody else made."""

    hits: int = 0
    misses: int = 0
    waits: int = 0
    failures: int = 0
    seconds_saved: float = 0.0


@dataclass(frozen=True)
class KeptProfile:
    """A profile and how long it took to measure."""

    profile: Profile
    seconds: float


class ProfileStore(Protocol):
    """One measurement a key, across threads and processes. A failed one is not kept."""

    @property
    def counts(self) -> Counts:
        """What was asked of this object."""
        ...

    def fetch(self, key: str, measure: MeasureProfile, *, label: str = "") -> Profile:
        """The kept profile, or what `measure` gives now; its error is raised. `label` names it to people."""
        ...

    def fetch_many(self, keys: Sequence[str], measure: MeasureMany, *, label: str = "") -> dict[str, ProfileOutcome]:
        """The same for several at once; `measure` is called with the keys that nobody knows."""
        ...


def profile_once(profiler: Profiler, request: ProfileRequest, store: ProfileStore) -> Profile:
    """What a profiler says of a request. The name is not part of the content, so a kept profile may carry another."""
    key = request.key(profiler.tool, profiler.version())
    return replace(store.fetch(key, lambda: profiler.profile(request), label=request.name), name=request.name)


class SingleFlight(ABC):
    """The way of all stores: read, claim what is missing, measure what was claimed, wait for what others claimed.

    Nobody waits while holding a claim, so two batches never wait for each other.
    """

    def __init__(self) -> None:
        self._counts = Counts()
        self._counting = threading.Lock()

    @property
    def counts(self) -> Counts:
        return self._counts

    def fetch(self, key: str, measure: MeasureProfile, *, label: str = "") -> Profile:
        def one(_: list[str]) -> dict[str, ProfileOutcome]:
            try:
                return {key: measure()}
            except PenstockError as error:
                return {key: error}

        found = self.fetch_many([key], one, label=label)[key]
        if isinstance(found, PenstockError):
            raise found
        return found

    def fetch_many(self, keys: Sequence[str], measure: MeasureMany, *, label: str = "") -> dict[str, ProfileOutcome]:
        wanted = list(dict.fromkeys(keys))
        found: dict[str, ProfileOutcome] = {}
        waited: set[str] = set()
        while missing := [key for key in wanted if key not in found]:
            found |= self._known(missing, waited)
            if not (missing := [key for key in missing if key not in found]):
                break
            with self._claimed(missing, label) as mine:
                if mine:
                    found |= self._known(mine, waited)  # somebody may have made it just before the claim
                if ours := [key for key in missing if key in mine and key not in found]:
                    found |= self._measure(ours, measure, label)
            if not mine:
                waited.update(missing)
                self._pause()
        return {key: found[key] for key in wanted}

    def _known(self, keys: Collection[str], waited: Collection[str]) -> dict[str, ProfileOutcome]:
        kept = self._read(keys, waited)
        waits = sum(key in waited for key in kept)
        self._count(hits=len(kept) - waits, waits=waits, seconds_saved=sum(one.seconds for one in kept.values()))
        return {key: one.profile for key, one in kept.items()}

    def _measure(self, keys: list[str], measure: MeasureMany, label: str) -> dict[str, ProfileOutcome]:
        began = time.monotonic()
        made = dict(measure(keys))
        assert set(made) == set(keys), "every key is answered by a profile or by an error"
        seconds = (time.monotonic() - began) / len(keys)
        good = {key: KeptProfile(one, seconds) for key, one in made.items() if isinstance(one, Profile)}
        self._keep(good, len(keys) - len(good), label)
        self._count(misses=len(keys), failures=len(keys) - len(good))
        return made

    def _count(
        self, *, hits: int = 0, misses: int = 0, waits: int = 0, failures: int = 0, seconds_saved: float = 0.0
    ) -> None:
        with self._counting:
            now = self._counts
            self._counts = Counts(
                now.hits + hits, now.misses + misses, now.waits + waits, now.failures + failures,
                now.seconds_saved + seconds_saved,
            )  # fmt: skip

    @abstractmethod
    def _read(self, keys: Collection[str], waited: Collection[str]) -> dict[str, KeptProfile]:
        """Those of the keys that are kept, noted as used; for some of them others were `waited` for."""

    @abstractmethod
    def _claimed(self, keys: Sequence[str], label: str) -> AbstractContextManager[set[str]]:
        """A context with those of the keys that this caller alone may measure while it lasts; never waits."""

    @abstractmethod
    def _keep(self, made: Mapping[str, KeptProfile], failures: int, label: str) -> None:
        """Keep what was measured under a claim; some measurements may have failed."""

    @abstractmethod
    def _pause(self) -> None:
        """Wait a little for those who hold the claims."""


class FolderProfiles(SingleFlight):
    """Profiles in files, shared by the processes of one machine; whoever dies while measuring gives the claim up."""

    def __init__(self, root: Path | None = None, keep: int = KEPT_IN_FOLDER) -> None:
        super().__init__()
        self._root, self._most = root, keep

    @property
    def _files(self) -> CacheStore:
        return CacheStore("profiles", self._most, self._root or kept_folder())

    def _read(self, keys: Collection[str], waited: Collection[str]) -> dict[str, KeptProfile]:
        files = self._files
        read = {key: _kept_from(files.read(key)) for key in keys}
        return {key: kept for key, kept in read.items() if kept is not None}

    @contextmanager
    def _claimed(self, keys: Sequence[str], label: str) -> Iterator[set[str]]:
        files = self._files
        with ExitStack() as locks:
            yield {key for key in sorted(keys) if locks.enter_context(files.claim(key))}

    def _keep(self, made: Mapping[str, KeptProfile], failures: int, label: str) -> None:
        files = self._files
        for key, kept in made.items():
            files.write(key, {"profile": kept.profile.to_json(), "seconds": kept.seconds})

    def _pause(self) -> None:
        time.sleep(0.05)


def _kept_from(document: Any) -> KeptProfile | None:
    """What cannot be read, or is of another schema, is measured again."""
    try:
        return KeptProfile(Profile.from_json(document["profile"]), float(document["seconds"]))
    except (PenstockError, KeyError, TypeError, ValueError):
        return None
