"""Private folders of tools: gone when a job ends, unless they are to be looked at, and when its owner has died."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from penstock.profiling.protocol import ProfilingError

Keep = Literal["never", "failed", "always"]
KEPT_DAYS = 14
LEAST_FREE_BYTES = 256 << 20
_PREFIX, _KEPT, _OWNER = "penstock-job-", "kept-", ".owner"
_YOUNG_SECONDS = 60.0  # a folder that nobody has locked may have been made this moment
_DAY = 86400.0


@contextmanager
def private_folder(root: Path | None = None, keep: Keep = "never") -> Iterator[Path]:
    """A new folder below `root`, locked while in use. One that is kept gets another name and stays for two weeks."""
    root = root or Path(tempfile.gettempdir())
    check_work_folder(root)
    sweep(root)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
    ended = False
    with (folder / _OWNER).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield folder
            ended = True
        finally:
            if keep == "always" or (keep == "failed" and not ended):
                folder.rename(folder.with_name(_KEPT + folder.name))
            else:
                shutil.rmtree(folder, ignore_errors=True)


def sweep(root: Path) -> None:
    """Remove what jobs left whose process was killed, and what was kept long enough."""
    for folder in root.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # in use, gone meanwhile, or somebody else's
            if _age(folder) < _YOUNG_SECONDS:
                continue
            with (folder / _OWNER).open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
    remove_older(root.glob(f"{_KEPT}{_PREFIX}*"), KEPT_DAYS)


def check_work_folder(folder: Path) -> None:
    """A folder that cannot be written to, or a disk that is full, is said before a tool starts."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}-{time.monotonic_ns()}"
        probe.write_bytes(b"x")
        probe.unlink()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise ProfilingError(
            "disk-full", what=f"the work folder cannot be written to: {error.strerror}", where=str(folder),
            hint="set the work folder to another disk",
        ) from error  # fmt: skip
    if free < LEAST_FREE_BYTES:
        raise ProfilingError(
            "disk-full", what=f"{free >> 20} MiB are free for the work folder", where=str(folder),
            limit=f"at least {LEAST_FREE_BYTES >> 20} MiB are needed", hint="free space, or set another work folder",
        )  # fmt: skip


def remove_older(paths: Iterator[Path], days: int) -> None:
    """Files and folders that nobody touched for so long."""
    for path in paths:
        with contextlib.suppress(OSError):
            if _age(path) <= days * _DAY:
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _age(path: Path) -> float:
    return time.time() - path.stat().st_mtime
