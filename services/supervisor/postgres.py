"""A private Postgres: a data folder, a unix socket that only its user can open, and no TCP port."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.binaries import PostgresBinaries, find_postgres, reachable_postgres
from penstock.services.supervisor.identity import ServerUser, check_enterable, give_to, server_user
from penstock.services.supervisor.process import Child, tail

SUPERUSER = "penstock"
DATABASE = "postgres"
SOCKET = ".s.PGSQL.5432"
LONGEST_SOCKET_PATH = 107  # sun_path of sockaddr_un holds 108 bytes with its closing zero
START_SECONDS = 120.0
INITDB_SECONDS = 120.0
PREVIOUS_SECONDS = 15.0


class EmbeddedPostgres:
    """Start with `start()`, stop with `stop()`; in between `url` answers.

    `data_dir` is made on the first start. As root the server runs as `nobody`, so both folders must lie
    where that user can enter (`folders.open_folder` makes one; pytest's tmp_path is not one).
    `fsync=False` is for tests: it trades safety after a power cut for speed.
    """

    def __init__(self, data_dir: Path, socket_dir: Path, *, fsync: bool = True, log: Path | None = None) -> None:
        self.data_dir = data_dir.resolve()
        self.socket_dir = socket_dir.absolute()
        self.fsync = fsync
        self.log = log or self.data_dir.with_name(self.data_dir.name + ".log")
        self.child: Child | None = None
        self.binaries: PostgresBinaries | None = None

    @property
    def url(self) -> str:
        """For SQLAlchemy with psycopg."""
        return f"postgresql+psycopg://{SUPERUSER}@/{DATABASE}?host={self.socket_dir}"

    @property
    def conninfo(self) -> str:
        """For libpq: psycopg.connect, psql."""
        return f"postgresql://{SUPERUSER}@/{DATABASE}?host={self.socket_dir}"

    @property
    def pid(self) -> int:
        assert self.child is not None, "Postgres was not started"
        return self.child.pid

    @property
    def running(self) -> bool:
        return self.child is not None and self.child.running

    def start(self) -> None:
        """Return when the server accepts connections. After a crash, start the same object again."""
        if self.child is not None:
            self.child.stop(grace=0)
        user = server_user()
        self._check_folders(user)
        binaries = reachable_postgres(find_postgres(self._major_of_data()), user, self._copies())
        self.binaries = binaries
        give_to(self.data_dir, user)
        give_to(self.socket_dir, user)
        if not self._initialised():
            self._initialise(binaries, user)
        self._clear_previous()
        self.child = Child(
            "Postgres",
            self._command(binaries),
            self.log,
            user=user,
            death_signal=signal.SIGINT,
            stop_signal=signal.SIGINT,
            folder=self.data_dir,
            environment=_environment(),
        )
        self.child.start()
        self._wait_ready()

    def stop(self, grace: float = 20.0) -> None:
        """A fast shutdown: open transactions are rolled back, the data folder is left clean."""
        if self.child is not None:
            self.child.stop(grace)

    def _check_folders(self, user: ServerUser) -> None:
        check_enterable(self.data_dir, user)
        check_enterable(self.socket_dir, user)
        length = len(os.fsencode(self.socket_dir / SOCKET))
        if length > LONGEST_SOCKET_PATH:
            raise PenstockError(
                code="socket-path-too-long",
                what=f"a unix socket in this folder would have a path of {length} bytes",
                where=str(self.socket_dir),
                limit=f"at most {LONGEST_SOCKET_PATH}",
                hint="use a folder with a shorter path",
            )

    def _copies(self) -> Path:
        return self.data_dir.parent / "servers"

    def _initialised(self) -> bool:
        return self._major_of_data() is not None

    def _major_of_data(self) -> int | None:
        try:
            return int((self.data_dir / "PG_VERSION").read_text())
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            raise PenstockError(
                code="folder-unusable",
                what=f"cannot read the data folder: {error.strerror}",
                where=str(self.data_dir),
                hint="it belongs to another user; run penstock as that user or set PENSTOCK_HOME",
            ) from None

    def _initialise(self, binaries: PostgresBinaries, user: ServerUser) -> None:
        """initdb into a folder beside and rename: an interrupted one must not look like a data folder."""
        fresh = self.data_dir.with_name(self.data_dir.name + ".fresh")
        shutil.rmtree(fresh, ignore_errors=True)
        give_to(fresh, user)
        command = [str(binaries.initdb), "-D", str(fresh), "-U", SUPERUSER, "--auth=trust", "-E", "UTF8"]
        command += ["--no-locale", "--data-checksums", "--no-sync", "--no-instructions"]
        # The parent folder may be closed to the server user for writing, so initdb gets its own folder.
        initdb = Child("initdb", command, self.log, user=user, folder=fresh, environment=_environment())
        initdb.start()
        try:
            assert initdb.process is not None
            code = initdb.process.wait(INITDB_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            initdb.stop(grace=1)
        if code != 0:
            raise self._failure("initdb failed" if code is not None else f"initdb took over {INITDB_SECONDS:.0f} s")
        try:
            self.data_dir.rmdir()
            fresh.rename(self.data_dir)
        except OSError as error:
            raise PenstockError(
                code="folder-unusable",
                what=f"the data folder cannot be replaced by a fresh one: {error.strerror}",
                where=str(self.data_dir),
                hint="it is not a Postgres data folder; move its content away",
            ) from None

    def _clear_previous(self) -> None:
        """Wait for the server processes that a killed supervisor left; then remove its pid and socket files.

        With the pid file there, Postgres refuses to start if the old pid now is some other process of the
        user. Without it Postgres cannot see old backends, so none may be left when the file goes.
        """
        deadline = time.monotonic() + PREVIOUS_SECONDS
        while previous := _servers_in(self.data_dir):
            if time.monotonic() > deadline:
                pids = " ".join(str(pid) for pid in previous)
                raise PenstockError(
                    code="postgres-running",
                    what=f"a Postgres server (pid {pids}) already uses the data folder and does not end",
                    where=str(self.data_dir),
                    hint=f"stop it: kill -INT {pids}",
                )
            time.sleep(0.05)
        for leftover in ("postmaster.pid", self.socket_dir / SOCKET, self.socket_dir / f"{SOCKET}.lock"):
            (self.data_dir / leftover).unlink(missing_ok=True)

    def _command(self, binaries: PostgresBinaries) -> list[str]:
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.socket_dir),
            "unix_socket_permissions": "0700",
            "max_connections": "200",
            "log_line_prefix": "%m [%p] ",
            "timezone": "UTC",
            "log_timezone": "UTC",
        }
        if not self.fsync:
            # Commits are still written before they are acknowledged, so a killed server loses none.
            options |= {"fsync": "off", "full_page_writes": "off"}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return [str(binaries.postgres), "-D", str(self.data_dir), *settings]

    def _wait_ready(self) -> None:
        """The server writes its state into the eighth line of postmaster.pid, as pg_ctl reads it."""
        pid_file = self.data_dir / "postmaster.pid"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if not self.running:
                raise self._failure("Postgres ended while starting")
            lines = _lines(pid_file)
            if len(lines) >= 8 and lines[7].strip() == "ready" and lines[0].strip() == str(self.pid):
                return
            time.sleep(0.02)
        self.stop()
        raise self._failure(f"Postgres was not ready after {START_SECONDS:.0f} s")

    def _failure(self, what: str) -> PenstockError:
        last = _telling_line(tail(self.log, 20))
        hint = "free some space" if "No space left" in last else f"read {self.log}"
        return PenstockError(
            code="postgres-failed",
            what=what,
            where=str(self.data_dir),
            limit=f"its log ends: {last}",
            hint=hint,
        )


def _environment() -> dict[str, str]:
    """No locale or libpq setting of the user's shell reaches the server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _telling_line(log: str) -> str:
    """The lines that say why, without their time stamps: from the last errors, else the last line."""
    lines = [re.sub(r"^\S+ \S+ UTC \[\d+\] ", "", line).strip() for line in log.splitlines()]
    for end, line in reversed(list(enumerate(lines, 1))):
        if line.startswith(("FATAL", "PANIC")) or "error:" in line:
            return " / ".join(lines[max(0, end - 2) : end])
    return lines[-1] if lines else "(empty)"


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []


def _servers_in(folder: Path) -> list[int]:
    """Postgres processes of any parent on this data folder, which is the working folder of them all."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text().strip() == "postgres" and (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
        except OSError:
            continue  # it ended, or it is another user's
    return found
