"""Every store of profiles keeps one promise: a key is measured once, whoever asks, and a failure is not kept."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.db import Database
from penstock.profiling.protocol import Profile, ProfileRequest, ProfilingError
from penstock.profiling.store import FolderProfiles, ProfileStore, profile_once
from penstock.services.profiles import SharedProfiles
from penstock.services.supervisor.process import dying_with_us
from tests.db.test_repositories import echo, make_run
from tests.fixtures.waiting import QUIET_SECONDS, wait_until
from tests.profiling.model_profiler import ModelProfiler
from tests.profiling.profile_worker import profile_of

MakeStore = Callable[[], ProfileStore]


@pytest.fixture(params=["folder", "postgres"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    """Opens the same store once more, as another caller would."""
    if request.param == "folder":
        return lambda: FolderProfiles(tmp_path)
    database: Database = request.getfixturevalue("database")
    run = make_run(database, echo("a"))
    return lambda: SharedProfiles(database, run.id, lease_seconds=5)


def test_what_was_measured_is_measured_never_again(make_store: MakeStore) -> None:
    made = make_store().fetch("a", lambda: profile_of("a"), label="first")
    again = make_store()
    before = again.counts
    assert again.fetch("a", lambda: pytest.fail("measured twice")) == made
    assert again.counts.hits == before.hits + 1


def test_many_at_once_measure_once(make_store: MakeStore) -> None:
    measured: list[str] = []
    stores = [make_store() for _ in range(4)]

    def slowly() -> Profile:
        measured.append("a")
        time.sleep(0.2)
        return profile_of("a")

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda store: store.fetch("a", slowly), stores))
    assert found == [profile_of("a")] * 4
    assert measured == ["a"]
    counts = {id(store): store.counts for store in stores}.values()
    assert (sum(c.misses for c in counts), sum(c.waits + c.hits for c in counts)) == (1, 3)
    assert sum(c.seconds_saved for c in counts) >= 3 * 0.2


def test_batches_that_overlap_share_what_they_measure(make_store: MakeStore) -> None:
    """Each claims what it can, and neither waits while it holds a claim."""
    measured: list[str] = []
    begun = threading.Barrier(2)

    def make(keys: list[str]) -> dict[str, Profile]:
        measured.extend(keys)
        time.sleep(0.1)
        return {key: profile_of(key) for key in keys}

    def ask(keys: list[str]) -> dict[str, object]:
        store = make_store()
        begun.wait()
        return dict(store.fetch_many(keys, make))

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.submit(ask, ["a", "bb", "ccc", "a"]), pool.submit(ask, ["ccc", "dd", "bb"])
        assert one.result() == {key: profile_of(key) for key in ("a", "bb", "ccc")}
        assert other.result() == {key: profile_of(key) for key in ("ccc", "dd", "bb")}
    assert sorted(measured) == ["a", "bb", "ccc", "dd"]


def test_a_failure_is_raised_and_not_kept(make_store: MakeStore) -> None:
    def fail() -> Profile:
        raise ProfilingError("timeout", what="the tool took too long")

    def crash() -> Profile:
        raise RuntimeError("a bug")

    store = make_store()
    with pytest.raises(ProfilingError, match="too long"):
        store.fetch("a", fail)
    with pytest.raises(RuntimeError, match="a bug"):
        store.fetch("a", crash)
    assert store.counts.failures == 1
    mixed = store.fetch_many(["a", "bb"], lambda keys: {
        key: profile_of(key) if key == "a" else ProfilingError("licence", what="taken") for key in keys
    })  # fmt: skip
    assert mixed["a"] == profile_of("a")
    assert isinstance(mixed["bb"], ProfilingError)
    assert make_store().fetch("bb", lambda: profile_of("bb")) == profile_of("bb")


def test_a_tool_that_answers_for_less_than_it_was_asked_is_a_defect(make_store: MakeStore) -> None:
    with pytest.raises(AssertionError, match="every key"):
        make_store().fetch_many(["a", "bb"], lambda keys: {"a": profile_of("a")})


def test_the_name_is_not_part_of_the_content(tmp_path: Path) -> None:
    store = FolderProfiles(tmp_path)
    text = (Path(__file__).parents[1] / "compiler/goldens/3-stream.mlir").read_text()
    first = profile_once(ModelProfiler(), ProfileRequest("one", text, "u55c", 250.0), store)
    second = profile_once(ModelProfiler(), ProfileRequest("two", text, "u55c", 250.0), store)
    assert (first.name, second.name, first.latency_cycles) == ("one", "two", second.latency_cycles)
    assert (store.counts.misses, store.counts.hits) == (1, 1)


@pytest.fixture
def workers() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts processes that ask for a key; none of them outlives the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.profiling.profile_worker", *map(str, arguments)]
        started.append(subprocess.Popen(dying_with_us(command), cwd=Path(__file__).parents[2]))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def lines_of(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def test_two_worker_processes_run_the_tool_once(
    database: Database, tmp_path: Path, workers: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """Real processes, a real Postgres, a tool that says in a file that it ran."""
    run, other = make_run(database, echo("a")), make_run(database, echo("a"))
    ran, got = tmp_path / "ran", tmp_path / "got"
    both = [workers(database.url, one.id, "key", ran, got, 1.0) for one in (run, other)]
    assert [process.wait(QUIET_SECONDS) for process in both] == [0, 0]
    assert len(lines_of(ran)) == 1
    assert lines_of(got) == ["3", "3"]
    with database.begin() as tx:
        counts = tx.profiles.counts()
        cited = [tx.profiles.cited(one.id) for one in (run, other)]
        assert tx.profiles.claimed() == 0
    assert (counts["misses"], counts["hits"] + counts["waits"]) == (1, 1)
    assert sorted(word for words in cited for word in words) in (["hit", "miss"], ["miss", "wait"])


def test_when_the_measuring_worker_is_killed_another_takes_over(
    database: Database, tmp_path: Path, workers: Callable[..., subprocess.Popen[bytes]]
) -> None:
    run = make_run(database, echo("a"))
    ran, got = tmp_path / "ran", tmp_path / "got"
    victim = workers(database.url, run.id, "key", ran, got, 600.0)
    wait_until(lambda: len(lines_of(ran)) == 1)
    heir = workers(database.url, run.id, "key", ran, got, 0.0)
    time.sleep(1.0)  # longer than it takes to see the claim
    assert heir.poll() is None
    assert len(lines_of(ran)) == 1, "a claim that is renewed is respected"
    victim.kill()
    victim.wait()
    assert heir.wait(QUIET_SECONDS) == 0
    assert len(lines_of(ran)) == 2
    assert lines_of(got) == ["3"]
