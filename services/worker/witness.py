"""What killed a pool child: seen by its successor, since whoever dies that way cannot tell.

Each child notes the step that it works on, and has the interpreter write down a crash of native code. The child that
takes the place of a dead one finds the note and gives the step back at once, with what there is of evidence. Only
evidence makes a loss the step's own fault: see `lifecycle.lose`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import shutil
import socket
from collections.abc import Mapping
from io import FileIO
from pathlib import Path

from penstock.db import Database, lifecycle
from penstock.db.schema.records import Json, Step
from penstock.services.settings import Settings

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 5.0
_LONGEST_TRACE = 2000
_COUNTERS = tuple(
    map(Path, ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control", "/proc/vmstat"))
)


def notes_of(settings: Settings, main_pid: int) -> Path:
    """Where the children of one worker leave their notes."""
    return settings.home / "notes" / f"{socket.gethostname()}-{main_pid}"


def sweep_notes(settings: Settings) -> None:
    """Remove what workers of this machine left that were killed: their leases tell of them."""
    for folder in (settings.home / "notes").glob(f"{socket.gethostname()}-*"):
        pid = folder.name.rpartition("-")[2]
        if pid.isdecimal() and not is_alive(int(pid)):
            shutil.rmtree(folder, ignore_errors=True)


class DutyNotes:
    """A pool child's own: what it works on, and where a crash is written to."""

    def __init__(self, settings: Settings) -> None:
        self._folder = notes_of(settings, os.getppid())
        self._note = self._folder / f"{os.getpid()}.json"
        self._oom_kills = 0
        self._file: FileIO | None = None
        with contextlib.suppress(OSError):  # a full disk: then a loss is one without evidence
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = self._note.open("wb", buffering=0)
            self._crash = (self._folder / f"{os.getpid()}.crash").open("w")
            faulthandler.enable(self._crash, all_threads=False)

    def note(self, step: Step, leases: Mapping[str, int]) -> None:
        """What is done now, and all that is held."""
        said = {"step": step.id, "leases": dict(leases), "oom_kills": self._oom_kills}
        self._write(json.dumps(said).encode())

    def _write(self, said: bytes) -> None:
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            os.pwrite(self._file.fileno(), said, 0)
            self._file.truncate(len(said))  # last: a note of which only the beginning was written is none

    def __enter__(self) -> DutyNotes:
        self._oom_kills = oom_kills()
        return self

    def __exit__(self, *_: object) -> None:
        self._write(b"")


def tell_of_the_dead(settings: Settings) -> None:
    """Called in each new pool child, which is there because another one ended: give back what the dead ones held.

    Not a thread of the main process: that forks, and a lock that another thread holds at that moment is held in the
    new child for ever.
    """
    dead = [note for note in notes_of(settings, os.getppid()).glob("*.json") if not is_alive(int(note.stem))]
    if not dead:
        return
    database = Database(settings.require_database_url(), application="penstock witness", pool_size=1)
    for note in dead:
        try:
            _tell(database, note)
        except Exception as error:  # noqa: BLE001 - whatever it is, the lease runs out all the same
            log.warning("the end of process %s is left to its lease: %s", note.stem, error)
    database.close()


def _tell(database: Database, note: Path) -> None:
    text = note.read_text()
    if not text:  # it held nothing
        note.unlink(missing_ok=True)
        return
    said = json.loads(text)
    found = evidence(note.with_suffix(".crash"), int(said["oom_kills"]))
    note.unlink()  # first: of two new children one tells
    for step, fence in said["leases"].items():  # of those that only waited nothing is known
        why = found if step == said["step"] else None
        database.run(lambda tx, s=step, f=int(fence), e=why: lifecycle.lose(tx, s, f, e), patience=_PATIENCE_SECONDS)
    why = found["what"] if found else "nobody knows why"
    log.warning("process %s died in step %s: %s", note.stem, said["step"], why)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has buried yet does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def evidence(crash: Path, oom_kills_before: int) -> Json | None:
    """Why the loss is the step's own: native code crashed, or the kernel killed for want of memory."""
    with contextlib.suppress(OSError):
        trace = crash.read_text(errors="replace")[:_LONGEST_TRACE].strip()
        if trace:
            return {
                "code": "worker-crashed", "what": f"its process crashed: {trace.splitlines()[0]}", "log_tail": trace,
                "hint": "native code failed; please report it with the lines above",
            }  # fmt: skip
    if oom_kills() > oom_kills_before:
        return {
            "code": "out-of-memory", "what": "the kernel killed its process for want of memory",
            "hint": "give the worker more memory, or run fewer steps at once",
        }  # fmt: skip
    return None


def oom_kills() -> int:
    """How often the kernel has killed for want of memory, in this container or on this machine."""
    for path in _COUNTERS:
        with contextlib.suppress(OSError, ValueError):
            counts = dict(line.split() for line in path.read_text().splitlines() if len(line.split()) == 2)
            if "oom_kill" in counts:
                return int(counts["oom_kill"])
    return 0
