"""A child process that cannot outlive us: started through launch.py, in a process group of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.identity import ServerUser

LAUNCHER = Path(__file__).with_name("launch.py")


@dataclass
class Child:
    """One supervised program. Start it from a thread that lives as long as it should: the kernel's
    death signal follows the thread that forked, which for us is the main one."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] | None = None
    user: ServerUser | None = None
    death_signal: signal.Signals = signal.SIGKILL
    stop_signal: signal.Signals = signal.SIGTERM
    folder: Path | None = None
    files: Sequence[int] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        user = self.user
        uid, gid = (user.uid, user.gid) if user is not None and user.changed else (-1, -1)
        try:
            with self.log.open("ab") as log:
                self.process = subprocess.Popen(
                    dying_with_us(self.command, self.death_signal, uid, gid),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=dict(self.environment) if self.environment is not None else None,
                    cwd=self.folder,
                    pass_fds=self.files,
                    process_group=0,
                )
        except OSError as error:
            raise PenstockError(
                code="cannot-start",
                what=f"cannot start {self.name}: {error.strerror}",
                where=str(error.filename),
            ) from None

    @property
    def pid(self) -> int:
        assert self.process is not None, f"{self.name} was not started"
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return None if self.process is None else self.process.poll()

    def stop(self, grace: float = 10.0) -> None:
        """Ask, wait, then kill the whole group: nothing of it is left when this returns."""
        if self.process is None:
            return
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(self.stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(grace)
        self.kill_group()
        self.process.wait()

    def kill_group(self) -> None:
        """SIGKILL for whatever is left of the process group, its leader included."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def rotate(self, most_bytes: int) -> None:
        """Move a log that has grown large aside while the program goes on writing: it appends, so it can be cut off."""
        with contextlib.suppress(OSError):
            if self.log.stat().st_size > most_bytes:
                shutil.copyfile(self.log, self.log.with_name(self.log.name + ".1"))
                os.truncate(self.log, 0)

    def log_tail(self, lines: int = 5) -> str:
        """The last lines of the log, for an error that has to say why the program ended."""
        return tail(self.log, lines)


def dying_with_us(
    command: Sequence[str], death_signal: signal.Signals = signal.SIGKILL, uid: int = -1, gid: int = -1
) -> list[str]:
    """The command as one that gets a signal when the thread that starts it ends; as another user, if one is given."""
    start = (sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), str(int(death_signal)), str(uid), str(gid))
    return [*start, *command]


def tail(log: Path, lines: int) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 16_384))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.strip().splitlines()[-lines:])
