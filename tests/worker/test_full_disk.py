"""A full disk: work waits, nothing is lost, and it goes on by itself once there is room."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from penstock.db.schema.records import NewStep
from penstock.db.schema.states import RunState, StepState
from penstock.services.settings import Settings
from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.worker.room import came_from_a_full_disk, has_room
from tests.fixtures.service import Service, assert_legal, fresh_service

MIB = 1 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Of 6 MB, in a mount namespace that a sleeping process holds; seen by us below that process's root."""
    place = tmp_path / "disk"
    place.mkdir()
    script = 'mount -t tmpfs -o size=6m,mode=0777 none "$1" && echo ready && exec sleep 1000'
    holder = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", str(place)],
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        if holder.stdout.readline() != b"ready\n":
            pytest.skip("this machine forbids mounts in namespaces")
        yield Path(f"/proc/{holder.pid}/root{place}")
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert holder.stdout is not None
        holder.stdout.close()


def test_steps_wait_for_room_and_then_succeed(
    small_disk: Path, tmp_path_factory: pytest.TempPathFactory, postgres: EmbeddedPostgres
) -> None:
    with fresh_service(tmp_path_factory.mktemp("home"), postgres, "tests.worker.bodies") as service:
        limits = {"PENSTOCK_HOME": str(small_disk), "PENSTOCK_WORK_DISK_BYTES": str(MIB)}
        service.environment |= limits
        service.dispatcher()
        service.worker(PENSTOCK_CONCURRENCY="1")
        run = service.submit(NewStep("fill", "fill", "explore"), NewStep("echo", "echo", "explore", needs=("fill",)))
        service.until(lambda: any(event.kind == "step.hand_back" for event in service.events(run)))
        told = next(event.data["error"] for event in service.events(run) if event.kind == "step.hand_back")
        assert told["code"] == "storage-full"
        (small_disk / "ballast").write_bytes(bytes(5 * MIB + MIB // 2))
        make_due(service)
        waiting = service.steps(run)["fill"]
        assert (waiting.state, waiting.attempt) == (StepState.QUEUED, 0)
        (small_disk / "ballast").unlink()
        (small_disk / "room").touch()
        make_due(service)
        assert service.wait(run).state == RunState.SUCCEEDED, service.explain(run)
        assert service.steps(run)["fill"].attempt == 1
        assert_legal(service.events(run))


def fill(file: BinaryIO) -> None:
    while True:
        os.write(file.fileno(), bytes(MIB))


def make_due(service: Service) -> None:
    """What waits a quarter of a minute is due now."""
    with service.database.begin() as tx:
        tx.connection.exec_driver_sql("UPDATE penstock.steps SET due_at = now() WHERE state = 'queued'")


def test_whatever_fails_on_a_full_disk_failed_for_it(small_disk: Path) -> None:
    settings = Settings(home=small_disk, work_disk_bytes=MIB)
    short = ValueError("Expecting value: line 1 column 1 (char 0)")
    assert has_room(settings)
    assert not came_from_a_full_disk(short, settings)
    with (small_disk / "ballast").open("wb") as file, pytest.raises(OSError, match="No space left") as caught:
        fill(file)
    assert came_from_a_full_disk(caught.value, settings)
    assert came_from_a_full_disk(short, settings), "a file that was cut short reads as nonsense"
    assert not has_room(settings)
    wrapped = RuntimeError("a library's own words")
    wrapped.__cause__ = caught.value
    (small_disk / "ballast").unlink()
    assert came_from_a_full_disk(wrapped, settings)
