"""Which user the embedded servers run as, and whether that user can reach a folder.

Postgres refuses to run as root, so a supervisor that is root runs its servers as `nobody`.
"""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from penstock.compiler.errors import PenstockError

UNPRIVILEGED = "nobody"


@dataclass(frozen=True)
class ServerUser:
    """The user of Postgres and Redis. `changed`: it is not the user of this process."""

    name: str
    uid: int
    gid: int
    changed: bool


def server_user() -> ServerUser:
    """The current user, or `nobody` where the current user is root."""
    uid = os.geteuid()
    if uid == 0:
        try:
            entry = pwd.getpwnam(UNPRIVILEGED)
        except KeyError:
            raise PenstockError(
                code="no-server-user",
                what=f"Postgres cannot run as root, and this machine has no user {UNPRIVILEGED}",
                hint="run penstock as an ordinary user, or set PENSTOCK_DATABASE_URL to a server that runs",
            ) from None
        return ServerUser(entry.pw_name, entry.pw_uid, entry.pw_gid, changed=True)
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        raise PenstockError(
            code="unknown-user",
            what=f"uid {uid} has no entry in the user database (/etc/passwd), and Postgres refuses to run so",
            hint="add an entry for the uid, or set PENSTOCK_DATABASE_URL to a server that runs",
        ) from None
    return ServerUser(entry.pw_name, uid, os.getegid(), changed=False)


def can_reach(path: Path, user: ServerUser) -> bool:
    """Whether the user can enter every folder above the path and read the path itself."""
    if not user.changed:
        return os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0))
    resolved = path.resolve()
    return all(_may(parent, user, stat.S_IXOTH) for parent in resolved.parents) and _may(resolved, user, stat.S_IROTH)


def check_enterable(folder: Path, user: ServerUser) -> None:
    """Refuse a folder that the server user cannot enter, naming the parent that is closed."""
    if not user.changed:
        return
    for parent in [*reversed(folder.resolve().parents)]:
        if parent.exists() and not _may(parent, user, stat.S_IXOTH):
            raise PenstockError(
                code="folder-unreachable",
                what=f"the user {user.name}, who runs Postgres when you are root, cannot enter {parent}",
                where=str(folder),
                hint="set PENSTOCK_HOME to a folder below open ones, such as /var/lib/penstock",
            )


def give_to(folder: Path, user: ServerUser) -> None:
    """Make the folder, private to the server user."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if user.changed:
            os.chown(folder, user.uid, user.gid)
        folder.chmod(0o700)
    except OSError as error:
        raise PenstockError(
            code="folder-unusable",
            what=f"cannot make the folder usable: {error.strerror}",
            where=str(folder),
            hint="set PENSTOCK_HOME to a folder that you can write to",
        ) from None


def _may(path: Path, user: ServerUser, others: int) -> bool:
    facts = path.stat()
    wanted = others << 6 if facts.st_uid == user.uid else others << 3 if facts.st_gid == user.gid else others
    return bool(facts.st_mode & wanted)
