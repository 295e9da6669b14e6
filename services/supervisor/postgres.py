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
from penstock.services.supervisor.server import EmbeddedServer, check_socket_path

SUPERUSER = "penstock"
DATABASE = "postgres"
SOCKET = ".s.PGSQL.5432"
INITDB_SECONDS = 120.0
PREVIOUS_SECONDS = 15.0


class EmbeddedPostgres(EmbeddedServer):
    """Start with `start()`, stop with `stop()`; in between `url` answers.

    `data_dir` is made on the first start. As root the server runs as `nobody`, so both folders must lie
    where that user can enter (`folders.open_folder` makes one; pytest's tmp_path is not one).
    `fsync=False` is for tests: it trades safety after a power cut for speed. To stop is a fast shutdown: open
    transactions are rolled back, the data folder is left clean.
    """

    name = "Postgres"
    start_seconds, stop_seconds = 120.0, 20.0
    late = f"Postgres was not ready after {start_seconds:.0f} s"

    def __init__(self, data_dir: Path, socket_dir: Path, *, fsync: bool = True, log: Path | None = None) -> None:
        super().__init__(data_dir.resolve(), socket_dir, log)
        self.fsync = fsync

    @property
    def url(self) -> str:
        """For SQLAlchemy with psycopg."""
        return f"postgresql+psycopg://{SUPERUSER}@/{DATABASE}?host={self.socket_dir}"

    def prepare(self) -> Child:
        user = server_user()
        check_enterable(self.data_dir, user)
        check_enterable(self.socket_dir, user)
        check_socket_path(self.socket_dir / SOCKET, "a unix socket in this folder", self.socket_dir)
        binaries = reachable_postgres(find_postgres(self._major_of_data()), user, self.copies)
        self.origin = f"{binaries.version} from {binaries.origin}"
        give_to(self.data_dir, user)
        give_to(self.socket_dir, user)
        if not self._initialised():
            self._initialise(binaries, user)
        self._clear_previous()
        return Child(
            self.name,
            self._command(binaries),
            self.log,
            user=user,
            death_signal=signal.SIGINT,
            stop_signal=signal.SIGINT,
            folder=self.data_dir,
            environment=_environment(),
        )

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
            raise self.failure("initdb failed" if code is not None else f"initdb took over {INITDB_SECONDS:.0f} s")
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

    def answers(self) -> bool:
        """The server writes its state into the eighth line of postmaster.pid, as pg_ctl reads it."""
        lines = _lines(self.data_dir / "postmaster.pid")
        return len(lines) >= 8 and lines[7].strip() == "ready" and lines[0].strip() == str(self.pid)

    def failure(self, what: str) -> PenstockError:
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
