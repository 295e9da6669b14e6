"""Runs foreign code where it can do little harm: no network, no other processes, none of the service's files.

Linux namespaces, as an ordinary user can make them; no privilege is left inside. Probed once a process, since
some machines switch user namespaces off. It is a fence, not a vault: it shares the kernel with the worker.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from penstock.compiler.errors import PenstockError
from penstock.services.settings import Settings

_NAMESPACES = ("--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount")
_DROP = "setpriv --no-new-privs --bounding-set=-all --inh-caps=-all --ambient-caps=-all --"

# $1 the folder to hide, $2 the one below it to keep, $3 how many more folders to hide, those, the command.
# The kept folder is held open while its parent disappears; --no-canonicalize binds what is open, not a name.
_SCRIPT = f"""
set -e
home=$1 kept=$2 count=$3
shift 3
mount -t proc proc /proc 2>/dev/null || :
exec 9<"$kept"
mount -t tmpfs -o size=64k,mode=0755 none "$home"
mkdir -p "$kept"
mount --no-canonicalize --bind /proc/self/fd/9 "$kept"
exec 9<&-
while [ "$count" -gt 0 ]; do
    mount -t tmpfs -o size=64k,mode=0755 none "$1"
    shift
    count=$((count - 1))
done
cd "$kept"
exec {_DROP} "$@"
"""


@cache
def isolation_works() -> bool:
    """Whether this machine lets this user do all of it; tried on a folder of its own."""
    if shutil.which("unshare") is None or shutil.which("setpriv") is None:
        return False
    with tempfile.TemporaryDirectory(prefix="penstock-probe-") as name:
        home = Path(name)
        kept = home / "work"
        kept.mkdir()
        (home / "secret").touch()
        look = ["sh", "-c", f"touch {kept}/written && test ! -e {home}/secret"]
        try:
            answer = subprocess.run(_wrapped(look, home, kept, ()), capture_output=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return False
        return answer.returncode == 0 and (kept / "written").exists()


def isolated(command: Sequence[str], settings: Settings, folder: Path, *, required: bool) -> list[str]:
    """The command fenced in, seeing of the service's files nothing but `folder`, which lies below its home.

    Where that cannot be had: an error if it is `required`, else the command as it is.
    """
    inside = any(Path(part).is_relative_to(settings.home) for part in (sys.prefix, __file__))
    if isolation_works() and not inside:  # our own code must stay visible
        return _wrapped(command, settings.home, folder, socket_folders(settings))
    if required:
        raise PenstockError(
            code="no-isolation", what="this machine cannot fence in untrusted models",
            limit="user namespaces are switched off, or `unshare` or `setpriv` is missing",
            hint="install util-linux and allow user namespaces, or submit a model of the zoo",
        )  # fmt: skip
    return list(command)


def socket_folders(settings: Settings) -> tuple[Path, ...]:
    """Where the servers' unix sockets lie if not below the home: a network namespace does not keep from those."""
    found: list[Path] = []
    database, broker = urlsplit(settings.database_url or ""), urlsplit(settings.redis_url or "")
    found += [Path(host) for host in parse_qs(database.query).get("host", []) if host.startswith("/")]
    if broker.scheme in ("unix", "redis+socket"):
        found.append(Path(broker.path).parent)
    return tuple(path for path in dict.fromkeys(found) if path.is_dir() and not path.is_relative_to(settings.home))


def _wrapped(command: Sequence[str], home: Path, kept: Path, others: Sequence[Path]) -> list[str]:
    names = [str(home), str(kept), str(len(others)), *map(str, others)]
    return ["unshare", *_NAMESPACES, "--", "sh", "-c", _SCRIPT, "sh", *names, *command]
